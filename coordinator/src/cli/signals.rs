//! Ctrl-C and its relatives: the first asks for an orderly end, the second for an end.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT and SIGTERM, which from now on do not end the process.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Starts to listen.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        // `None` means that no more can come, which is no reason to go on.
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
