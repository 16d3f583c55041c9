//! Handing out work: who waits gets a task, and when there is none, one is made by splitting.

use super::api::{Assignment, LeaseId, Millis, Occurrence, Reply, Session, TaskSpec};
use super::job::{Chosen, Work};
use super::leases::Lease;
use super::waiting::{Place, Waiting};
use super::{Core, Step};
use grundy_games::claim::Claim;
use grundy_tables::jobs::record::{JobId, LeaseRecord, Task, Write};
use std::collections::{BTreeMap, BTreeSet};

/// So many waiting workers in a row may look at tasks that are kept for others: each look costs a walk through the graph, and there
/// may be a thousand of them after every event.
const REFUSED_MAX: u32 = 4;

/// What came of looking for a task.
enum Assigned {
    /// It is leased.
    Lease(Box<Assignment>),
    /// There is one, but this other worker has it warm, and is to be asked first.
    Later {
        /// That one.
        owner: String,
        /// Whether it is about to ask.
        returns: bool,
    },
    /// There is none.
    Nothing,
}

impl Core {
    /// Gives waiting workers tasks, first come first served, and ends waits that are over.
    pub(super) fn serve_waiting(&mut self, now: Millis, step: &mut Step) {
        self.dry = false;
        self.gone.clear();
        if self.draining {
            for waiting in self.waiting.remove_all() {
                step.reply(waiting.token, Reply::Drained);
            }
            return;
        }
        // In the first round nobody gets what another worker in the queue has warm: that one is to have its turn before.
        for courteous in [true, false] {
            if !self.serve_round(courteous, now, step) {
                break;
            }
        }
        for waiting in self.waiting.remove_over(now) {
            step.reply(waiting.token, Reply::Idle { retry_after_ms: self.options.retry_after_ms });
            if self.dry && self.may_work(&waiting.session.worker, now) {
                self.gone.push(waiting.session.worker);
            }
        }
    }

    /// Goes through the queue once. Returns whether a second time, without courtesy, may give away more.
    fn serve_round(&mut self, courteous: bool, now: Millis, step: &mut Step) -> bool {
        self.dry = false;
        let mut served = BTreeSet::new();
        // Whether anything was kept for somebody, and whether for one that will not ask at once.
        let (mut later, mut again) = (false, false);
        // For whom something was kept since a task was last given away, and how often.
        let (mut owners, mut refused) = (BTreeSet::new(), 0);
        let mut from = Place::default();
        loop {
            // Those who come after so many find the same, all but the owners.
            let place = if refused < REFUSED_MAX {
                self.waiting.first_from(from)
            } else {
                owners.iter().filter_map(|owner: &String| self.waiting.first_of(owner, from)).min()
            };
            let Some((place, waiting)) = place.and_then(|place| Some((place, self.waiting.get(place)?)))
            else {
                return again || later && !served.is_empty();
            };
            from = place.next();
            if !self.may_work(&waiting.session.worker, now) {
                continue;
            }
            let waiting = waiting.clone();
            match self.assign(&waiting, courteous.then_some(&served), now, step) {
                Assigned::Lease(assignment) => {
                    step.reply(waiting.token, Reply::Leased(assignment));
                    self.waiting.remove(place);
                    served.insert(waiting.session.worker);
                    owners.clear();
                    refused = 0;
                }
                Assigned::Later { owner, returns } => {
                    owners.insert(owner);
                    refused += 1;
                    later = true;
                    again |= !returns;
                }
                // Once a worker finds nothing, the ones behind it find nothing either.
                Assigned::Nothing => {
                    self.dry = true;
                    return again || later && !served.is_empty();
                }
            }
        }
    }

    /// Whether a worker gets tasks.
    pub(super) fn may_work(&self, worker: &str, now: Millis) -> bool {
        self.workers.get(worker).is_some_and(|worker| !worker.is_held_off(now))
    }

    /// A task for a waiting worker, but none that is warm for one that is about to ask; nor, in the courteous round, for one that
    /// waits or was `served` in it.
    fn assign(
        &mut self,
        waiting: &Waiting,
        served: Option<&BTreeSet<String>>,
        now: Millis,
        step: &mut Step,
    ) -> Assigned {
        let worker = &waiting.session.worker;
        let choose = |core: &Self| {
            core.jobs
                .values()
                .filter(|job| job.is_running())
                .find_map(|job| Some((job.id, job.choose(worker, core.threads, &core.options)?)))
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
            let has_turn =
                served.is_some_and(|served| served.contains(&owner) || self.waiting.count_of(&owner) > 0);
            if returns || has_turn {
                return Assigned::Later { owner, returns };
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
        let mut held: BTreeMap<JobId, Vec<&Claim>> = BTreeMap::new();
        for (_, lease) in self.leases.iter() {
            let Task::Claim(claim) = &lease.task else { continue };
            let of_age = lease.granted.plus(idle_ms);
            if of_age <= now {
                held.entry(lease.job).or_default().push(claim);
            } else {
                look_again = look_again.min(of_age);
            }
        }
        let mut heaviest = Vec::new();
        for (id, held) in held {
            if let Some(job) = self.jobs.get(&id).filter(|job| job.is_running())
                && let Work::Claims(claims) = &job.work
                && let Some(leaf) =
                    claims.graph.heaviest_leaf(held.into_iter().filter_map(|claim| claims.graph.find(claim)))
            {
                heaviest.push((id, leaf));
            }
        }
        let mut split = false;
        for (id, leaf) in heaviest {
            let Some(Work::Claims(claims)) = self.jobs.get_mut(&id).map(|job| &mut job.work) else {
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
