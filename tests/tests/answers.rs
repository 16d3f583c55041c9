//! Published answers, by `grundy solve` with two worker processes.

use grundy_tests::data::rows;
use grundy_tests::programs::{Output, grundy, grundy_with_input};
use serde_json::{Value, json};
use std::path::Path;

/// Solves with two workers and returns the summary's answer.
fn answer(problem: &[&str], directory: &Path) -> Value {
    let output = solve(problem, directory);
    assert_eq!(output.code(), 0, "{problem:?}: {output:?}");
    output.summary()["answer"].clone()
}

fn solve(problem: &[&str], directory: &Path) -> Output {
    solve_within("512MiB", problem, directory)
}

fn solve_within(memory: &str, problem: &[&str], directory: &Path) -> Output {
    grundy([&["solve"], problem, &["--workers", "2", "--memory", memory, "--json"]].concat(), directory)
}

#[test]
fn cram() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for row in rows(include_str!("data/cram-nimbers.tsv")) {
        let [board, nimber] = row[..] else { panic!("{row:?}") };
        let nimber: u32 = nimber.parse().expect("a nimber");
        // Room for endgame databases of some columns; the boards share them.
        let output = solve_within("2GiB", &["cram", board, "--endgame", "endgame"], directory.path());
        assert_eq!(output.code(), 0, "{board}: {output:?}");
        assert_eq!(output.summary()["answer"], json!({ "nimber": nimber }), "{board}");
    }
}

#[test]
fn cram_outcomes() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (board, outcome) in [("3x7", "win"), ("3x3", "loss"), ("....|.##.", "win"), (".....", "loss")] {
        let answer = answer(&["cram", board, "--question", "outcome"], directory.path());
        assert_eq!(answer, json!({ "outcome": outcome }), "{board}");
    }
}

#[test]
fn konane() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for row in rows(include_str!("data/konane.tsv")) {
        let [board, start, winner] = row[..] else { panic!("{row:?}") };
        let answer = answer(&["konane", board, "--start", start], directory.path());
        assert_eq!(answer, json!({ "winner": winner }), "{board} {start}");
    }
}

#[test]
fn kalah() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut solved = 0;
    for row in rows(include_str!("data/kalah-games.tsv")) {
        let [board, rules, value] = row[..] else { panic!("{row:?}") };
        let (houses, seeds) = board.split_once(',').expect("houses,seeds");
        let (houses, seeds): (u32, u32) = (houses.parse().expect("houses"), seeds.parse().expect("seeds"));
        let wanted = matches!((houses, seeds), (..=3, _) | (4, ..=3) | (5, ..=2) | (6, ..=2));
        if !wanted {
            continue;
        }
        let answer = answer(&["kalah", board, "--rules", rules], directory.path());
        assert_eq!(
            answer["value"],
            json!(value.parse::<i32>().expect("a value")),
            "{board} {rules}: {answer}"
        );
        for opening in answer["openings"].as_array().expect("openings") {
            assert!(opening["value"].is_number(), "{board} {rules}: {opening}");
        }
        solved += 1;
    }
    assert!(solved >= 50, "{solved} boards are not all");
}

#[test]
fn kalah_bounds() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    // 4,3 standard is worth 6 by its best opening.
    let holds = answer(&["kalah", "4,3", "--at-least", "6"], directory.path());
    let fails = answer(&["kalah", "4,3", "--at-least", "8"], directory.path());
    let any = |answer: &Value, key: &str| {
        answer["openings"]
            .as_array()
            .expect("openings")
            .iter()
            .filter(|opening| opening[key].is_number())
            .count()
    };
    assert!(any(&holds, "at_least") >= 1, "{holds}");
    assert_eq!(any(&fails, "at_least"), 0, "{fails}");
    assert!(any(&fails, "at_most") >= 1, "{fails}");
    for (bound, expected) in
        [("6", "2 of 6 openings reach 6\nopening"), ("8", "no opening reaches 8\nopening")]
    {
        // In words, and known by now.
        let output = grundy(["solve", "kalah", "4,3", "--at-least", bound], directory.path());
        assert_eq!(output.code(), 0, "{output:?}");
        let words = output.stdout;
        assert!(words.starts_with(expected) && !words.contains("not decided"), "{words}");
    }
}

#[test]
fn peg_english() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    assert_eq!(answer(&["peg", "english"], directory.path()), json!({ "count": "40861647040079968" }));
}

#[test]
fn peg_by_finish_and_by_level() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    // From the corner of the triangle of 15 holes; 29,760 is published in many places.
    let expected = "29760\nfinish  sequences\na1      6816\na4      3408\nd4      3408\nc5      16128\n";
    let arguments = ["peg", "triangle5", "--finish", "any"];
    let words = |command: &str, more: &[&str]| {
        let output = grundy([&[command], &arguments[..], more].concat(), directory.path());
        assert_eq!(output.code(), 0, "{output:?}");
        output.stdout
    };
    assert_eq!(words("count", &[]), expected);
    assert_eq!(words("solve", &["--workers", "1", "--memory", "256MiB"]), expected);
    let levels = "\
jumps        boards     up to symmetry
    0             1                  1
    1             2                  1
    2             8                  4";
    let counted = words("count", &["--levels"]);
    assert!(counted.starts_with(&format!("{expected}{levels}\n")), "{counted}");
    // The answer is known by now.
    assert_eq!(words("solve", &["--levels", "--workers", "1", "--memory", "256MiB"]), counted);
}

#[test]
fn peg_english_spills() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let count = |more: &[&str]| {
        let problem = ["count", "peg", "english", "--memory", "64MiB", "--json"];
        grundy([&problem[..], more].concat(), directory.path())
    };
    let spilled = count(&["--spill", "."]).summary();
    assert_eq!(spilled["answer"], json!({ "count": "40861647040079968" }));
    let levels = spilled["levels"].as_array().expect("levels");
    assert_eq!((levels.len(), &levels[15]["boards"]), (16, &json!(2_598_215)));
    assert_eq!(std::fs::read_dir(directory.path()).expect("the directory").count(), 0);
    let failed = count(&["--spill", "missing"]);
    assert!(failed.code() == 1 && failed.stderr.contains("missing"), "it did not spill: {failed:?}");
}

#[test]
fn the_same_command_again_has_the_answer_at_once() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let problem = ["cram", "3x8", "--data", "here"];
    let first = solve(&problem, directory.path()).summary();
    let again = solve(&problem, directory.path()).summary();
    assert_eq!(first["answer"], again["answer"]);
    assert_eq!(first["statistics"]["results"], again["statistics"]["results"], "nothing was searched again");
    assert_eq!(first["statistics"]["leases_granted"], again["statistics"]["leases_granted"]);
}

#[test]
fn people_read_the_answer_on_stdout_and_nothing_else() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let output = grundy(["solve", "cram", "3x7", "--workers", "2", "--memory", "256MiB"], directory.path());
    assert_eq!((output.code(), output.stdout.trim()), (0, "nimber 1"), "{output:?}");
}

/// All boards of 3 rows and 6 columns with cells filled at random, the first ones worked out by hand.
#[test]
fn eval_answers_a_hundred_thousand_small_cram_positions() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut input = String::from("..\n...\n....\n.#.\n..|..\n");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut positions = 5;
    while positions < 100_000 {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let row = |shift: u32| -> String {
            (0..6).map(|cell| if state >> (shift + cell) & 1 == 1 { '#' } else { '.' }).collect()
        };
        input.push_str(&format!("{}|{}|{}\n", row(32), row(40), row(48)));
        positions += 1;
    }
    let lines = input.clone();
    let output = grundy_with_input(&["eval", "cram"], input, directory.path());
    assert_eq!(output.code(), 0, "{}", output.stderr);
    let answers: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(answers.len(), positions);
    // Dawson's Kayles 1, 1, 2 for strips of 2, 3 and 4; dead cells; 2x2 is even by even.
    let nimbers: Vec<&str> =
        answers[..5].iter().map(|line| line.split('\t').nth(1).expect("a TAB")).collect();
    assert_eq!(nimbers, ["1", "1", "2", "0", "0"]);
    for (position, answer) in lines.lines().zip(&answers) {
        let (echoed, nimber) = answer.split_once('\t').expect("position TAB answer");
        assert_eq!(echoed, position);
        assert!(nimber.parse::<u32>().is_ok(), "{answer}");
    }
}

#[test]
fn eval_answers_for_every_game() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let cases = [
        (vec!["eval", "cram", "--question", "outcome"], "3x3\n3x4\n", vec!["loss", "win"]),
        (vec!["eval", "konane"], "..xo|oxox|xoxo|oxox x\n. o\n", vec!["loss", "loss"]),
        (vec!["eval", "kalah"], "0,1,0/0,1 S\n1,3\n", vec!["", "6"]),
        (vec!["eval", "kalah", "--rules", "empty-capture"], "3,2\n", vec!["4"]),
        (vec!["eval", "peg"], ".ooo|oooo|oooo\noo.\n", vec!["852", "1"]),
    ];
    for (arguments, input, expected) in cases {
        let output = grundy_with_input(&arguments, input.to_owned(), directory.path());
        let answers: Vec<&str> = output
            .stdout
            .lines()
            .map(|line| line.split_once('\t').map_or(line, |(_, answer)| answer))
            .collect();
        assert_eq!(answers, expected, "{arguments:?}: {output:?}");
        let bad = expected.iter().any(|answer| answer.is_empty());
        assert_eq!(output.code(), i32::from(bad), "{arguments:?}: {output:?}");
        assert_eq!(bad, output.stderr.contains("line 1"), "{arguments:?}: {output:?}");
    }
}
