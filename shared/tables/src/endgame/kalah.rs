//! Kalah's databases: exact gains, one file for each number of seeds in play of a board size and rules variant.
//!
//! A layer is filled from those of fewer seeds, and checked against them. So files are opened or built from the fewest seeds on: a
//! build that was killed goes on with the first layer that is missing.

use super::EndgameError;
use super::build::{Origin, Recipe, open_or_build};
use super::cram::EXTENSION;
use super::header::{Header, Kind, PARAMETERS};
use super::progress::Progress;
use super::provider::GoOn;
use super::sealed::{Payload, SealedFile, sample};
use bytes::Bytes;
use grundy_games::kalah::{HOUSES_MAX, MoveTable, Rules};
use grundy_search::kalah::fill::Filler;
use grundy_search::kalah::layers::{Index, LAYER_SEEDS_MAX, Layers};
use grundy_search::kalah::tables::entries;
use std::cell::OnceCell;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::info;

/// The kind of these files. Payload: one byte for each board of the layer, see `grundy_search::kalah::layers`.
pub const KIND: Kind = Kind::new("kalah-gains");

/// How file names start.
const PREFIX: &str = "kalah-gains-";

/// No index counts more entries.
const ENTRIES_MAX: u64 = 1 << 46;

/// Boards that go into a fingerprint.
const FINGERPRINT_BOARDS: usize = 1_000;

/// Which layer a file holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layer {
    /// Houses a side.
    pub houses: u8,
    /// The rules variant.
    pub rules: Rules,
    /// Seeds in play.
    pub seeds: u8,
}

impl Layer {
    /// The file's name: `kalah-gains-HOUSES-RULES-SEEDS.edb`, with three digits of seeds, so that names sort by them.
    pub fn file_name(&self) -> String {
        let Self { houses, rules, seeds } = self;
        format!("{PREFIX}{houses}-{rules}-{seeds:03}.{EXTENSION}")
    }

    /// What a file of this name holds; `None` for any other name.
    pub fn of_file_name(name: &str) -> Option<Self> {
        let fields = name.strip_prefix(PREFIX)?.strip_suffix(EXTENSION)?.strip_suffix('.')?;
        let (houses, rest) = fields.split_once('-')?;
        let (rules, seeds) = rest.rsplit_once('-')?;
        let layer =
            Self { houses: houses.parse().ok()?, rules: rules.parse().ok()?, seeds: seeds.parse().ok()? };
        (layer.is_possible() && layer.file_name() == name).then_some(layer)
    }

    /// What a file with this header holds; `None` for another kind.
    pub fn of_header(header: &Header) -> Option<Self> {
        let [houses, rules, seeds, ..] = header.parameters;
        let rules = [Rules::Standard, Rules::EmptyCapture].into_iter().find(|of| number(*of) == rules)?;
        let layer = Self { houses: houses.try_into().ok()?, rules, seeds: seeds.try_into().ok()? };
        (header.kind == KIND && layer.is_possible()).then_some(layer)
    }

    fn is_possible(&self) -> bool {
        (1..=HOUSES_MAX).contains(&self.houses)
            && (2..=LAYER_SEEDS_MAX).contains(&self.seeds)
            && entries(self.houses, self.seeds) <= ENTRIES_MAX
    }

    /// The header of the file, by an index that has the layer.
    pub fn header(&self, index: &Index) -> Header {
        let mut parameters = [0; PARAMETERS];
        parameters[..3].copy_from_slice(&[u64::from(self.houses), number(self.rules), u64::from(self.seeds)]);
        Header {
            kind: KIND,
            parameters,
            fingerprint: self.fingerprint(index),
            payload_bytes: index.len(self.seeds.into()) as u64,
        }
    }

    /// CRC-32C of some boards, each with its place in the layer: entries are filed by it, so a layer of another numbering is another
    /// layer.
    fn fingerprint(&self, index: &Index) -> u32 {
        let seeds = usize::from(self.seeds);
        let word = |crc, number: u64| crc32c::crc32c_append(crc, &number.to_le_bytes());
        sample(index.len(seeds), FINGERPRINT_BOARDS, 0).fold(0, |crc, place| {
            match index.board(seeds, place) {
                Some(board) => word(word(word(crc, place as u64), board.mine), board.theirs),
                None => crc,
            }
        })
    }

    /// Checks so many entries of a file against the rules and the layers of fewer seeds, chosen by a seed.
    ///
    /// # Errors
    /// [`EndgameError::Damaged`] names the first that is wrong.
    pub fn check_entries(
        &self,
        below: &Layers,
        file: &Arc<SealedFile>,
        count: usize,
        seed: u64,
    ) -> Result<(), EndgameError> {
        let damaged = |place: String, reason: &str| Err(EndgameError::damaged(file.path(), place, reason));
        let mut layers = below.clone();
        let seeds = usize::from(self.seeds);
        if layers.len() != seeds || !layers.push(payload(file)) {
            return damaged("length".to_owned(), "it is not that of the next layer");
        }
        let moves = MoveTable::new(self.houses, self.rules);
        let mut places = sample(layers.index().len(seeds), count, seed);
        match places.find(|place| layers.is_right(&moves, seeds, *place) != Some(true)) {
            Some(place) => damaged(format!("entry {place}"), "it is not the best of its moves"),
            None => Ok(()),
        }
    }
}

/// A rules variant in a header.
fn number(rules: Rules) -> u64 {
    match rules {
        Rules::Standard => 0,
        Rules::EmptyCapture => 1,
    }
}

/// A file's entries, as layers take them.
pub(super) fn payload(file: &Arc<SealedFile>) -> Bytes {
    Bytes::from_owner(Payload(Arc::clone(file)))
}

/// A layer's file that is open.
pub struct LayerFile {
    /// What it holds.
    pub layer: Layer,
    /// The file.
    pub file: Arc<SealedFile>,
    /// Whether it was there.
    pub origin: Origin,
    /// How long that took.
    pub took: Duration,
}

/// How to get layers in files.
pub(super) struct LayerFiles<'a> {
    pub(super) directory: &'a Path,
    pub(super) rules: Rules,
    /// Up to so many seeds layers are built that are not there.
    pub(super) built: u8,
    /// Up to so many they are opened where they are there.
    pub(super) opened: u8,
    pub(super) threads: usize,
    pub(super) go_on: &'a GoOn,
}

impl LayerFiles<'_> {
    /// Adds layers to those of fewer seeds, and tells of each file. `shared` has files that this process has open.
    ///
    /// # Errors
    /// Any [`EndgameError`] of a layer; those before it are there.
    pub(super) fn add(
        &self,
        layers: &mut Layers,
        shared: impl Fn(&Path) -> Option<Arc<SealedFile>>,
        mut tell: impl FnMut(LayerFile),
    ) -> Result<(), EndgameError> {
        let houses = layers.index().sides().houses();
        let moves = MoveTable::new(houses, self.rules);
        let filler = OnceCell::new();
        // Below are those in memory.
        let first = u8::try_from(layers.len()).unwrap_or(u8::MAX);
        for seeds in first..=self.opened {
            let layer = Layer { houses, rules: self.rules, seeds };
            let path = self.directory.join(layer.file_name());
            let header = layer.header(layers.index());
            let begun = Instant::now();
            let fill = |bytes: &mut [u8]| {
                let filler = filler.get_or_init(|| Filler::new(layers.index(), &moves, self.built));
                let (rules, total, threads) = (self.rules, bytes.len(), self.threads);
                info!(event = "endgame", file = %path.display(), houses, %rules, seeds, bytes = total, threads, "building an endgame database");
                let progress = Progress::new(&path, total, self.go_on);
                filler.fill(layers, bytes, threads, &|filled| progress.report(filled))
            };
            let check = |file: &Arc<SealedFile>, count, seed| layer.check_entries(layers, file, count, seed);
            let (threads, go_on) = (self.threads, self.go_on);
            let recipe = Recipe { path: &path, header, fill: &fill, check: &check, threads, go_on };
            let (file, origin) = match shared(&path).filter(|file| *file.header() == header) {
                Some(file) => (file, Origin::Found),
                None if seeds <= self.built => open_or_build(&recipe)?,
                None => match recipe.open()? {
                    Some(file) => (file, Origin::Found),
                    None => return Ok(()),
                },
            };
            if !layers.push(payload(&file)) {
                return Err(EndgameError::damaged(&path, "length", "it is not that of the next layer"));
            }
            tell(LayerFile { layer, file, origin, took: begun.elapsed() });
        }
        Ok(())
    }
}
