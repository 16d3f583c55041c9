//! What the machine offers, for defaults.

use std::path::Path;

/// Memory taken to be there when the system does not tell.
const UNKNOWN_MEMORY_BYTES: u64 = 4 << 30;

/// The memory this process may use, in bytes: the machine's, or its control group's if that is less.
pub fn memory_bytes() -> u64 {
    let machine = read("/proc/meminfo").as_deref().and_then(total_of_meminfo);
    // `max` in place of a number is no limit, and does not parse.
    let group = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let group = group.into_iter().find_map(|path| read(path)?.trim().parse().ok());
    [machine, group].into_iter().flatten().min().unwrap_or(UNKNOWN_MEMORY_BYTES)
}

fn total_of_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
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
    fn the_total_is_read_from_meminfo() {
        let text = "MemTotal:       16316412 kB\nMemFree:         1234 kB\n";
        assert_eq!(total_of_meminfo(text), Some(16_316_412 * 1024));
        for text in ["", "MemTotal: kB", "MemTotal: 12", "MemFree: 5 kB"] {
            assert_eq!(total_of_meminfo(text), None, "{text:?}");
        }
    }

    #[test]
    fn names_are_stable_valid_and_one_a_directory() {
        let name = worker_name(Path::new("here/data"));
        assert_eq!(name, worker_name(Path::new("here/data")));
        assert_ne!(name, worker_name(Path::new("here/data2")));
        grundy_proto::convert::worker_name(&name).expect("a default name is valid");
    }
}
