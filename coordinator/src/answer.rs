//! Answers in words, for people; their JSON is `Answer`'s own serialisation.

use grundy_games::plan::{Answer, FinishCount, OpeningAnswer, Outcome, Winner};
use std::fmt;

/// Prints an answer, or what is known of it: one line, or for Kalah a table with one line an opening.
pub struct InWords<'a>(pub &'a Answer);

/// Prints an answer as one word where it is one (`1`, `win`, `40861647040079968`), as `eval` does; otherwise as JSON.
pub struct OneWord<'a>(pub &'a Answer);

/// What stands for an answer that is not known.
pub const UNDECIDED: &str = "not decided";

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
            Answer::Count { count: Some(count), finishes } => {
                write!(f, "{count}")?;
                finish_table(f, finishes)
            }
            Answer::Openings { asked_at_least, value, openings } => {
                match (asked_at_least, value) {
                    (_, Some(value)) => write!(f, "value {value}")?,
                    (Some(asked), None) => f.write_str(&reached(*asked, openings))?,
                    (None, None) => write!(f, "value {UNDECIDED}")?,
                }
                table(f, openings)
            }
            Answer::Outcome { outcome: None }
            | Answer::Winner { winner: None }
            | Answer::Gain { gain: None }
            | Answer::Count { count: None, .. } => f.write_str(UNDECIDED),
        }
    }
}

/// The finishes, one a line.
fn finish_table(f: &mut fmt::Formatter<'_>, finishes: &[FinishCount]) -> fmt::Result {
    if !finishes.is_empty() {
        f.write_str("\nfinish  sequences")?;
    }
    finishes.iter().try_for_each(|FinishCount { finish, count }| write!(f, "\n{finish:6}  {count}"))
}

/// How many openings reach what they were asked to.
fn reached(asked: i16, openings: &[OpeningAnswer]) -> String {
    let reaching = openings.iter().filter(|opening| opening.at_least.is_some()).count();
    let open = openings.iter().filter(|o| o.at_least.is_none() && o.at_most.is_none()).count();
    let mut words = match (reaching, openings.len()) {
        (0, _) => "no opening reaches".to_owned(),
        (1, all) => format!("1 of {all} openings reaches"),
        (some, all) => format!("{some} of {all} openings reach"),
    };
    words.push_str(&format!(" {asked}"));
    if open > 0 {
        words.push_str(&format!(" so far, {open} {UNDECIDED}"));
    }
    words
}

/// The openings, one a line.
fn table(f: &mut fmt::Formatter<'_>, openings: &[OpeningAnswer]) -> fmt::Result {
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
            Answer::Count { count: Some(count), .. } => write!(f, "{count}"),
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
                Answer::Count { count, finishes: Vec::new() },
                "40861647040079968",
                "40861647040079968",
                r#"{"count":"40861647040079968"}"#,
            ),
            (
                Answer::Count {
                    count: Some(7),
                    finishes: vec![
                        FinishCount { finish: "a1".to_owned(), count: 3 },
                        FinishCount { finish: "d4".to_owned(), count: 4 },
                    ],
                },
                "7\nfinish  sequences\na1      3\nd4      4",
                "7",
                r#"{"count":"7","finishes":[{"count":"3","finish":"a1"},{"count":"4","finish":"d4"}]}"#,
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
        let answer = Answer::Openings { asked_at_least: None, value: None, openings };
        assert_eq!(InWords(&answer).to_string(), expected);
        let none = Answer::Openings { asked_at_least: None, value: Some(4), openings: vec![] };
        assert_eq!(InWords(&none).to_string(), "value 4");
    }

    #[test]
    fn a_bound_is_answered_by_who_reaches_it() {
        let words = |bounds: &[(Option<i16>, Option<i16>)]| {
            let openings = bounds.iter().map(|bounds| opening("1", None, *bounds, &[])).collect();
            let text =
                InWords(&Answer::Openings { asked_at_least: Some(5), value: None, openings }).to_string();
            text.lines().next().unwrap_or_default().to_owned()
        };
        let (yes, no, open) = ((Some(6), None), (None, Some(4)), (None, None));
        for (bounds, expected) in [
            (&[yes, no, yes][..], "2 of 3 openings reach 5"),
            (&[yes, no], "1 of 2 openings reaches 5"),
            (&[no, no], "no opening reaches 5"),
            (&[open, no], "no opening reaches 5 so far, 1 not decided"),
            (&[yes, open, open], "1 of 3 openings reaches 5 so far, 2 not decided"),
        ] {
            assert_eq!(words(bounds), expected);
        }
        // A finished game has its value.
        let over = Answer::Openings { asked_at_least: Some(5), value: Some(-3), openings: vec![] };
        assert_eq!(InWords(&over).to_string(), "value -3");
        let answer = Answer::Openings { asked_at_least: Some(5), value: None, openings: vec![] };
        assert_eq!(json(&answer), r#"{"asked_at_least":5,"openings":[]}"#);
    }
}
