//! Openings: the mover's whole first turns, free turns included, and the replay of lines in bin numbers.

use super::{Board, MoveTable, Position};
use std::fmt;

/// The most openings that one question may be about. Chains of free turns multiply; past this, ask for one by name.
pub const OPENINGS_MAX: usize = 4096;

/// How many openings an error message lists.
const LISTED_MAX: usize = 64;

/// A whole turn of the mover: houses played until the turn passes or the game ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opening {
    /// The houses in the order played, numbered from 1 at the mover's left.
    pub houses: Vec<u8>,
    /// What the turn put into the mover's store.
    pub banked: u8,
    /// The houses after it, seen from the side named by `passes`.
    pub board: Board,
    /// Whether the turn passes; if not, the game ended with a seed in the mover's store and `board` is still its view.
    pub passes: bool,
}

impl Opening {
    /// The turn in the bin numbers of the position it opens.
    pub fn bins(&self, position: &Position) -> Vec<u8> {
        self.houses.iter().map(|house| position.bin(house - 1)).collect()
    }
}

impl fmt::Display for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&name(&self.houses))
    }
}

/// House numbers joined by `-`.
fn name(houses: &[u8]) -> String {
    houses.iter().map(u8::to_string).collect::<Vec<_>>().join("-")
}

/// Every opening of a board, ordered by the houses played. None when the game is over.
///
/// # Errors
/// [`OpeningError::TooMany`] past [`OPENINGS_MAX`].
pub fn openings(table: &MoveTable, board: Board) -> Result<Vec<Opening>, OpeningError> {
    let mut found = Vec::new();
    collect(table, board, 0, &mut Vec::new(), &mut found, OPENINGS_MAX);
    if found.len() > OPENINGS_MAX {
        return Err(OpeningError::TooMany);
    }
    Ok(found)
}

/// Adds the turns that go on from `board` to `found` until there are more than `most`.
fn collect(
    table: &MoveTable,
    board: Board,
    banked: u8,
    houses: &mut Vec<u8>,
    found: &mut Vec<Opening>,
    most: usize,
) {
    for house in 0..table.houses() {
        let Some(played) = table.play(board, house) else {
            continue;
        };
        if found.len() > most {
            return;
        }
        houses.push(house + 1);
        let banked = banked + played.banked;
        if played.again && !played.board.is_over() {
            collect(table, played.board, banked, houses, found, most);
        } else {
            found.push(Opening {
                houses: houses.clone(),
                banked,
                board: played.board,
                passes: !played.again,
            });
        }
        houses.pop();
    }
}

/// Reads an opening such as `4` or `3-6`.
///
/// # Errors
/// Names the house that cannot be played, or says that the turn is too short or too long, and lists what would be right.
pub fn parse_opening(table: &MoveTable, board: Board, text: &str) -> Result<Opening, OpeningError> {
    let wrong = |reason: String| {
        let mut found = Vec::new();
        collect(table, board, 0, &mut Vec::new(), &mut found, LISTED_MAX);
        let mut valid: Vec<String> = found.iter().take(LISTED_MAX).map(Opening::to_string).collect();
        if found.len() > LISTED_MAX {
            valid.push("and more".to_owned());
        }
        let valid = if valid.is_empty() { "none, the game is over".to_owned() } else { valid.join(", ") };
        OpeningError::Invalid { opening: text.to_owned(), reason, valid }
    };
    let mut opening = Opening { houses: Vec::new(), banked: 0, board, passes: false };
    for part in text.split('-') {
        if !opening.houses.is_empty() && (opening.passes || opening.board.is_over()) {
            return Err(wrong(format!("the turn ends after {}", name(&opening.houses))));
        }
        let house = match part.parse::<u8>() {
            // `parse` alone would let a sign or leading zeros through.
            Ok(house) if (1..=table.houses()).contains(&house) && house.to_string() == part => house,
            _ => {
                return Err(wrong(format!("'{part}' is no house from 1 to {}", table.houses())));
            }
        };
        let played = table.play(opening.board, house - 1).ok_or_else(|| match opening.board.is_over() {
            true => wrong("the game is over".to_owned()),
            false => wrong(format!("house {house} is empty")),
        })?;
        opening.houses.push(house);
        opening.banked += played.banked;
        (opening.board, opening.passes) = (played.board, !played.again);
    }
    if !opening.passes && !opening.board.is_over() {
        return Err(wrong(format!("after {} the mover moves again", name(&opening.houses))));
    }
    Ok(opening)
}

/// Plays moves given in bin numbers, one after the other.
///
/// # Errors
/// [`MoveError`] for the first one that the rules do not allow.
pub fn replay(table: &MoveTable, position: &Position, bins: &[u8]) -> Result<Position, MoveError> {
    bins.iter().enumerate().try_fold(*position, |position, (index, &bin)| {
        let played = position.house_of_bin(bin).and_then(|house| position.play(table, house));
        played.ok_or(MoveError { number: index + 1, bin, position })
    })
}

/// A move that the rules do not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "move {number} plays bin {bin} in {position}: expected a bin of the mover that holds seeds, in a game that goes on"
)]
pub struct MoveError {
    /// Which move of the line, from 1.
    pub number: usize,
    /// The bin.
    pub bin: u8,
    /// The position it is played in.
    pub position: Position,
}

/// Why a text is no opening, or why all openings cannot be asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpeningError {
    /// Not a whole turn.
    #[error("opening '{opening}': {reason}; valid openings: {valid}")]
    Invalid {
        /// What was given.
        opening: String,
        /// What is wrong, where.
        reason: String,
        /// The openings there are.
        valid: String,
    },
    /// A question about too many.
    #[error("the position has more than {OPENINGS_MAX} openings: ask about one of them by name")]
    TooMany,
}
