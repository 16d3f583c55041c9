//! What the machine offers, for defaults.

use grundy_tables::machine::process_memory;
use std::path::Path;

/// Memory taken to be there when the system does not tell.
const UNKNOWN_MEMORY_BYTES: u64 = 4 << 30;

/// The memory this process may use, in bytes: the machine's, or its control group's if that is less.
pub fn memory_bytes() -> u64 {
    process_memory().unwrap_or(UNKNOWN_MEMORY_BYTES)
}

/// How many threads this process may run at a time.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A worker's name when the user gives none: the machine's name and a checksum of the data directory's path.
///
/// It stays the same over restarts, so that a restarted worker takes the place of its former self, and differs between the workers
/// of a machine, since no two can have one data directory open.
pub fn worker_name(data: &Path) -> String {
    let host = read("/proc/sys/kernel/hostname").or_else(|| read("/etc/hostname"));
    let host: String = host.unwrap_or_default().trim().chars().filter(|c| !c.is_control()).take(64).collect();
    let host = if host.is_empty() { "worker" } else { host.as_str() };
    let path = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
    format!("{host}-{:08x}", crc32c::crc32c(path.as_os_str().as_encoded_bytes()))
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_stable_valid_and_one_a_directory() {
        let name = worker_name(Path::new("here/data"));
        assert_eq!(name, worker_name(Path::new("here/data")));
        assert_ne!(name, worker_name(Path::new("here/data2")));
        grundy_proto::convert::worker_name(&name).expect("a default name is valid");
    }
}
