//! Ctrl-C and its relatives: the first asks for an orderly end, the second for an end.

use crate::exit::Exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// For programs without connections: a flag that the first signal sets. The second ends the process.
pub(super) fn stop_flag() -> std::io::Result<Arc<AtomicBool>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let mut signals = {
        let _context = runtime.enter();
        Signals::new()?
    };
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let listen = move || {
        runtime.block_on(signals.next());
        flag.store(true, Ordering::Relaxed);
        runtime.block_on(signals.next());
        std::process::exit(Exit::Interrupted as i32);
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(listen)?;
    Ok(stop)
}
