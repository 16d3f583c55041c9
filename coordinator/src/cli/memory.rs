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

/// How `solve` shares out its memory among its workers, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WorkerShares {
    /// What each worker has for itself.
    pub own: u64,
    /// Endgame databases, which all workers map and have in memory once.
    pub endgame: u64,
}

impl WorkerShares {
    /// The memory that each worker is told to keep within: what it maps counts there too.
    pub fn memory(&self) -> u64 {
        self.own + self.endgame
    }
}

/// Shares out what the coordinator leaves to `workers` worker processes of `threads` threads. Endgame databases get as much as is
/// told, or five eighths of what the workers do not need.
///
/// # Errors
/// In words, when what is left is less than workers can do with.
pub(super) fn worker_shares(
    total: u64,
    workers: u32,
    threads: u32,
    endgame: Option<u64>,
) -> Result<WorkerShares, String> {
    let StorageMemory { cache, write_buffers } = storage_share(total);
    let own = (PROCESS_BYTES + cache + write_buffers) as u64;
    let left = total.saturating_sub(own);
    let least = worker_memory_min(threads as usize) as u64;
    let Some(spare) = left.checked_sub(u64::from(workers.max(1)) * least) else {
        // The coordinator's share grows with the total: a ninth more than the sum is enough.
        let enough = (PROCESS_BYTES as u64 + u64::from(workers) * least) * 8 / 7;
        return Err(format!(
            "memory of {} is too little for a coordinator and {} of {}: expected at least {}, or fewer of them",
            ByteSize(total),
            counted(workers.into(), "worker"),
            counted(threads.into(), "thread"),
            ByteSize(enough)
        ));
    };
    let endgame = endgame.unwrap_or(spare / 8 * 5);
    if endgame > spare {
        return Err(format!(
            "endgame memory of {} is too much of a memory of {} for {} of {}: expected at most {}",
            ByteSize(endgame),
            ByteSize(total),
            counted(workers.into(), "worker"),
            counted(threads.into(), "thread"),
            ByteSize(spare)
        ));
    }
    Ok(WorkerShares { own: (left - endgame) / u64::from(workers.max(1)), endgame })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_no_more_than_the_total() {
        for total in [1 << 30, 4 << 30, 3 << 40] {
            for workers in [1, 7, 64] {
                for endgame in [None, Some(0), Some(100 << 20)] {
                    let Ok(shares) = worker_shares(total, workers, 1, endgame) else { continue };
                    let StorageMemory { cache, write_buffers } = storage_share(total);
                    let coordinator = (PROCESS_BYTES + cache + write_buffers) as u64;
                    let used = coordinator + shares.endgame + u64::from(workers) * shares.own;
                    assert!(used <= total && used > total / 2, "{used} of {total} for {workers} workers");
                    assert!(shares.own >= worker_memory_min(1) as u64);
                    assert!(endgame.is_none_or(|endgame| endgame == shares.endgame));
                }
            }
        }
    }

    #[test]
    fn too_little_is_refused_and_what_is_called_enough_is() {
        for (workers, threads) in [(1, 1), (2, 1), (4, 2), (64, 1)] {
            let least = worker_memory_min(threads as usize) as u64;
            let enough = (PROCESS_BYTES as u64 + u64::from(workers) * least) * 8 / 7;
            assert!(worker_shares(enough, workers, threads, None).is_ok(), "{workers} workers");
            let words = worker_shares(enough / 2, workers, threads, None).expect_err("half of enough");
            assert!(words.contains("at least"), "{words}");
            assert_eq!(words.contains("1 thread:"), threads == 1, "{words}");
            let words = worker_shares(enough, workers, threads, Some(enough)).expect_err("all of it");
            assert!(words.contains("endgame memory") && words.contains("at most"), "{words}");
        }
    }
}
