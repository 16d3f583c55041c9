//! The one-line notation of positions: `s1,..,sh,S/n1,..,nh,N P`, and `h,s` for a start position.

use super::position::pack;
use super::{HOUSES_MAX, Player, Position, SEEDS_MAX};
use std::fmt;
use std::str::FromStr;

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (player, end) in [(Player::South, "/"), (Player::North, " ")] {
            for seeds in self.houses_of(player) {
                write!(f, "{seeds},")?;
            }
            write!(f, "{}{end}", self.store_of(player))?;
        }
        f.write_str(if self.mover() == Player::South { "S" } else { "N" })
    }
}

impl FromStr for Position {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        let shape = || NotationError::Shape { text: text.trim().to_owned() };
        let Some((south, rest)) = text.split_once('/') else {
            let (houses, seeds) = text.trim().split_once(',').ok_or_else(shape)?;
            if seeds.contains([',', ' ']) {
                return Err(shape());
            }
            return start(houses, seeds);
        };
        let mut words = rest.split_whitespace();
        let (north, mover) = (words.next().ok_or_else(shape)?, words.next());
        if words.next().is_some() || south.trim().contains(char::is_whitespace) {
            return Err(shape());
        }
        let mover = match mover {
            Some("S") => Player::South,
            Some("N") => Player::North,
            other => {
                return Err(NotationError::Mover { text: other.unwrap_or_default().to_owned() });
            }
        };
        let (south_houses, south_store) = side(Player::South, south.trim())?;
        let (north_houses, north_store) = side(Player::North, north)?;
        if south_houses.len() != north_houses.len() {
            return Err(NotationError::Unequal { south: south_houses.len(), north: north_houses.len() });
        }
        let seeds: u32 = [&south_houses[..], &north_houses[..], &[south_store, north_store]]
            .concat()
            .into_iter()
            .map(u32::from)
            .sum();
        if seeds > u32::from(SEEDS_MAX) {
            return Err(NotationError::TooMany { seeds });
        }
        let sides = [pack(&south_houses), pack(&north_houses)];
        // `side` lets at most HOUSES_MAX houses through.
        Ok(Self::assemble(south_houses.len() as u8, sides, [south_store, north_store], mover))
    }
}

/// A start position from its two numbers.
fn start(houses: &str, seeds: &str) -> Result<Position, NotationError> {
    let houses = number(houses, || "the number of houses".to_owned())?;
    let seeds = number(seeds, || "the number of seeds a house".to_owned())?;
    if houses == 0 || houses > HOUSES_MAX {
        return Err(NotationError::Houses { side: "a side", houses: usize::from(houses) });
    }
    let total = 2 * u32::from(houses) * u32::from(seeds);
    Position::start(houses, seeds).ok_or(NotationError::TooMany { seeds: total })
}

/// One side's houses and store.
fn side(player: Player, text: &str) -> Result<(Vec<u8>, u8), NotationError> {
    let parts: Vec<&str> = text.split(',').collect();
    let houses = parts.len() - 1;
    if houses == 0 || houses > usize::from(HOUSES_MAX) {
        return Err(NotationError::Houses { side: player.name(), houses });
    }
    let mut seeds = Vec::with_capacity(parts.len());
    for (index, part) in parts.iter().enumerate() {
        seeds.push(number(part, || match index == houses {
            true => format!("{}'s store", player.name()),
            false => format!("{}'s house {}", player.name(), index + 1),
        })?);
    }
    let store = seeds.pop().unwrap_or_default();
    Ok((seeds, store))
}

/// A whole number that fits a house. Only digits: `parse` alone would let a sign through.
fn number(text: &str, place: impl FnOnce() -> String) -> Result<u8, NotationError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if digits => Ok(number),
        _ => Err(NotationError::Number { place: place(), text: text.to_owned() }),
    }
}

/// Why a text is no position of Kalah.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotationError {
    /// Neither of the two forms.
    #[error(
        "'{text}' is no position: expected 's1,..,sh,S/n1,..,nh,N P' (houses from each side's left, stores, mover S or N), or 'h,s' for a start position"
    )]
    Shape {
        /// What was given.
        text: String,
    },
    /// No number of seeds.
    #[error("{place} is '{text}': expected a whole number, at most {SEEDS_MAX}")]
    Number {
        /// The house or store.
        place: String,
        /// What stands there.
        text: String,
    },
    /// Too few or too many houses.
    #[error("{side} has {houses} houses: expected 1 to {HOUSES_MAX} and then a store")]
    Houses {
        /// Whose.
        side: &'static str,
        /// How many.
        houses: usize,
    },
    /// The sides differ.
    #[error("south has {south} houses and north {north}: both need the same number")]
    Unequal {
        /// South's.
        south: usize,
        /// North's.
        north: usize,
    },
    /// Too many seeds for a byte a house.
    #[error("{seeds} seeds altogether: at most {SEEDS_MAX} are allowed, stores included")]
    TooMany {
        /// How many.
        seeds: u32,
    },
    /// No such side.
    #[error("the mover is '{text}': expected S or N after North's store")]
    Mover {
        /// What was given.
        text: String,
    },
}
