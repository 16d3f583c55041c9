//! Flags, environment and configuration file. Flags beat the environment, which beats the file, which beats the defaults.

use crate::Options;
use crate::machine;
use bytesize::ByteSize;
use clap::{Args, Parser, ValueEnum};
use grundy_proto::convert;
use grundy_tables::{endgame_memory_max, worker_memory_min};
use serde::Deserialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// The coordinator's port when the address names none.
const DEFAULT_PORT: u16 = 4848;

/// The most engine threads: more than any machine has, and few enough for one heartbeat.
const THREADS_MAX: u32 = 1024;

/// Decides claims for a Grundy coordinator.
///
/// Registers with the coordinator, leases claims and parts of counts, and searches them on all threads over one table, which it keeps in
/// its data directory: a restarted worker starts warm. The first SIGINT or SIGTERM drains: results are handed in, unfinished
/// leases handed back. The second ends at once.
///
/// Exit codes: 0 done, 1 failed, 2 usage or configuration, 4 coordinator unreachable, 5 corruption found, 130 interrupted.
#[derive(Parser, Debug)]
#[command(name = "grundy-worker", version)]
pub struct Cli {
    /// What may also come from the environment or the file.
    #[command(flatten)]
    pub settings: Settings,

    /// A TOML file with any of the other options, by their long names, e.g. `memory = "8GiB"`.
    #[arg(long, value_name = "FILE", env = "GRUNDY_CONFIG")]
    pub config: Option<PathBuf>,

    /// Drain when stdin reaches its end, and so with the process that holds the other end of the pipe.
    #[arg(long)]
    pub exit_with_parent: bool,
}

/// Options that come from flags, from the environment or from the file.
#[derive(Args, Deserialize, Clone, PartialEq, Debug, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// The coordinator: `host:port` or `http://host:port`. Required.
    #[arg(long, value_name = "ADDR", env = "GRUNDY_COORDINATOR")]
    pub coordinator: Option<Address>,

    /// Directory for the table and for results not yet acknowledged; one a worker. [default: ./grundy-worker]
    #[arg(long, value_name = "DIR", env = "GRUNDY_DATA")]
    pub data: Option<PathBuf>,

    /// The worker's name, unique among the coordinator's workers. A new process takes the place of an old one of the same name.
    /// [default: the machine's name and a checksum of the data directory's path]
    #[arg(long, value_name = "NAME", env = "GRUNDY_NAME")]
    pub name: Option<WorkerName>,

    /// Engine threads. They share a table; one without a lease of its own helps another. [default: one a core]
    #[arg(long, value_name = "N", env = "GRUNDY_THREADS")]
    pub threads: Option<Threads>,

    /// Memory for all of the worker, e.g. `8GiB`: tables, endgame databases, RocksDB's caches, threads. [default: half of the machine's]
    #[arg(long, value_name = "SIZE", env = "GRUNDY_MEMORY")]
    pub memory: Option<ByteSize>,

    /// Directory of endgame databases. They are built when first needed. Workers of one machine may share a directory: they build each
    /// file once, and have it in memory once. [default: `endgame` in the data directory]
    #[arg(long, value_name = "DIR", env = "GRUNDY_ENDGAME")]
    pub endgame: Option<PathBuf>,

    /// How much of --memory mapped endgame databases may take. Files that several workers of a machine map count once for the
    /// machine. [default: five eighths of what the worker does not need otherwise]
    #[arg(long, value_name = "SIZE", env = "GRUNDY_ENDGAME_MEMORY")]
    pub endgame_memory: Option<ByteSize>,

    /// How much of --memory tables may take that the engines share: at most three quarters of what databases leave, which serves Kalah best.
    /// [default: a quarter]
    #[arg(long, value_name = "SIZE", env = "GRUNDY_ENGINE_MEMORY")]
    pub engine_memory: Option<ByteSize>,

    /// The most seeds in play of Kalah's endgame databases, as far as memory allows. [default: as many as pay]
    #[arg(long, value_name = "N", env = "GRUNDY_ENDGAME_SEEDS")]
    pub endgame_seeds: Option<u8>,

    /// Seconds without contact to the coordinator after which to end with exit code 4. [default: 60 before the first contact, never
    /// after it]
    #[arg(long, value_name = "SECONDS", env = "GRUNDY_GIVE_UP_AFTER")]
    pub give_up_after: Option<u64>,

    /// How to write the log to stderr. What to log is set by GRUNDY_LOG, e.g. `debug` or `grundy_worker=debug`, which is `info` by
    /// default. [default: human]
    #[arg(long, value_name = "FORMAT", env = "GRUNDY_LOG_FORMAT")]
    pub log_format: Option<LogFormat>,
}

/// How log lines look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

/// A coordinator's address.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Address {
    host: String,
    port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}:{}", self.host, self.port)
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("'{text}' {what}: expected host:port or http://host:port");
        let rest = match text.split_once("://") {
            Some(("http", rest)) => rest.strip_suffix('/').unwrap_or(rest),
            Some((scheme, _)) => {
                return Err(wrong(&format!("has scheme '{scheme}'")));
            }
            None => text,
        };
        // The colons of an IPv6 address are within brackets.
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                (host, port.parse().map_err(|_| wrong(&format!("has port '{port}'")))?)
            }
            _ => (rest, DEFAULT_PORT),
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let fits = match bare {
            Some(ipv6) => ipv6.parse::<std::net::Ipv6Addr>().is_ok(),
            None => {
                !host.is_empty()
                    && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
            }
        };
        if fits {
            Ok(Self { host: host.to_owned(), port })
        } else {
            Err(wrong(&format!("has host '{host}'")))
        }
    }
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// A worker's name.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct WorkerName(String);

impl FromStr for WorkerName {
    type Err = convert::WireError;

    fn from_str(text: &str) -> Result<Self, convert::WireError> {
        convert::worker_name(text)?;
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for WorkerName {
    type Error = convert::WireError;

    fn try_from(text: String) -> Result<Self, convert::WireError> {
        text.parse()
    }
}

/// A number of engine threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "u32")]
pub struct Threads(u32);

impl TryFrom<u32> for Threads {
    type Error = String;

    fn try_from(threads: u32) -> Result<Self, String> {
        if (1..=THREADS_MAX).contains(&threads) {
            Ok(Self(threads))
        } else {
            Err(format!("{threads} is no number of threads: expected 1 to {THREADS_MAX}"))
        }
    }
}

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse::<u32>()
            .map_err(|_| format!("'{text}' is no number of threads: expected 1 to {THREADS_MAX}"))?
            .try_into()
    }
}

/// What is wrong with the configuration as a whole; single flags are refused by their own parsers.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read configuration file {}: {reason}", .path.display())]
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// The file has an unknown key or a wrong value.
    #[error("configuration file {}: {reason}", .path.display())]
    Invalid {
        /// Its path.
        path: PathBuf,
        /// The line, the key and what would be right.
        reason: String,
    },
    /// No address.
    #[error(
        "no coordinator: give --coordinator HOST:PORT, GRUNDY_COORDINATOR, or `coordinator` in a --config file"
    )]
    NoCoordinator,
    /// More memory than the machine has.
    #[error("memory of {given} is more than this machine's {most}")]
    TooMuchMemory {
        /// What it has.
        most: ByteSize,
        /// What was given.
        given: ByteSize,
    },
    /// Less memory than a table needs.
    #[error("memory of {given} is too little for {threads} thread{}: expected at least {least}", if *.threads == 1 { "" } else { "s" })]
    TooLittleMemory {
        /// For how many threads.
        threads: u32,
        /// What they need.
        least: ByteSize,
        /// What was given.
        given: ByteSize,
    },
    /// Endgame databases would leave too little for the rest.
    #[error(
        "endgame memory of {given} is too much of a memory of {memory} for {threads} engine threads: expected at most {most}"
    )]
    TooMuchEndgame {
        /// The whole memory.
        memory: ByteSize,
        /// For how many threads.
        threads: u32,
        /// What endgame databases may take of it.
        most: ByteSize,
        /// What was given.
        given: ByteSize,
    },
}

impl Settings {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// [`ConfigError`] names the file, the line and the key.
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let path_owned = || path.to_owned();
        let text = std::fs::read_to_string(path)
            .map_err(|e| ConfigError::Unreadable { path: path_owned(), reason: e.to_string() })?;
        toml::from_str(&text).map_err(|e| ConfigError::Invalid { path: path_owned(), reason: e.to_string() })
    }

    /// These settings, and where they say nothing, the others.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            coordinator: self.coordinator.or(other.coordinator),
            data: self.data.or(other.data),
            name: self.name.or(other.name),
            threads: self.threads.or(other.threads),
            memory: self.memory.or(other.memory),
            endgame: self.endgame.or(other.endgame),
            endgame_memory: self.endgame_memory.or(other.endgame_memory),
            engine_memory: self.engine_memory.or(other.engine_memory),
            endgame_seeds: self.endgame_seeds.or(other.endgame_seeds),
            give_up_after: self.give_up_after.or(other.give_up_after),
            log_format: self.log_format.or(other.log_format),
        }
    }

    /// The options, with defaults where nothing is said.
    ///
    /// # Errors
    /// [`ConfigError::NoCoordinator`], [`ConfigError::TooLittleMemory`], [`ConfigError::TooMuchMemory`],
    /// [`ConfigError::TooMuchEndgame`].
    pub fn options(self) -> Result<Options, ConfigError> {
        let coordinator = self.coordinator.ok_or(ConfigError::NoCoordinator)?.to_string();
        let data = self.data.unwrap_or_else(|| PathBuf::from("grundy-worker"));
        let name = self.name.map_or_else(|| machine::worker_name(&data), |name| name.0);
        let memory = self.memory.unwrap_or_else(|| ByteSize(machine::memory_bytes() / 2));
        let cores = u32::try_from(machine::cores()).unwrap_or(THREADS_MAX).min(THREADS_MAX);
        let threads = self.threads.map_or(cores, |threads| threads.0);
        let least = ByteSize(worker_memory_min(threads as usize) as u64);
        let most = ByteSize(machine::memory_bytes());
        if memory > most {
            return Err(ConfigError::TooMuchMemory { most, given: memory });
        }
        if memory < least {
            return Err(ConfigError::TooLittleMemory { threads, least, given: memory });
        }
        let memory_bytes = usize::try_from(memory.as_u64()).unwrap_or(usize::MAX);
        let most = ByteSize(endgame_memory_max(memory_bytes, threads as usize) as u64);
        if let Some(given) = self.endgame_memory
            && given > most
        {
            return Err(ConfigError::TooMuchEndgame { memory, threads, most, given });
        }
        Ok(Options {
            coordinator,
            endgame: self.endgame.unwrap_or_else(|| data.join("endgame")),
            endgame_memory: self.endgame_memory.map(|bytes| bytes.as_u64() as usize),
            engine_memory: self.engine_memory.map(|bytes| bytes.as_u64() as usize),
            endgame_seeds: self.endgame_seeds,
            data,
            name,
            threads,
            memory: memory_bytes,
            give_up_after: self.give_up_after.map(Duration::from_secs),
        })
    }
}

impl Cli {
    /// Joins flags and environment with the file.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn settings(&self) -> Result<Settings, ConfigError> {
        let file = self.config.as_deref().map(Settings::from_file).transpose()?;
        Ok(self.settings.clone().or(file.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests;
