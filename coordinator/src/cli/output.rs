//! What commands print: jobs, progress and summaries, for people and as JSON lines.

use grundy_proto::v1;
use grundy_search::peg::LevelSize;
use serde::Serialize;
use serde_json::Value;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Prints data to stdout and flushes. A reader that has closed the pipe has read what it wanted: no error.
pub(super) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Tells the user something on stderr, outside of the log.
pub(super) fn complain(text: &str) {
    // When stderr is gone there is nobody to tell.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Prints one JSON object on a line.
pub(super) fn print_json(object: &impl Serialize) -> io::Result<()> {
    print(&serde_json::to_string(object)?)
}

/// A job's numbers as JSON; `grundy/v1/grundy.proto` says what each means.
#[derive(Serialize)]
struct Statistics<'a> {
    phase: &'a str,
    decided: u64,
    total: u64,
    decided_before_start: u64,
    nodes: u64,
    nodes_per_second: f64,
    workers: u32,
    leases_open: u32,
    leases_granted: u64,
    leases_lost: u64,
    results: u64,
    facts: u64,
    parked: u32,
    active_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<Numbers>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    levels: Vec<Level>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<Estimate<'a>>,
}

#[derive(Serialize)]
struct Numbers {
    proof: u32,
    disproof: u32,
}

/// A level of a count: its boards up to symmetry, and its boards.
#[derive(Serialize)]
pub(super) struct Level {
    pub boards: u64,
    pub boards_with_images: u64,
}

impl From<&v1::Level> for Level {
    fn from(level: &v1::Level) -> Self {
        Self { boards: level.boards, boards_with_images: level.boards_with_images }
    }
}

impl From<&LevelSize> for Level {
    fn from(size: &LevelSize) -> Self {
        Self { boards: size.orbits, boards_with_images: size.boards }
    }
}

#[derive(Serialize)]
struct Estimate<'a> {
    nodes_low: f64,
    nodes_high: f64,
    searches: u64,
    levels: [u32; 2],
    parts: Vec<PartEstimate<'a>>,
}

#[derive(Serialize)]
struct PartEstimate<'a> {
    part: &'a str,
    nodes_low: f64,
    nodes_high: f64,
}

impl<'a> From<&'a v1::Estimate> for Estimate<'a> {
    fn from(estimate: &'a v1::Estimate) -> Self {
        let part = |part: &'a v1::PartEstimate| PartEstimate {
            part: &part.part,
            nodes_low: part.nodes_low.round(),
            nodes_high: part.nodes_high.round(),
        };
        Self {
            nodes_low: estimate.nodes_low.round(),
            nodes_high: estimate.nodes_high.round(),
            searches: estimate.searches,
            levels: [estimate.level_from, estimate.level_to],
            parts: estimate.parts.iter().map(part).collect(),
        }
    }
}

impl<'a> From<&'a v1::Statistics> for Statistics<'a> {
    fn from(s: &'a v1::Statistics) -> Self {
        Self {
            phase: &s.phase,
            decided: s.decided,
            total: s.total,
            decided_before_start: s.decided_before_start,
            nodes: s.nodes,
            nodes_per_second: s.nodes_per_second,
            workers: s.workers,
            leases_open: s.leases_open,
            leases_granted: s.leases_granted,
            leases_lost: s.leases_lost,
            results: s.results,
            facts: s.facts,
            parked: s.parked,
            active_ms: s.active_ms,
            remaining_ms: s.remaining_ms,
            root: s.root.map(|v1::Numbers { proof, disproof }| Numbers { proof, disproof }),
            levels: s.levels.iter().map(Level::from).collect(),
            estimate: s.estimate.as_ref().map(Estimate::from),
        }
    }
}

/// A job as a JSON object: what `progress`, `summary`, `status` and `submit` print.
#[derive(Serialize)]
pub(super) struct Job<'a> {
    message_type: &'static str,
    job: u64,
    status: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    failure: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    resumed: Option<bool>,
    game: &'a str,
    position: &'a str,
    rules: &'a str,
    question: &'a str,
    answer: Value,
    statistics: Statistics<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Path>,
}

impl<'a> Job<'a> {
    /// A job's JSON under a message type.
    pub fn new(message_type: &'static str, view: &'a v1::JobView) -> Self {
        // Proto3 leaves out what is empty.
        static PROBLEM: v1::Problem = v1::Problem {
            game: String::new(),
            rules: String::new(),
            position: String::new(),
            question: String::new(),
        };
        static STATISTICS: v1::Statistics = empty_statistics();
        let problem = view.problem.as_ref().unwrap_or(&PROBLEM);
        Self {
            message_type,
            job: view.job,
            status: state_word(view.state()),
            failure: &view.failure,
            resumed: None,
            game: &problem.game,
            position: &problem.position,
            rules: &problem.rules,
            question: &problem.question,
            answer: serde_json::from_str(&view.answer_json).unwrap_or(Value::Null),
            statistics: view.statistics.as_ref().unwrap_or(&STATISTICS).into(),
            data: None,
        }
    }

    /// Says where its data are.
    pub fn with_data(self, data: &'a Path) -> Self {
        Self { data: Some(data), ..self }
    }

    /// Says whether it was known before.
    pub fn with_resumed(self, resumed: bool) -> Self {
        Self { resumed: Some(resumed), ..self }
    }

    /// Says that it was interrupted.
    pub fn interrupted(self) -> Self {
        Self { status: "interrupted", ..self }
    }
}

const fn empty_statistics() -> v1::Statistics {
    v1::Statistics {
        phase: String::new(),
        decided: 0,
        total: 0,
        decided_before_start: 0,
        nodes: 0,
        nodes_per_second: 0.0,
        workers: 0,
        leases_open: 0,
        leases_granted: 0,
        leases_lost: 0,
        results: 0,
        facts: 0,
        parked: 0,
        active_ms: 0,
        remaining_ms: None,
        root: None,
        levels: Vec::new(),
        estimate: None,
    }
}

/// A state as a word.
pub(super) fn state_word(state: v1::JobState) -> &'static str {
    match state {
        v1::JobState::Unspecified => "unknown",
        v1::JobState::Running => "running",
        v1::JobState::Solved => "solved",
        v1::JobState::Cancelled => "cancelled",
        v1::JobState::Failed => "failed",
    }
}

/// A job's problem in words.
pub(super) fn problem_words(view: &v1::JobView) -> String {
    view.problem
        .as_ref()
        .map_or_else(String::new, |problem| grundy_games::problem::Fields::from(problem.clone()).to_string())
}

/// How far a job is, on one line.
pub(super) fn progress_words(view: &v1::JobView) -> String {
    let Some(s) = &view.statistics else {
        return String::new();
    };
    let mut words = format!(
        "{}: {} of {} decided, {} nodes at {}/s, {}, {}",
        s.phase,
        s.decided,
        s.total,
        count_words(s.nodes as f64),
        count_words(s.nodes_per_second),
        counted(s.workers.into(), "worker"),
        time_words(s.active_ms),
    );
    if let Some(estimate) = &s.estimate {
        words.push_str(&format!(", {}", estimate_words(estimate, s.nodes_per_second)));
    } else if let Some(remaining_ms) = s.remaining_ms {
        words.push_str(&format!(", about {} left", time_words(remaining_ms)));
    }
    if s.parked > 0 {
        words.push_str(&format!(", {} parked", s.parked));
    }
    words
}

/// What open parts take, and what that is based on.
pub(super) fn estimate_words(estimate: &v1::Estimate, nodes_per_second: f64) -> String {
    let v1::Estimate { nodes_low, nodes_high, searches, level_from, level_to, .. } = *estimate;
    let mut words =
        format!("what is open takes some {} to {} nodes", count_words(nodes_low), count_words(nodes_high));
    if nodes_per_second > 0.0 {
        let time = |nodes: f64| time_words((nodes / nodes_per_second * 1000.0) as u64);
        words.push_str(&format!(" ({} to {})", time(nodes_low), time(nodes_high)));
    }
    let searches = count_words(searches as f64);
    words + &format!(" by the growth of {searches} trees from level {level_from} to {level_to}")
}

/// A number with the word for what it counts: `1 worker`, `2 workers`.
pub(super) fn counted(number: u64, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

/// A count in three figures: `812`, `4.07k`, `12.3M`.
fn count_words(count: f64) -> String {
    let mut count = count.max(0.0);
    for unit in ["", "k", "M", "G", "T"] {
        if count < 999.5 {
            let decimals = match count {
                _ if unit.is_empty() => 0,
                count if count < 9.995 => 2,
                count if count < 99.95 => 1,
                _ => 0,
            };
            return format!("{count:.decimals$}{unit}");
        }
        count /= 1000.0;
    }
    format!("{count:.0}P")
}

/// A span of time in its two largest units: `0s`, `59s`, `3m05s`, `2h01m`, `4d07h`.
fn time_words(ms: u64) -> String {
    let s = ms / 1000;
    match (s / 86_400, s / 3600 % 24, s / 60 % 60, s % 60) {
        (0, 0, 0, s) => format!("{s}s"),
        (0, 0, m, s) => format!("{m}m{s:02}s"),
        (0, h, m, _) => format!("{h}h{m:02}m"),
        (d, h, ..) => format!("{d}d{h:02}h"),
    }
}

/// A job, for people.
pub(super) fn print_job(view: &v1::JobView) -> io::Result<()> {
    let mut text = format!("job {}: {}, {}", view.job, problem_words(view), state_word(view.state()));
    if !view.failure.is_empty() {
        text.push_str(&format!(": {}", view.failure));
    }
    if view.state() == v1::JobState::Running {
        text.push_str(&format!("\n  {}", progress_words(view)));
    }
    for line in view.answer_text.lines() {
        text.push_str(&format!("\n  {line}"));
    }
    print(&text)
}

/// A table of levels: jumps made, boards, and boards up to symmetry, from the start.
pub(super) fn level_table(levels: impl IntoIterator<Item = impl Into<Level>>) -> String {
    let mut table = format!("{:>5}  {:>12}  {:>17}", "jumps", "boards", "up to symmetry");
    for (jumps, level) in levels.into_iter().map(Into::into).enumerate() {
        let Level { boards, boards_with_images } = level;
        table.push_str(&format!("\n{jumps:>5}  {boards_with_images:>12}  {boards:>17}"));
    }
    table
}

/// A worker as a JSON object.
#[derive(Serialize)]
pub(super) struct Worker<'a> {
    message_type: &'static str,
    worker: &'a str,
    incarnation: u64,
    threads: u32,
    leases_open: u32,
    silent_ms: u64,
    nodes: u64,
    results: u64,
    lost: bool,
}

impl<'a> From<&'a v1::WorkerView> for Worker<'a> {
    fn from(view: &'a v1::WorkerView) -> Self {
        Self {
            message_type: "worker",
            worker: &view.worker,
            incarnation: view.incarnation,
            threads: view.threads,
            leases_open: view.leases_open,
            silent_ms: view.silent_ms,
            nodes: view.nodes,
            results: view.results,
            lost: view.lost,
        }
    }
}

/// A worker, for people.
pub(super) fn print_worker(view: &v1::WorkerView) -> io::Result<()> {
    let state = if view.lost { "lost" } else { "up" };
    print(&format!(
        "worker {}: {state}, heard of {} ago, {} of {} busy, {}, {} nodes",
        view.worker,
        time_words(view.silent_ms),
        view.leases_open,
        counted(view.threads.into(), "thread"),
        counted(view.results, "result"),
        count_words(view.nodes as f64),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_says_how_it_is_made() {
        let estimate = v1::Estimate {
            nodes_low: 2e12,
            nodes_high: 9.3e12,
            searches: 120_000_000,
            level_from: 29,
            level_to: 52,
            parts: Vec::new(),
        };
        let expected = "what is open takes some 2.00T to 9.30T nodes (11d13h to 53d19h) by the growth of 120M trees from level 29 to 52";
        assert_eq!(estimate_words(&estimate, 2e6), expected);
        assert!(!estimate_words(&estimate, 0.0).contains('('));
    }

    #[test]
    fn numbers_are_short() {
        for (count, words) in [
            (0.0, "0"),
            (812.4, "812"),
            (999.9, "1.00k"),
            (4071.0, "4.07k"),
            (12_345_678.0, "12.3M"),
            (2.5e17, "250P"),
        ] {
            assert_eq!(count_words(count), words);
        }
        for (ms, words) in
            [(999, "0s"), (59_999, "59s"), (185_000, "3m05s"), (7_260_000, "2h01m"), (370_800_000, "4d07h")]
        {
            assert_eq!(time_words(ms), words);
        }
    }

    #[test]
    fn a_summary_has_all_its_fields() {
        let view = v1::JobView {
            job: 3,
            problem: Some(v1::Problem {
                game: "cram".into(),
                position: "...".into(),
                question: "nimber".into(),
                ..Default::default()
            }),
            state: v1::JobState::Solved.into(),
            answer_json: r#"{"nimber":1}"#.into(),
            statistics: Some(v1::Statistics {
                decided: 2,
                total: 2,
                phase: "done".into(),
                ..Default::default()
            }),
            ..Default::default()
        };
        let text =
            serde_json::to_string(&Job::new("summary", &view).with_data(Path::new("d"))).expect("it is JSON");
        let expected = concat!(
            r#"{"message_type":"summary","job":3,"status":"solved","game":"cram","position":"...","rules":"","question":"nimber","#,
            r#""answer":{"nimber":1},"statistics":{"phase":"done","decided":2,"total":2,"decided_before_start":0,"nodes":0,"#,
            r#""nodes_per_second":0.0,"workers":0,"leases_open":0,"leases_granted":0,"leases_lost":0,"results":0,"facts":0,"#,
            r#""parked":0,"active_ms":0},"data":"d"}"#
        );
        assert_eq!(text, expected);
        // An empty message, as proto3 may send it, is no reason to fail.
        assert!(serde_json::to_string(&Job::new("progress", &v1::JobView::default())).is_ok());
    }
}
