//! Settings and where they come from: flags beat the environment (`GRUNDY_*`), which beats the file given by `--config`,
//! which beats defaults.
//!
//! Flag and variable meet in the argument parser, so what this module sees of them is one optional value.

use crate::exit::Failure;
use anyhow::Context;
use bytesize::ByteSize;
use serde::Deserialize;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a coordinator listens, and is looked for, unless told otherwise.
pub(super) const ADDRESS_DEFAULT: &str = "127.0.0.1:4848";

/// The configuration file. All keys are optional; a key that is not one of these is an error.
#[derive(Deserialize, Default, Debug, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ConfigFile {
    /// Where clients find the coordinator, as HOST:PORT.
    pub coordinator: Option<String>,
    /// Where `serve` listens, as HOST:PORT.
    pub listen: Option<String>,
    /// The data directory.
    pub data: Option<PathBuf>,
    /// Worker processes of `solve`.
    pub workers: Option<NonZeroU32>,
    /// Search threads of each worker process.
    pub threads: Option<NonZeroU32>,
    /// Memory to use in all, such as `4GiB`.
    pub memory: Option<ByteSize>,
    /// Directory of endgame databases.
    pub endgame: Option<PathBuf>,
    /// Memory that mapped endgame databases may take.
    pub endgame_memory: Option<ByteSize>,
    /// The most seeds in play of Kalah's endgame databases.
    pub endgame_seeds: Option<u8>,
    /// Seconds for which a coordinator that went away is waited for.
    pub give_up_after: Option<u64>,
    /// The `grundy-worker` program.
    pub worker_program: Option<PathBuf>,
    /// How log lines look.
    pub log_format: Option<LogFormat>,
    /// Which log lines are written, in the notation of `RUST_LOG`.
    pub log: Option<String>,
}

/// How log lines look.
#[derive(clap::ValueEnum, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
#[serde(rename_all = "lowercase")]
pub(super) enum LogFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

/// What every command takes.
#[derive(clap::Args)]
pub(super) struct GlobalArgs {
    /// Read settings from this TOML file
    #[arg(long, global = true, env = "GRUNDY_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Format of log lines on stderr; which are written is set by GRUNDY_LOG, such as debug [default: human]
    #[arg(long, global = true, env = "GRUNDY_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
}

impl GlobalArgs {
    /// Reads the configuration file, if one is given.
    pub fn load(&self) -> Result<ConfigFile, Failure> {
        self.config
            .as_deref()
            .map_or_else(|| Ok(ConfigFile::default()), |path| read(path).map_err(Failure::usage))
    }
}

fn read(path: &Path) -> anyhow::Result<ConfigFile> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    toml::from_str(&text).with_context(|| format!("in {}", path.display()))
}

/// Where the coordinator is.
#[derive(clap::Args)]
pub(super) struct CoordinatorArgs {
    /// Address of the coordinator [default: 127.0.0.1:4848]
    #[arg(long, env = "GRUNDY_COORDINATOR", value_name = "HOST:PORT")]
    coordinator: Option<String>,
}

impl CoordinatorArgs {
    /// What a command that reads the flag itself was given.
    pub fn given(coordinator: Option<String>) -> Self {
        Self { coordinator }
    }

    /// The address.
    pub fn address(&self, file: &ConfigFile) -> String {
        pick(&self.coordinator, &file.coordinator, || ADDRESS_DEFAULT.to_owned())
    }
}

/// How long a coordinator that went away is waited for, unless told otherwise: longer than it takes to restart.
const GIVE_UP_AFTER_S: u64 = 60;

/// The patience of commands that follow a job.
#[derive(clap::Args)]
pub(super) struct PatienceArgs {
    /// When following a job, seconds without the coordinator after which to end with exit code 4 [default: 60]
    #[arg(long, env = "GRUNDY_GIVE_UP_AFTER", value_name = "SECONDS")]
    give_up_after: Option<u64>,
}

impl PatienceArgs {
    /// The time.
    pub fn give_up_after(&self, file: &ConfigFile) -> Duration {
        Duration::from_secs(pick(&self.give_up_after, &file.give_up_after, || GIVE_UP_AFTER_S))
    }
}

/// Where the data are.
#[derive(clap::Args)]
pub(super) struct DataArgs {
    /// Data directory [default: solve has one for each problem in ./grundy-data; serve has none]
    #[arg(long, env = "GRUNDY_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
}

impl DataArgs {
    /// The directory, if any is set.
    pub fn directory(&self, file: &ConfigFile) -> Option<PathBuf> {
        self.data.clone().or_else(|| file.data.clone())
    }
}

/// How much memory to use.
#[derive(clap::Args)]
pub(super) struct MemoryArgs {
    /// Memory to use in all, such as 4GiB [default: half of the machine's; eval: 256MiB]
    #[arg(long, env = "GRUNDY_MEMORY", value_name = "SIZE")]
    memory: Option<ByteSize>,
}

impl MemoryArgs {
    /// The size, in bytes.
    pub fn bytes(&self, file: &ConfigFile, default: impl FnOnce() -> u64) -> u64 {
        pick(&self.memory, &file.memory, || ByteSize::b(default())).as_u64()
    }
}

/// Where endgame databases are.
#[derive(clap::Args)]
pub(super) struct EndgameArgs {
    /// Directory of endgame databases, which many runs may share [default: solve: `endgame` in the data directory; eval: none, tables
    /// are built in memory]
    #[arg(long, env = "GRUNDY_ENDGAME", value_name = "DIR")]
    endgame: Option<PathBuf>,
}

impl EndgameArgs {
    /// The directory, if any is set.
    pub fn directory(&self, file: &ConfigFile) -> Option<PathBuf> {
        self.endgame.clone().or_else(|| file.endgame.clone())
    }
}

/// How much memory endgame databases may take.
#[derive(clap::Args)]
pub(super) struct EndgameMemoryArgs {
    /// How much of --memory mapped endgame databases may take [default: five eighths of what workers do not need otherwise; nothing for konane
    /// and peg, which have none]
    #[arg(long, env = "GRUNDY_ENDGAME_MEMORY", value_name = "SIZE")]
    endgame_memory: Option<ByteSize>,
}

impl EndgameMemoryArgs {
    /// The size in bytes, if any is set.
    pub fn bytes(&self, file: &ConfigFile) -> Option<u64> {
        self.endgame_memory.or(file.endgame_memory).map(|size| size.as_u64())
    }
}

/// How far Kalah's endgame databases go.
#[derive(clap::Args)]
pub(super) struct EndgameSeedsArgs {
    /// Kalah: the most seeds in play of endgame databases, as far as memory allows [default: as many as pay]
    #[arg(long, env = "GRUNDY_ENDGAME_SEEDS", value_name = "N", value_parser = seeds)]
    endgame_seeds: Option<u8>,
}

/// Reads a number of seeds.
fn seeds(text: &str) -> Result<u8, String> {
    text.parse().map_err(|_| "expected a whole number from 0 to 255".to_owned())
}

impl EndgameSeedsArgs {
    /// The number of seeds, if any is set.
    pub fn seeds(&self, file: &ConfigFile) -> Option<u8> {
        self.endgame_seeds.or(file.endgame_seeds)
    }
}

/// The worker processes of `solve`.
#[derive(clap::Args)]
pub(super) struct WorkerArgs {
    /// Worker processes [default: 1]
    #[arg(long, env = "GRUNDY_WORKERS", value_name = "N", value_parser = at_least_one)]
    workers: Option<NonZeroU32>,
    /// Search threads of each worker process; they share a table [default: the machine's cores, shared out among the workers]
    #[arg(long, env = "GRUNDY_THREADS", value_name = "N", value_parser = at_least_one)]
    threads: Option<NonZeroU32>,
    /// The grundy-worker program [default: the one beside this program]
    #[arg(long, env = "GRUNDY_WORKER", value_name = "FILE")]
    worker_program: Option<PathBuf>,
}

/// Reads a number that may not be 0.
fn at_least_one(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| "expected a whole number of at least 1".to_owned())
}

impl WorkerArgs {
    /// Worker processes and the threads of each. One process of many threads is faster than many processes: its threads share
    /// a table and help each other with hard claims.
    pub fn processes(&self, file: &ConfigFile) -> (u32, u32) {
        let workers = pick(&self.workers, &file.workers, || NonZeroU32::MIN);
        let share_of_cores = || {
            let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
            NonZeroU32::new(u32::try_from(cores).unwrap_or(u32::MAX) / workers).unwrap_or(NonZeroU32::MIN)
        };
        (workers.get(), pick(&self.threads, &file.threads, share_of_cores).get())
    }

    /// The worker program, if one is set.
    pub fn program(&self, file: &ConfigFile) -> Option<PathBuf> {
        self.worker_program.clone().or_else(|| file.worker_program.clone())
    }
}

/// Where `serve` listens.
#[derive(clap::Args)]
pub(super) struct ListenArgs {
    /// Address to listen on; port 0 takes any that is free [default: 127.0.0.1:4848]
    #[arg(long, env = "GRUNDY_LISTEN", value_name = "HOST:PORT")]
    listen: Option<String>,
}

impl ListenArgs {
    /// The address.
    pub fn address(&self, file: &ConfigFile) -> String {
        pick(&self.listen, &file.listen, || ADDRESS_DEFAULT.to_owned())
    }
}

/// The precedence itself.
fn pick<T: Clone>(flag_or_environment: &Option<T>, file: &Option<T>, default: impl FnOnce() -> T) -> T {
    flag_or_environment.clone().or_else(|| file.clone()).unwrap_or_else(default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file(text: &str) -> anyhow::Result<ConfigFile> {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(text.as_bytes())?;
        read(file.path())
    }

    #[test]
    fn a_flag_beats_the_file_which_beats_the_default() {
        let file =
            file("coordinator = \"file:1\"\nworkers = 3\nmemory = \"2GiB\"\n").expect("the file is right");
        let args =
            |coordinator: Option<&str>| CoordinatorArgs { coordinator: coordinator.map(str::to_owned) };
        assert_eq!(args(Some("flag:1")).address(&file), "flag:1");
        assert_eq!(args(None).address(&file), "file:1");
        assert_eq!(args(None).address(&ConfigFile::default()), ADDRESS_DEFAULT);
        let workers = WorkerArgs { workers: None, threads: NonZeroU32::new(2), worker_program: None };
        assert_eq!(workers.processes(&file), (3, 2));
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get()) as u32;
        let of_workers =
            |workers| WorkerArgs { workers: NonZeroU32::new(workers), threads: None, worker_program: None };
        assert_eq!(of_workers(0).processes(&ConfigFile::default()), (1, cores));
        assert_eq!(of_workers(4 * cores).processes(&ConfigFile::default()), (4 * cores, 1));
        assert_eq!(MemoryArgs { memory: None }.bytes(&file, || 7), 2 << 30);
        assert_eq!(MemoryArgs { memory: None }.bytes(&ConfigFile::default(), || 7), 7);
    }

    #[test]
    fn mistakes_in_the_file_are_named_with_file_and_key() {
        for (text, expected) in [
            ("worker = 3\n", "unknown field `worker`"),
            ("workers = 0\n", "workers = 0"),
            ("memory = \"much\"\n", "memory = \"much\""),
            ("log-format = \"xml\"\n", "unknown variant `xml`"),
            ("workers = \n", "workers"),
        ] {
            let error = format!("{:#}", file(text).expect_err("the file is wrong"));
            assert!(error.starts_with("in /") && error.contains(expected), "{text:?} gives: {error}");
        }
        let error =
            format!("{:#}", read(Path::new("/nowhere/grundy.toml")).expect_err("there is no such file"));
        assert!(error.starts_with("cannot read /nowhere/grundy.toml"), "{error}");
    }
}
