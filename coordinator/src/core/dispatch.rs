//! Handing out work: who waits gets a task, and when there is none, one is made by splitting.

use super::api::{Assignment, LeaseId, Millis, Occurrence, Reply, Session, TaskSpec};
use super::job::{Chosen, Work};
use super::{Core, Lease, Step, Waiting};
use grundy_tables::jobs::record::{JobId, LeaseRecord, Task, Write};
use std::collections::{BTreeMap, BTreeSet};

/// What came of looking for a task.
enum Assigned {
    /// It is leased.
    Lease(Box<Assignment>),
    /// There is one, but another worker has it warm, and is to be asked first.
    Later,
    /// There is none.
    Nothing,
}

impl Core {
    /// Gives waiting workers tasks, first come first served, and ends waits that are over.
    pub(super) fn serve_waiting(&mut self, now: Millis, step: &mut Step) {
        self.hungry.clear();
        if self.draining {
            for waiting in std::mem::take(&mut self.waiting) {
                step.reply(waiting.token, Reply::Drained);
            }
            return;
        }
        let mut queue = std::mem::take(&mut self.waiting);
        let mut dry = false;
        // In the first round nobody gets what another worker in the queue has warm: that one is to have its turn before.
        for courteous in [true, false] {
            let owners: BTreeSet<String> =
                queue.iter().filter(|_| courteous).map(|waiting| waiting.session.worker.clone()).collect();
            dry = false;
            let mut later = false;
            queue.retain(|waiting| {
                // Once a worker finds nothing, the ones behind it find nothing either.
                if dry || !self.may_work(waiting, now) {
                    return true;
                }
                match self.assign(waiting, &owners, now, step) {
                    Assigned::Lease(assignment) => {
                        step.reply(waiting.token, Reply::Leased(assignment));
                        return false;
                    }
                    Assigned::Later => later = true,
                    Assigned::Nothing => dry = true,
                }
                true
            });
            if !later {
                break;
            }
        }
        if dry {
            let hungry = queue.iter().filter(|waiting| self.may_work(waiting, now));
            self.hungry = hungry.map(|waiting| waiting.session.worker.clone()).collect();
        }
        queue.retain(|waiting| {
            let is_over = waiting.until <= now;
            if is_over {
                step.reply(waiting.token, Reply::Idle { retry_after_ms: self.options.retry_after_ms });
            }
            !is_over
        });
        self.waiting = queue;
    }

    /// Whether a waiting worker gets tasks.
    fn may_work(&self, waiting: &Waiting, now: Millis) -> bool {
        self.workers.get(&waiting.session.worker).is_some_and(|worker| !worker.is_held_off(now))
    }

    /// A task for a waiting worker, but none that one of the `owners` has warm, or one that is about to ask.
    fn assign(
        &mut self,
        waiting: &Waiting,
        owners: &BTreeSet<String>,
        now: Millis,
        step: &mut Step,
    ) -> Assigned {
        let worker = &waiting.session.worker;
        let choose = |core: &Self| {
            core.jobs
                .values()
                .filter(|job| job.is_running())
                .find_map(|job| Some((job.id, job.choose(worker, &core.options)?)))
        };
        let chosen = choose(self).or_else(|| {
            // Every event comes by here while somebody waits, and looking through all leases each time would be dear.
            let split = now >= self.split_from && self.split_for_idle(now, step);
            if split { choose(self) } else { None }
        });
        let Some((id, Chosen { task, spec, root, warm_for })) = chosen else {
            return Assigned::Nothing;
        };
        if let Some(owner) = warm_for {
            let returns = self.workers.get(&owner).is_some_and(|owner| now < owner.returns_until);
            if returns || owners.contains(&owner) {
                return Assigned::Later;
            }
        }
        let Some(job) = self.jobs.get_mut(&id) else {
            return Assigned::Nothing;
        };
        let lease = LeaseId(self.next_lease);
        self.next_lease += 1;
        job.hold(&task);
        job.record.leases += 1;
        if let (Work::Claims(claims), Some(root)) = (&mut job.work, root) {
            *claims.in_flight.entry(root).or_default() += 1;
        }
        let budget_nodes = match &spec {
            TaskSpec::Claim { budget_nodes, .. } => *budget_nodes,
            TaskSpec::Part(_) => 0,
        };
        step.log.push(Occurrence::LeaseGranted {
            job: id,
            lease,
            worker: worker.clone(),
            task: job.describe(&task),
            budget_nodes,
        });
        let fields = job.record.fields.clone();
        let worker = worker.clone();
        step.writes.push(self.lease_record(lease, id, &task, &waiting.session));
        let facts = self.facts_since(id, waiting.cursors.get(&id).copied().unwrap_or(0), &worker);
        let (incarnation, expires) = (waiting.session.incarnation, now.plus(self.options.lease_ms));
        self.leases.insert(
            lease,
            Lease { job: id, task, root, worker, incarnation, granted: now, expires, nodes: 0 },
        );
        Assigned::Lease(Box::new(Assignment { lease, job: id, fields, task: spec, facts }))
    }

    pub(super) fn lease_record(&self, lease: LeaseId, job: JobId, task: &Task, session: &Session) -> Write {
        let Session { worker, incarnation, .. } = session.clone();
        Write::Lease(
            job,
            task.clone(),
            LeaseRecord { epoch: self.epoch, lease: lease.0, worker, incarnation },
        )
    }

    /// When all leaves are taken: splits the heaviest that has been worked on for a while, so that its children can be handed out.
    /// Its own lease goes on; whoever is first decides it. Returns whether any was split; if none, notes when to look again.
    fn split_for_idle(&mut self, now: Millis, step: &mut Step) -> bool {
        let idle_ms = self.options.split_idle_ms;
        // Leases granted from now on come of age later than this.
        let mut look_again = now.plus(idle_ms);
        let mut held: BTreeMap<JobId, Vec<Task>> = BTreeMap::new();
        for lease in self.leases.values().filter(|lease| matches!(lease.task, Task::Claim(_))) {
            let of_age = lease.granted.plus(idle_ms);
            if of_age <= now {
                held.entry(lease.job).or_default().push(lease.task.clone());
            } else {
                look_again = look_again.min(of_age);
            }
        }
        let mut split = false;
        for (id, tasks) in held {
            let Some(job) = self.jobs.get_mut(&id).filter(|job| job.is_running()) else {
                continue;
            };
            let Work::Claims(claims) = &mut job.work else {
                continue;
            };
            let nodes = tasks.iter().filter_map(|task| match task {
                Task::Claim(claim) => claims.graph.find(claim),
                Task::Part(_) => None,
            });
            let Some(leaf) = claims.graph.heaviest_leaf(nodes) else {
                continue;
            };
            split = true;
            let claim = claims.graph.node(leaf).claim.clone();
            match claims.graph.expand(claims.plan.rules(), leaf, &[]) {
                Ok(children) => {
                    claims.write_open(id, &claim, &mut step.writes);
                    self.log_split(id, &Task::Claim(claim), children, step);
                    self.advance(id, now, step);
                }
                Err(error) => self.fail(id, error.to_string(), step),
            }
        }
        if !split {
            self.split_from = look_again;
        }
        split
    }

    pub(super) fn log_split(&self, id: JobId, task: &Task, children: u32, step: &mut Step) {
        if let Some(job) = self.jobs.get(&id)
            && let (Work::Claims(claims), Task::Claim(claim)) = (&job.work, task)
        {
            let work = claims.graph.find(claim).map_or(0, |id| claims.graph.node(id).work);
            step.log.push(Occurrence::Split { job: id, task: job.describe(task), children, work });
        }
    }
}
