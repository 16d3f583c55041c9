//! The heartbeat: on a thread, a runtime and a connection of its own, so that neither a search nor a long transfer delays it.

use crate::engines::Shared;
use crate::leases::{Epoch, LeaseId};
use crate::retry::{Judgement, judge};
use crate::session::{Client, Registration, reason};
use grundy_proto::{limits, v1};
use grundy_tables::TableStatistics;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tonic::{Request, Status};
use tracing::{debug, info, warn};

/// How often a line tells how the worker fares.
const SUMMARY_EVERY: Duration = Duration::from_secs(60);

/// Sends heartbeats until `ended` is set. To be run on a thread of its own, by its own runtime.
pub async fn run(shared: Arc<Shared>, mut ended: watch::Receiver<bool>) {
    tokio::select! {
        biased;
        _ = ended.wait_for(|ended| *ended) => {}
        () = beat_for_ever(&shared) => {}
    }
}

async fn beat_for_ever(shared: &Shared) {
    let client = shared.session.client();
    let mut registrations = shared.session.registrations();
    let mut summary = Summary::new();
    loop {
        let now = *registrations.borrow_and_update();
        if let Some(registration) = now {
            beat(shared, &client, registration).await;
        }
        shared.contradicted();
        summary.tell(shared);
        // Without a registration there is nothing to say; the table is watched all the same.
        let pause = now.map_or(Duration::from_secs(1), |registration| registration.heartbeat);
        tokio::select! {
            // After a restart of the coordinator the leases are to be taken over before it gives them to others.
            _ = registrations.changed() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// One heartbeat. Failures are logged; the next heartbeat is the retry, and the calls of the engines do the reconnecting.
async fn beat(shared: &Shared, client: &Client, registration: Registration) {
    let answer = send(shared, client, registration).await;
    let status = match answer {
        Ok(response) => return take_in(shared, registration.epoch, response),
        Err(status) => status,
    };
    match judge(&status) {
        Judgement::Retry | Judgement::Refused => {
            let (code, leases) = (status.code(), shared.leases.len());
            warn!(event = "heartbeat", ?code, reason = %reason(&status), leases, "heartbeat failed");
        }
        Judgement::Register => {
            debug!(event = "heartbeat", reason = %reason(&status), "coordinator was restarted");
            // Registering tells the watch, which sends the next heartbeat at once.
            if let Err(ended) = shared.session.renew(client, registration).await {
                debug!(event = "heartbeat", ?ended, "not registered");
            }
        }
        Judgement::Superseded => {
            shared.session.superseded(&status);
        }
    }
}

async fn send(
    shared: &Shared,
    client: &Client,
    registration: Registration,
) -> Result<v1::HeartbeatResponse, Status> {
    let mut request = Request::new(v1::HeartbeatRequest {
        session: Some(shared.session.header(&registration)),
        leases: shared.leases.progress(limits::LEASES_MAX),
        cursors: shared.facts.cursors(registration.epoch),
    });
    // A heartbeat that is answered after the leases have lapsed is worth nothing: better to send the next one.
    request.set_timeout(limits::CALL_DEADLINE.min(registration.lease / 2).max(Duration::from_secs(1)));
    Ok(client.clone().heartbeat(request).await?.into_inner())
}

fn take_in(shared: &Shared, epoch: Epoch, response: v1::HeartbeatResponse) {
    let v1::HeartbeatResponse { lapsed, adopted, facts, draining } = response;
    for lease in lapsed {
        if shared.leases.lapse(LeaseId(lease.lease), Epoch(lease.epoch)) {
            debug!(event = "lease", lease = lease.lease, "no longer wanted: stopping its search");
        }
    }
    for lease in adopted {
        if shared.leases.adopt(LeaseId(lease), epoch) {
            info!(event = "lease", lease, epoch = epoch.0, "taken over by the restarted coordinator");
        }
    }
    for batch in facts {
        shared.facts.learn(epoch, batch);
    }
    if draining {
        debug!(event = "heartbeat", "coordinator drains");
    }
}

/// The periodic line about how the worker fares.
struct Summary {
    last: Instant,
    nodes: u64,
}

impl Summary {
    fn new() -> Self {
        Self { last: Instant::now(), nodes: 0 }
    }

    fn tell(&mut self, shared: &Shared) {
        let elapsed = self.last.elapsed();
        if elapsed < SUMMARY_EVERY {
            return;
        }
        let nodes = shared.leases.nodes();
        let nodes_per_second = (nodes - self.nodes) as f64 / elapsed.as_secs_f64();
        let results = shared.outbox.acknowledged();
        let leases = shared.leases.len();
        let TableStatistics { hits, misses, dropped, disk_writes, read_back, .. } = shared.table.statistics();
        let entries = shared.table.entries_on_disk();
        let (told, heard) = shared.exchange.counts();
        info!(
            event = "summary",
            leases,
            nodes,
            nodes_per_second = nodes_per_second.round(),
            results,
            entries,
            hits,
            misses,
            dropped,
            disk_writes,
            read_back,
            told,
            heard,
            "working"
        );
        *self = Self { last: Instant::now(), nodes };
    }
}
