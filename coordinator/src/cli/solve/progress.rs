//! Progress on stderr, as one line that changes on a terminal and as lines now and then elsewhere; and as JSON on stdout.

use crate::answer::UNDECIDED;
use crate::cli::logging;
use crate::cli::output::{self, Job};
use crate::exit::Failure;
use grundy_proto::v1;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

/// How often a log line tells of progress.
const LOG_EVERY: Duration = Duration::from_secs(5);

/// How often a plain line tells of progress, unless a bound changes.
const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// How often the line on a terminal changes.
const LINE_EVERY: Duration = Duration::from_millis(200);

/// How often a JSON object tells of progress.
const JSON_EVERY: Duration = Duration::from_secs(1);

/// Does something at most every so often.
struct Every {
    span: Duration,
    last: Option<Instant>,
}

impl Every {
    fn new(span: Duration) -> Self {
        Self { span, last: None }
    }

    fn due(&mut self) -> bool {
        let due = self.last.is_none_or(|last| last.elapsed() >= self.span);
        if due {
            self.last = Some(Instant::now());
        }
        due
    }
}

/// How progress is shown where stderr is no terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::cli) enum Elsewhere {
    /// As log lines, beside those of the coordinator.
    Log,
    /// As plain lines: now and then, and whenever more of the answer is known.
    Plain,
    /// Not at all: something else tells of it.
    Silent,
}

/// Progress for people: a line on a terminal, lines elsewhere. Dropping it clears the line.
pub(in crate::cli) struct Line {
    bar: Option<ProgressBar>,
    elsewhere: Elsewhere,
    every: Every,
    /// What was known of the answer when it was last shown.
    known: String,
}

impl Line {
    /// A line, if stderr is a terminal.
    pub fn new(elsewhere: Elsewhere) -> Self {
        let bar = logging::is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(ProgressStyle::default_spinner());
            logging::keep_clear_of(Some(bar.clone()));
            bar
        });
        let every = Every::new(match elsewhere {
            _ if bar.is_some() => LINE_EVERY,
            Elsewhere::Log => LOG_EVERY,
            Elsewhere::Plain | Elsewhere::Silent => PLAIN_EVERY,
        });
        Self { bar, elsewhere, every, known: String::new() }
    }

    /// Shows how far a job is, unless that was shown just now.
    pub fn show(&mut self, view: &v1::JobView) {
        let news = self.elsewhere == Elsewhere::Plain && self.known != view.answer_text;
        if !self.every.due() && !news {
            return;
        }
        match (&self.bar, &view.statistics) {
            (Some(bar), _) => {
                bar.set_message(output::progress_words(view));
                bar.tick();
            }
            (None, Some(s)) if self.elsewhere == Elsewhere::Log => tracing::info!(
                job = view.job,
                phase = s.phase,
                decided = s.decided,
                total = s.total,
                nodes = s.nodes,
                nodes_per_second = s.nodes_per_second.round(),
                workers = s.workers,
                leases_open = s.leases_open,
                active_ms = s.active_ms,
                remaining_ms = s.remaining_ms,
                "progress"
            ),
            (None, Some(_)) if self.elsewhere == Elsewhere::Plain => {
                self.known.clone_from(&view.answer_text);
                output::complain(&plain(view));
            }
            (None, _) => {}
        }
    }

    /// Says something else, with the line out of its way.
    pub fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| output::complain(text)),
            None => output::complain(text),
        }
    }
}

/// A job on one line, with what is known of its answer where that fits: a table of openings does not.
fn plain(view: &v1::JobView) -> String {
    let words = format!("job {}: {}", view.job, output::progress_words(view));
    match view.answer_text.lines().next() {
        Some(known) if known != UNDECIDED => format!("{words}, {known}"),
        _ => words,
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            logging::keep_clear_of(None);
            bar.finish_and_clear();
        }
    }
}

/// Progress of `solve`: the line, and JSON if asked for.
pub(super) struct Progress {
    line: Line,
    json: Option<Every>,
}

impl Progress {
    /// Progress for people, and as JSON.
    pub fn new(json: bool) -> Self {
        Self { line: Line::new(Elsewhere::Log), json: json.then(|| Every::new(JSON_EVERY)) }
    }

    /// Shows how far the job is.
    pub fn show(&mut self, view: &v1::JobView) -> Result<(), Failure> {
        self.line.show(view);
        if self.json.as_mut().is_some_and(Every::due) {
            output::print_json(&Job::new("progress", view))?;
        }
        Ok(())
    }
}
