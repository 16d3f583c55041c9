//! How much memory there is, and how `solve` shares it out.

use grundy_tables::StorageMemory;
use std::fs;

/// What is assumed where the system does not say.
const FALLBACK_BYTES: u64 = 2 << 30;

/// The least that a worker gets: its tables shrink no further than this usefully.
const WORKER_BYTES_MIN: u64 = 16 << 20;

/// Half of the memory that this process may use: of the machine's, or of its control group's if that is less.
pub(super) fn half_of_machine() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_of(&text));
    let group =
        fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    let bytes = [machine, group].into_iter().flatten().min().unwrap_or(FALLBACK_BYTES);
    bytes / 2
}

/// `MemTotal` of `/proc/meminfo`, in bytes.
fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The coordinator's share: a sixteenth for each use, within the default, which serves a job of any size.
pub(super) fn storage_share(total: u64) -> StorageMemory {
    let most = StorageMemory::default();
    let share = usize::try_from(total / 16).unwrap_or(usize::MAX);
    StorageMemory { cache: share.min(most.cache), write_buffers: share.min(most.write_buffers) }
}

/// What is left for each of `workers` worker processes.
pub(super) fn worker_share(total: u64, workers: u32) -> u64 {
    let StorageMemory { cache, write_buffers } = storage_share(total);
    let taken = (cache as u64).saturating_add(write_buffers as u64);
    (total.saturating_sub(taken) / u64::from(workers.max(1))).max(WORKER_BYTES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_no_more_than_the_total() {
        assert_eq!(total_of("MemFree: 5 kB\nMemTotal:       24610064 kB\n"), Some(24_610_064 * 1024));
        assert_eq!(total_of("MemTotal: lots\n"), None);
        for total in [1 << 30, 4 << 30, 3 << 40] {
            for workers in [1, 7, 64] {
                if total / u64::from(workers) < 2 * WORKER_BYTES_MIN {
                    continue;
                }
                let StorageMemory { cache, write_buffers } = storage_share(total);
                let used =
                    cache as u64 + write_buffers as u64 + u64::from(workers) * worker_share(total, workers);
                assert!(used <= total && used > total / 2, "{used} of {total} for {workers} workers");
            }
        }
        assert_eq!(worker_share(0, 4), WORKER_BYTES_MIN);
    }
}
