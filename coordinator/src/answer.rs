//! Answers in words, for people; their JSON is `Answer`'s own serialisation.

use grundy_games::plan::{Answer, OpeningAnswer, Outcome, Winner};
use std::fmt;

/// Prints an answer, or what is known of it: one line, or for Kalah a table with one line an opening.
pub struct InWords<'a>(pub &'a Answer);

/// Prints an answer as one word where it is one (`1`, `win`, `40861647040079968`), as `eval` does; otherwise as JSON.
pub struct OneWord<'a>(pub &'a Answer);

/// What stands for an answer that is not known.
const UNDECIDED: &str = "not decided";

fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Win => "win",
        Outcome::Loss => "loss",
    }
}

fn winner_word(winner: Winner) -> &'static str {
    match winner {
        Winner::Black => "black",
        Winner::White => "white",
    }
}

impl fmt::Display for InWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Answer::Nimber { nimber } => write!(f, "nimber {nimber}"),
            Answer::NimberAtLeast { nimber_at_least } => write!(f, "nimber at least {nimber_at_least}"),
            Answer::Outcome { outcome: Some(Outcome::Win) } => f.write_str("the mover wins"),
            Answer::Outcome { outcome: Some(Outcome::Loss) } => f.write_str("the mover loses"),
            Answer::Winner { winner: Some(winner) } => write!(f, "{} wins", winner_word(*winner)),
            Answer::Gain { gain: Some(gain) } => write!(f, "gain {gain}"),
            Answer::Count { count: Some(count) } => write!(f, "{count}"),
            Answer::Openings { value, openings } => table(f, *value, openings),
            Answer::Outcome { outcome: None }
            | Answer::Winner { winner: None }
            | Answer::Gain { gain: None }
            | Answer::Count { count: None } => f.write_str(UNDECIDED),
        }
    }
}

/// The openings, one a line, below the value of the best.
fn table(f: &mut fmt::Formatter<'_>, value: Option<i16>, openings: &[OpeningAnswer]) -> fmt::Result {
    match value {
        Some(value) => write!(f, "value {value}")?,
        None => write!(f, "value {UNDECIDED}")?,
    }
    let rows: Vec<(&str, String)> =
        openings.iter().map(|opening| (opening.opening.as_str(), bounds(opening))).collect();
    let opening_width =
        rows.iter().map(|(opening, _)| opening.len()).chain(["opening".len()]).max().unwrap_or(0);
    let value_width = rows.iter().map(|(_, value)| value.len()).chain(["value".len()]).max().unwrap_or(0);
    let continued = openings.iter().any(|opening| !opening.continuation.is_empty());
    if !openings.is_empty() {
        write!(f, "\n{:opening_width$}  {:>value_width$}", "opening", "value")?;
    }
    if continued {
        f.write_str("  continuation (bins)")?;
    }
    for ((name, value), opening) in rows.iter().zip(openings) {
        write!(f, "\n{name:opening_width$}  {value:>value_width$}")?;
        for (index, bin) in opening.continuation.iter().enumerate() {
            write!(f, "{}{bin}", if index == 0 { "  " } else { " " })?;
        }
    }
    Ok(())
}

/// An opening's value or interval.
fn bounds(opening: &OpeningAnswer) -> String {
    match (opening.value, opening.at_least, opening.at_most) {
        (Some(value), ..) => value.to_string(),
        (None, Some(low), Some(high)) => format!("{low} to {high}"),
        (None, Some(low), None) => format!("at least {low}"),
        (None, None, Some(high)) => format!("at most {high}"),
        (None, None, None) => UNDECIDED.to_owned(),
    }
}

impl fmt::Display for OneWord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Answer::Nimber { nimber } => write!(f, "{nimber}"),
            Answer::Outcome { outcome: Some(outcome) } => f.write_str(outcome_word(*outcome)),
            Answer::Winner { winner: Some(winner) } => f.write_str(winner_word(*winner)),
            Answer::Gain { gain: Some(gain) } => write!(f, "{gain}"),
            Answer::Count { count: Some(count) } => write!(f, "{count}"),
            other => f.write_str(&json(other)),
        }
    }
}

/// The answer's JSON, as `solve --json` prints it under `answer`.
pub fn json(answer: &Answer) -> String {
    value(answer).to_string()
}

/// The answer as a JSON value.
pub fn value(answer: &Answer) -> serde_json::Value {
    // An answer is strings, numbers and lists: the one failure of this conversion, a map with keys that are no
    // strings, cannot come up, and `null` is what an answer nobody knows looks like.
    serde_json::to_value(answer).unwrap_or(serde_json::Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opening(
        name: &str,
        value: Option<i16>,
        bounds: (Option<i16>, Option<i16>),
        continuation: &[u8],
    ) -> OpeningAnswer {
        let (at_least, at_most) = bounds;
        OpeningAnswer {
            opening: name.to_owned(),
            value,
            at_least,
            at_most,
            continuation: continuation.to_vec(),
        }
    }

    #[test]
    fn answers_read_as_words_and_as_json() {
        let count = Some(40_861_647_040_079_968);
        let table = [
            (Answer::Nimber { nimber: 1 }, "nimber 1", "1", r#"{"nimber":1}"#),
            (
                Answer::NimberAtLeast { nimber_at_least: 2 },
                "nimber at least 2",
                r#"{"nimber_at_least":2}"#,
                r#"{"nimber_at_least":2}"#,
            ),
            (
                Answer::Outcome { outcome: Some(Outcome::Loss) },
                "the mover loses",
                "loss",
                r#"{"outcome":"loss"}"#,
            ),
            (Answer::Outcome { outcome: None }, "not decided", r#"{"outcome":null}"#, r#"{"outcome":null}"#),
            (Answer::Winner { winner: Some(Winner::White) }, "white wins", "white", r#"{"winner":"white"}"#),
            (Answer::Gain { gain: Some(-3) }, "gain -3", "-3", r#"{"gain":-3}"#),
            (
                Answer::Count { count },
                "40861647040079968",
                "40861647040079968",
                r#"{"count":"40861647040079968"}"#,
            ),
        ];
        for (answer, words, word, text) in table {
            assert_eq!(InWords(&answer).to_string(), words);
            assert_eq!(OneWord(&answer).to_string(), word);
            assert_eq!(json(&answer), text);
        }
    }

    #[test]
    fn openings_are_a_table() {
        let openings = vec![
            opening("1", Some(-2), (None, None), &[1, 8, 2]),
            opening("3-6", None, (Some(2), Some(8)), &[]),
            opening("4", None, (Some(2), None), &[]),
        ];
        let expected = "\
value not decided
opening       value  continuation (bins)
1                -2  1 8 2
3-6          2 to 8
4        at least 2";
        assert_eq!(InWords(&Answer::Openings { value: None, openings }).to_string(), expected);
        let none = Answer::Openings { value: Some(4), openings: vec![] };
        assert_eq!(InWords(&none).to_string(), "value 4");
    }
}
