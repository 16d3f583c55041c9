//! The data directory of `solve`: its default name, and whether it holds this problem.

use grundy_games::problem::Fields;
use grundy_tables::jobs::record::Loaded;
use std::path::{Path, PathBuf};

/// Where data directories go unless told otherwise, under the current directory.
const ROOT: &str = "grundy-data";

/// The longest readable part of a directory's name.
const SLUG_CHARS_MAX: usize = 48;

/// The directory that a problem has unless told otherwise. A function of its canonical fields alone, so that the same
/// problem finds its data however it was written: `grundy-data/cram-3x12-nimber-8d1f6a20`.
pub(super) fn default_for(fields: &Fields) -> PathBuf {
    let Fields { game, rules, position, question } = fields;
    let text = [game, rules, position, question].map(String::as_str).join("\n");
    Path::new(ROOT).join(format!("{}-{:08x}", slug(fields), crc32c::crc32c(text.as_bytes())))
}

/// A readable name of a problem. Not unique: the checksum beside it is.
fn slug(fields: &Fields) -> String {
    let position = fields.position.split(' ').next().unwrap_or_default();
    let picture = !position.is_empty() && position.chars().all(|c| ".#xo|".contains(c));
    let position = if picture {
        let rows = position.split('|').count();
        let columns = position.split('|').next().map_or(0, str::len);
        format!("{rows}x{columns}")
    } else {
        fields.position.clone()
    };
    let words = [&fields.game, &position, &fields.rules, &fields.question].map(String::as_str).join("-");
    let mut slug = String::new();
    for c in words.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }) {
        // A minus sign is lost here; the checksum keeps such problems apart.
        if c != '-' || !slug.ends_with('-') {
            slug.push(c);
        }
    }
    slug.truncate(SLUG_CHARS_MAX);
    slug.trim_matches('-').to_owned()
}

/// The directory holds another problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} holds another problem: {differences}; give another --data, or none for a directory of its own", .directory.display())]
pub(super) struct OtherProblem {
    directory: PathBuf,
    /// Each field that differs, with both values.
    differences: String,
}

/// Checks that a directory holds no other problem than this.
pub(super) fn check(directory: &Path, loaded: &Loaded, fields: &Fields) -> Result<(), OtherProblem> {
    let Some((_, other)) = loaded.jobs.iter().find(|(_, job)| job.fields != *fields) else {
        return Ok(());
    };
    let differences = fields.differences(&other.fields).into_iter();
    let differences =
        differences.map(|(name, ours, theirs)| format!("{name} is '{theirs}' there and '{ours}' here"));
    Err(OtherProblem {
        directory: directory.to_path_buf(),
        differences: differences.collect::<Vec<_>>().join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use grundy_tables::jobs::record::{JobId, JobRecord};

    fn fields(game: &str, rules: &str, position: &str, question: &str) -> Fields {
        let [game, rules, position, question] = [game, rules, position, question].map(str::to_owned);
        Fields { game, rules, position, question }
    }

    #[test]
    fn names_are_readable() {
        for (fields, name) in [
            (fields("cram", "", "....|....|....", "nimber"), "cram-3x4-nimber"),
            (fields("konane", "", "xo.x|.xo. x", "winner"), "konane-2x4-winner"),
            (
                fields("kalah", "standard", "4,4,0/4,4,0 S", "at-least -2 1-2"),
                "kalah-4-4-0-4-4-0-s-standard-at-least-2-1-2",
            ),
            (fields("peg", "", "##o##|ooooo", "finish any"), "peg-2x5-finish-any"),
        ] {
            assert_eq!(slug(&fields), name);
            let directory = default_for(&fields).display().to_string();
            let (readable, checksum) = directory.rsplit_once('-').expect("the name has a checksum");
            assert_eq!((readable, checksum.len()), (format!("grundy-data/{name}").as_str(), 8));
        }
        let long = fields("kalah", "empty-capture", &format!("{},0/1 S", ["12"; 40].join(",")), "values");
        assert!(slug(&long).len() <= SLUG_CHARS_MAX);
        // The slug is the same, the directory is not.
        let (a, b) = (fields("cram", "", ".#.", "nimber"), fields("cram", "", "...", "nimber"));
        assert_ne!(default_for(&a), default_for(&b));
    }

    #[test]
    fn another_problem_is_refused_with_the_difference() {
        let ours = fields("cram", "", "...", "nimber");
        let job = |fields| JobRecord::new(fields, 0);
        let loaded = |fields| Loaded { jobs: vec![(JobId(1), job(fields))], ..Loaded::default() };
        let directory = Path::new("d");
        assert_eq!(check(directory, &Loaded::default(), &ours), Ok(()));
        assert_eq!(check(directory, &loaded(ours.clone()), &ours), Ok(()));
        let error = check(directory, &loaded(fields("cram", "", "....", "outcome")), &ours)
            .expect_err("it is another");
        let expected = "d holds another problem: position is '....' there and '...' here, question is 'outcome' there and \
                        'nimber' here; give another --data, or none for a directory of its own";
        assert_eq!(error.to_string(), expected);
    }
}
