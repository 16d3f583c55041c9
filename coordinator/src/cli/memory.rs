//! How much memory there is, and how `solve` shares it out.

use super::output::counted;
use bytesize::ByteSize;
use grundy_tables::machine::{machine_memory, process_memory};
use grundy_tables::{PROCESS_BYTES, StorageMemory, worker_memory_min};

/// What is assumed where the system does not say.
const FALLBACK_BYTES: u64 = 2 << 30;

/// Checks that the machine has as much memory as was asked for.
///
/// # Errors
/// Both, in words.
pub(super) fn check(total: u64) -> Result<u64, String> {
    match machine_memory() {
        Some(machine) if total > machine => {
            Err(format!("memory of {} is more than this machine's {}", ByteSize(total), ByteSize(machine)))
        }
        _ => Ok(total),
    }
}

/// Half of the memory that this process may use: of the machine's, or of its control group's if that is less.
pub(super) fn half_of_machine() -> u64 {
    process_memory().unwrap_or(FALLBACK_BYTES) / 2
}

/// The coordinator's share: a sixteenth for each use, within the default, which serves a job of any size.
pub(super) fn storage_share(total: u64) -> StorageMemory {
    let most = StorageMemory::default();
    let share = usize::try_from(total / 16).unwrap_or(usize::MAX);
    StorageMemory { cache: share.min(most.cache), write_buffers: share.min(most.write_buffers) }
}

/// What is left for each of `workers` worker processes of `threads` threads.
///
/// # Errors
/// In words, when that is less than they can do with.
pub(super) fn worker_share(total: u64, workers: u32, threads: u32) -> Result<u64, String> {
    let StorageMemory { cache, write_buffers } = storage_share(total);
    let own = (PROCESS_BYTES + cache + write_buffers) as u64;
    let share = total.saturating_sub(own) / u64::from(workers.max(1));
    let least = worker_memory_min(threads as usize) as u64;
    if share >= least {
        return Ok(share);
    }
    // The coordinator's share grows with the total: a ninth more than the sum is enough.
    let enough = (PROCESS_BYTES as u64 + u64::from(workers) * least) * 8 / 7;
    Err(format!(
        "memory of {} is too little for a coordinator and {} of {}: expected at least {}, or fewer of them",
        ByteSize(total),
        counted(workers.into(), "worker"),
        counted(threads.into(), "thread"),
        ByteSize(enough)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_no_more_than_the_total() {
        for total in [1 << 30, 4 << 30, 3 << 40] {
            for workers in [1, 7, 64] {
                let Ok(share) = worker_share(total, workers, 1) else { continue };
                let StorageMemory { cache, write_buffers } = storage_share(total);
                let used = (PROCESS_BYTES + cache + write_buffers) as u64 + u64::from(workers) * share;
                assert!(used <= total && used > total / 2, "{used} of {total} for {workers} workers");
            }
        }
    }

    #[test]
    fn too_little_is_refused_and_what_is_called_enough_is() {
        for (workers, threads) in [(1, 1), (2, 1), (4, 2), (64, 1)] {
            let least = worker_memory_min(threads as usize) as u64;
            let enough = (PROCESS_BYTES as u64 + u64::from(workers) * least) * 8 / 7;
            assert!(worker_share(enough, workers, threads).is_ok(), "{workers} workers");
            let words = worker_share(enough / 2, workers, threads).expect_err("half of enough");
            assert!(words.contains("at least"), "{words}");
            assert_eq!(words.contains("1 thread:"), threads == 1, "{words}");
        }
    }
}
