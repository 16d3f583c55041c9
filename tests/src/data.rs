//! Known answers as data files: TAB-separated, first line the columns, `#` comments name the source.

/// The rows of a file, each as its fields.
///
/// # Panics
/// When a row has another number of fields than the header.
pub fn rows(text: &str) -> Vec<Vec<&str>> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let columns = lines.next().map_or(0, |header| header.split('\t').count());
    lines
        .map(|line| {
            let row: Vec<&str> = line.split('\t').collect();
            assert_eq!(row.len(), columns, "the row {line:?} has another number of fields than the header");
            row
        })
        .collect()
}
