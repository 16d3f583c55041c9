//! From game, position and flags to a problem's canonical fields: the one place where the command line meets the games.

use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use grundy_games::problem::{Fields, Problem, ProblemError};
use grundy_games::{konane, peg};

/// The games.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Game {
    /// Dominoes on a grid, either way round; who cannot move loses
    Cram,
    /// Seeds in houses
    Kalah,
    /// Jumping stones on a checkered board; who cannot move loses
    Konane,
    /// Counting peg solitaire's solutions
    Peg,
}

impl Game {
    /// Its name in a problem's fields.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cram => "cram",
            Self::Kalah => "kalah",
            Self::Konane => "konane",
            Self::Peg => "peg",
        }
    }
}

/// A problem on the command line.
#[derive(clap::Args)]
pub(super) struct ProblemArgs {
    /// The game
    pub game: Game,
    /// The position, rows joined by `|`; or a start: 3x12 (cram), 6x6 (konane), 6,4 (kalah: houses, seeds), english, european or triangle5 (peg)
    pub position: String,
    #[command(flatten)]
    pub flags: Flags,
}

impl ProblemArgs {
    /// The problem's canonical fields.
    pub fn fields(&self) -> Result<Fields, FlagError> {
        fields(self.game, &self.position, &self.flags)
    }
}

/// What the flags add to a position.
#[derive(clap::Args, Clone, Debug, Default)]
pub(super) struct Flags {
    /// What to find out: nimber or outcome (cram), winner or outcome (konane), values or gain (kalah), 'finish d4' (peg)
    #[arg(long)]
    pub question: Option<String>,
    /// Kalah: the rules variant, standard or empty-capture. Peg: triangular for a picture on the triangular lattice
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub rules: Option<String>,
    /// Kalah: only this opening turn, houses joined by `-`, such as 3-6
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub opening: Option<String>,
    /// Kalah: only whether openings reach this final store difference
    #[arg(long, allow_negative_numbers = true, value_name = "V", value_parser = difference)]
    pub at_least: Option<i16>,
    /// Konane: stones removed at the start: corner, center, or two cells such as b2,c2. Peg: the hole empty at the start
    #[arg(long)]
    pub start: Option<String>,
    /// Konane: who moves first from a start, black or white [default: black]
    #[arg(long, value_name = "SIDE")]
    pub first: Option<String>,
    /// Konane: who is to move in a picture, black or white
    #[arg(long, value_name = "SIDE")]
    pub to_move: Option<String>,
    /// Peg: where the last peg must end, a cell or any [default: the start hole of a named board, any of a picture]
    #[arg(long, value_name = "CELL")]
    pub finish: Option<String>,
}

/// Reads a store difference; whether a game can end with it is for the game to say.
fn difference(text: &str) -> Result<i16, String> {
    text.parse().map_err(|_| "expected a whole number such as 2 or -4".to_owned())
}

/// Why game, position and flags make no problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FlagError {
    /// A flag of another game.
    #[error("--{flag} does not apply to {game}")]
    OtherGame {
        /// The flag.
        flag: &'static str,
        /// The game.
        game: &'static str,
    },
    /// Flags that say the same thing twice, or contradict the position.
    #[error("{flag} cannot be given here: {reason}")]
    Conflict {
        /// The flag.
        flag: &'static str,
        /// What it conflicts with.
        reason: &'static str,
    },
    /// An empty board without a start.
    #[error("konane needs --start with an empty board: corner, center, or two cells such as b2,c2")]
    StartMissing,
    /// The game refuses a flag's value.
    #[error("{flag}: {reason}")]
    Value {
        /// The flag.
        flag: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The game refuses the problem.
    #[error(transparent)]
    Problem(#[from] ProblemError),
}

fn value(flag: &'static str, error: impl ToString) -> FlagError {
    FlagError::Value { flag, reason: error.to_string() }
}

/// Turns a game, a position's text and flags into the problem's canonical fields.
pub(super) fn fields(game: Game, position: &str, flags: &Flags) -> Result<Fields, FlagError> {
    flags.check(game)?;
    let mut rules = flags.rules.clone().unwrap_or_default();
    let (position, question) = match game {
        Game::Cram => (position.to_owned(), flags.question.clone().unwrap_or_default()),
        Game::Kalah => (position.to_owned(), kalah_question(flags)?),
        Game::Konane => (konane_position(position, flags)?, flags.question.clone().unwrap_or_default()),
        Game::Peg => {
            let fields = peg_position(position, flags)?;
            rules = fields.rules;
            (fields.position, fields.question)
        }
    };
    let fields = Fields { game: game.name().to_owned(), rules, position, question };
    Ok(Problem::from_fields(&fields)?.to_fields())
}

impl Flags {
    /// Refuses flags that other games have.
    pub fn check(&self, game: Game) -> Result<(), FlagError> {
        let given: [(&'static str, bool, &[Game]); 7] = [
            ("rules", self.rules.is_some(), &[Game::Kalah, Game::Peg]),
            ("opening", self.opening.is_some(), &[Game::Kalah]),
            ("at-least", self.at_least.is_some(), &[Game::Kalah]),
            ("start", self.start.is_some(), &[Game::Konane, Game::Peg]),
            ("first", self.first.is_some(), &[Game::Konane]),
            ("to-move", self.to_move.is_some(), &[Game::Konane]),
            ("finish", self.finish.is_some(), &[Game::Peg]),
        ];
        match given.into_iter().find(|(_, given, games)| *given && !games.contains(&game)) {
            Some((flag, ..)) => Err(FlagError::OtherGame { flag, game: game.name() }),
            None => Ok(()),
        }
    }
}

/// `values`, `at-least 2 3-6`, or what `--question` says.
fn kalah_question(flags: &Flags) -> Result<String, FlagError> {
    let composed = match (flags.at_least, &flags.opening) {
        (None, None) => return Ok(flags.question.clone().unwrap_or_default()),
        (None, Some(opening)) => format!("values {opening}"),
        (Some(bound), None) => format!("at-least {bound}"),
        (Some(bound), Some(opening)) => format!("at-least {bound} {opening}"),
    };
    match &flags.question {
        None => Ok(composed),
        Some(_) => Err(FlagError::Conflict {
            flag: "--question",
            reason: "--opening and --at-least make the question",
        }),
    }
}

/// Whether a text is a board's size, such as `6x6`. In a picture an `x` has no digits around it.
fn is_size(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
    text.split_once('x').is_some_and(|(rows, columns)| digits(rows) && digits(columns))
}

/// The picture with its mover, or the start position of an empty board.
fn konane_position(text: &str, flags: &Flags) -> Result<String, FlagError> {
    let text = text.trim();
    let side = |flag, text: &String| text.parse::<konane::Side>().map_err(|error| value(flag, error));
    let conflict = |flag, reason| Err(FlagError::Conflict { flag, reason });
    if is_size(text) {
        if flags.to_move.is_some() {
            return conflict("--to-move", "with an empty board --first says who moves");
        }
        let start = flags.start.as_ref().ok_or(FlagError::StartMissing)?;
        let start: konane::Start = start.parse().map_err(|error| value("--start", error))?;
        let first = flags.first.as_ref().map_or(Ok(konane::Side::Black), |text| side("--first", text))?;
        let (rows, columns) = konane::size_from_text(text).map_err(|error| value("position", error))?;
        let position =
            konane::Position::start(rows, columns, start, first).map_err(|error| value("--start", error))?;
        return Ok(position.to_string());
    }
    if flags.start.is_some() {
        return conflict("--start", "it goes with an empty board such as 6x6, not with a picture");
    }
    if flags.first.is_some() {
        return conflict(
            "--first",
            "it goes with an empty board such as 6x6; in a picture --to-move says who moves",
        );
    }
    match &flags.to_move {
        None => Ok(text.to_owned()),
        Some(_) if text.contains(char::is_whitespace) => conflict("--to-move", "the position says who moves"),
        Some(mover) => Ok(format!("{text} {}", side("--to-move", mover)?.letter())),
    }
}

/// A picture with its rules, or a named board's start, which has its own; and the question.
fn peg_position(text: &str, flags: &Flags) -> Result<Fields, FlagError> {
    if flags.finish.is_some() && flags.question.is_some() {
        return Err(FlagError::Conflict { flag: "--question", reason: "--finish makes the question" });
    }
    if text.chars().any(|c| c.is_alphabetic() && c != 'o') {
        let named =
            flags.question.as_deref().map(|question| question.strip_prefix("finish ").unwrap_or(question));
        let finish = flags.finish.as_deref().or(named);
        if flags.rules.is_some() {
            return Err(FlagError::Conflict { flag: "--rules", reason: "a named board has its own" });
        }
        let problem = peg::Problem::named(text, flags.start.as_deref(), finish);
        return Ok(problem.map_err(|error| value("peg", error))?.to_fields());
    }
    if flags.start.is_some() {
        return Err(FlagError::Conflict {
            flag: "--start",
            reason: "it goes with a named board; a picture shows its start",
        });
    }
    let question = match &flags.finish {
        Some(finish) => format!("finish {finish}"),
        None => flags.question.clone().unwrap_or_default(),
    };
    let rules = flags.rules.clone().unwrap_or_default();
    Ok(Fields { game: Game::Peg.name().to_owned(), rules, position: text.to_owned(), question })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        problem: ProblemArgs,
    }

    /// Reads a command line whose words are separated by two spaces, as positions may hold one.
    fn read(line: &str) -> Result<Fields, String> {
        let words = std::iter::once("grundy").chain(line.split("  "));
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        line.problem.fields().map_err(|error| error.to_string())
    }

    #[test]
    fn command_lines_become_problems() {
        for (line, expected) in [
            ("cram  1x3", "cram ..., nimber"),
            ("cram  ....|.##.  --question  outcome", "cram ....|.##., outcome"),
            ("konane  2x3  --start  corner", "konane ..x|oxo x, winner"),
            ("konane  2x3  --start  b1,c1  --first  white", "konane x..|oxo o, winner"),
            ("konane  4x4  --start  center", "konane xoxo|oxox|x..o|oxox x, winner"),
            ("konane  xo.  --to-move  black", "konane xo. x, winner"),
            ("konane  xo. o  --question  outcome", "konane xo. o, outcome"),
            ("kalah  2,1", "kalah 1,1,0/1,1,0 S, standard, values"),
            (
                "kalah  2,1  --rules  empty-capture  --opening  2-1",
                "kalah 1,1,0/1,1,0 S, empty-capture, values 2-1",
            ),
            ("kalah  2,1  --at-least  -2  --opening  1", "kalah 1,1,0/1,1,0 S, standard, at-least -2 1"),
            ("kalah  2,1  --question  gain", "kalah 1,1,0/1,1,0 S, standard, gain"),
            ("peg  oo.  --finish  c1", "peg oo., finish c1"),
            ("peg  oo.", "peg oo., finish any"),
            ("peg  english", "peg ##ooo##|##ooo##|ooooooo|ooo.ooo|ooooooo|##ooo##|##ooo##, finish d4"),
            ("peg  triangle3", "peg .##|oo#|ooo, triangular, finish a1"),
            ("peg  oo.  --rules  triangular", "peg oo., triangular, finish any"),
            (
                "peg  english  --start  d1  --finish  any",
                "peg ##o.o##|##ooo##|ooooooo|ooooooo|ooooooo|##ooo##|##ooo##, finish any",
            ),
        ] {
            assert_eq!(read(line).map(|fields| fields.to_string()).as_deref(), Ok(expected), "{line}");
        }
    }

    #[test]
    fn mistakes_name_the_flag() {
        for (line, expected) in [
            ("cram  1x3  --opening  3-6", "--opening does not apply to cram"),
            ("peg  english  --first  black", "--first does not apply to peg"),
            ("konane  6x6", "konane needs --start"),
            ("konane  6x6  --start  middle", "--start: unknown start 'middle'"),
            ("konane  6x6  --start  corner  --to-move  white", "--to-move cannot be given here"),
            ("konane  xo.  --start  corner", "--start cannot be given here"),
            (
                "konane  xo. x  --to-move  white",
                "--to-move cannot be given here: the position says who moves",
            ),
            ("konane  xo.  --to-move  red", "--to-move: unknown side 'red'"),
            ("konane  xo.", "the side to move is missing"),
            ("kalah  6,4  --question  gain  --opening  1", "--question cannot be given here"),
            ("kalah  6,4  --rules  house", "unknown rules 'house'"),
            ("peg  oo.  --start  a1", "--start cannot be given here"),
            ("peg  oo.  --finish  c1  --question  finish c1", "--question cannot be given here"),
            ("peg  triangle5  --rules  triangular", "--rules cannot be given here"),
            ("peg  french", "unknown board 'french'"),
            ("cram  3y4", "cram: "),
            ("chess  8x8", "invalid value 'chess'"),
        ] {
            let error = read(line).expect_err("the line is wrong");
            assert!(error.contains(expected), "{line} gives: {error}");
        }
    }
}
