//! Progress on stderr, as one line that changes on a terminal and as lines now and then elsewhere; and as JSON on stdout.

use crate::answer::UNDECIDED;
use crate::cli::logging;
use crate::cli::output::{self, Job};
use crate::exit::Failure;
use grundy_proto::v1;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;
use std::collections::BTreeMap;
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

/// What is known of each opening, to tell what is new.
#[derive(Default)]
struct Openings(BTreeMap<String, String>);

impl Openings {
    /// The openings of a partial answer of which more is known than before, each with what that is.
    fn news(&mut self, answer_json: &str) -> Vec<(String, String)> {
        let answer: Value = serde_json::from_str(answer_json).unwrap_or(Value::Null);
        let openings = answer["openings"].as_array().map_or(&[][..], Vec::as_slice);
        let known = openings.iter().filter_map(|opening| {
            let bound = |key: &str| opening[key].as_i64();
            let known = match (bound("value"), bound("at_least"), bound("at_most")) {
                (Some(value), ..) => value.to_string(),
                (None, Some(low), Some(high)) => format!("{low} to {high}"),
                (None, Some(low), None) => format!(">= {low}"),
                (None, None, Some(high)) => format!("<= {high}"),
                (None, None, None) => return None,
            };
            Some((opening["opening"].as_str()?.to_owned(), known))
        });
        let is_new = |(opening, known): &(String, String)| self.0.get(opening) != Some(known);
        let news: Vec<_> = known.filter(is_new).collect();
        self.0.extend(news.iter().cloned());
        news
    }
}

/// Progress for people: a line on a terminal, lines elsewhere. Dropping it clears the line.
pub(in crate::cli) struct Line {
    bar: Option<ProgressBar>,
    elsewhere: Elsewhere,
    every: Every,
    /// What was known of the answer when it was last shown.
    known: String,
    openings: Openings,
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
        Self { bar, elsewhere, every, known: String::new(), openings: Openings::default() }
    }

    /// Shows how far a job is, unless that was shown just now.
    pub fn show(&mut self, view: &v1::JobView) {
        // The answer of a job that is over is shown as a whole.
        if view.state() == v1::JobState::Running {
            self.show_openings(view);
        }
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
                estimate = s.estimate.as_ref().map(|e| output::estimate_words(e, s.nodes_per_second)),
                "progress"
            ),
            (None, Some(_)) if self.elsewhere == Elsewhere::Plain => {
                self.known.clone_from(&view.answer_text);
                output::complain(&plain(view));
            }
            (None, _) => {}
        }
    }

    /// Tells of openings as soon as more is known of them: a long solve's results so far.
    fn show_openings(&mut self, view: &v1::JobView) {
        for (opening, known) in self.openings.news(&view.answer_json) {
            let nodes = view.statistics.as_ref().map_or(0, |s| s.nodes);
            match self.elsewhere {
                Elsewhere::Log if self.bar.is_none() => {
                    tracing::info!(job = view.job, opening, known, nodes, "opening narrowed");
                }
                Elsewhere::Silent if self.bar.is_none() => {}
                _ => self.say(&format!("job {}: opening {opening}: {known}", view.job)),
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openings_are_told_of_when_more_is_known() {
        let mut openings = Openings::default();
        let mut news = |json: &str| {
            let news = openings.news(json).into_iter();
            news.map(|(opening, known)| format!("{opening}: {known}")).collect::<Vec<_>>()
        };
        assert!(news("").is_empty() && news(r#"{"nimber":1}"#).is_empty());
        let first =
            r#"{"openings":[{"opening":"1-2","at_least":-2},{"opening":"3"},{"opening":"4","at_most":6}]}"#;
        assert_eq!(news(first), ["1-2: >= -2", "4: <= 6"]);
        assert!(news(first).is_empty());
        let second = r#"{"openings":[{"opening":"1-2","at_least":-2,"at_most":0},{"opening":"3","value":4},{"opening":"4","at_most":6}]}"#;
        assert_eq!(news(second), ["1-2: -2 to 0", "3: 4"]);
    }
}
