//! How much memory there is, for defaults and limits.

use std::fs::read_to_string;

/// The machine's memory in bytes; `None` where the system does not tell.
pub fn machine_memory() -> Option<u64> {
    total_of_meminfo(&read_to_string("/proc/meminfo").ok()?)
}

/// The memory that this process may use, in bytes: the machine's, or its control group's if that is less. `None` where the
/// system tells neither.
pub fn process_memory() -> Option<u64> {
    // `max` in place of a number is no limit, and does not parse.
    let group = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let group = group.into_iter().find_map(|path| read_to_string(path).ok()?.trim().parse().ok());
    [machine_memory(), group].into_iter().flatten().min()
}

/// `MemTotal` of `/proc/meminfo`, in bytes.
fn total_of_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_from_meminfo() {
        let text = "MemTotal:       16316412 kB\nMemFree:         1234 kB\n";
        assert_eq!(total_of_meminfo(text), Some(16_316_412 * 1024));
        let second = "MemFree: 5 kB\nMemTotal:       24610064 kB\n";
        assert_eq!(total_of_meminfo(second), Some(24_610_064 * 1024));
        for text in ["", "MemTotal: kB", "MemTotal: 12", "MemFree: 5 kB", "MemTotal: lots\n"] {
            assert_eq!(total_of_meminfo(text), None, "{text:?}");
        }
    }
}
