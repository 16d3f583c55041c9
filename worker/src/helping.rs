//! Idle engine threads help the busy ones: they search the same claim over the shared table.

use crate::leases::{Held, Lease};
use grundy_games::claim::Claim;
use grundy_games::problem::Fields;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Nodes of one turn of help, between which a thread asks for a lease of its own: some tenths of a second, so that new leases do not
/// wait and a worker that drains ends soon.
pub const TURN_NODES: u64 = 4096;

/// The claims of this worker that threads may help with.
#[derive(Default)]
pub struct Helping {
    offers: Mutex<Vec<Arc<Offer>>>,
}

/// A claim that a thread holds a lease of.
pub struct Offer {
    /// Its problem.
    pub fields: Fields,
    /// The claim.
    pub claim: Claim,
    lease: Arc<Lease>,
    /// How many help now.
    helpers: AtomicUsize,
    nodes: AtomicU64,
    decided: AtomicBool,
    /// Set when its holder has ended: help is no longer wanted.
    ended: AtomicBool,
}

/// An offer that stands for as long as this lives.
pub struct Offered<'a> {
    helping: &'a Helping,
    offer: Arc<Offer>,
}

/// A turn of help.
pub struct Turn(Arc<Offer>);

impl Helping {
    fn offers(&self) -> MutexGuard<'_, Vec<Arc<Offer>>> {
        self.offers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets others help with a claim.
    pub fn offer(&self, fields: &Fields, claim: &Claim, held: &Held) -> Offered<'_> {
        let offer = Arc::new(Offer {
            fields: fields.clone(),
            claim: claim.clone(),
            lease: held.lease(),
            helpers: AtomicUsize::new(0),
            nodes: AtomicU64::new(0),
            decided: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        });
        self.offers().push(Arc::clone(&offer));
        Offered { helping: self, offer }
    }

    /// Whether there is something to help with.
    pub fn is_wanted(&self) -> bool {
        !self.offers().is_empty()
    }

    /// Begins a turn of help where fewest help.
    pub fn turn(&self) -> Option<Turn> {
        let offers = self.offers();
        let offer = offers.iter().min_by_key(|offer| offer.helpers.load(Ordering::Relaxed))?;
        offer.helpers.fetch_add(1, Ordering::Relaxed);
        Some(Turn(Arc::clone(offer)))
    }
}

impl Offered<'_> {
    /// Nodes that others have searched for it.
    pub fn nodes(&self) -> u64 {
        self.offer.nodes.load(Ordering::Relaxed)
    }

    /// Whether a helper has decided it: the table has the answer, and the holder's search was stopped to look there.
    pub fn is_decided(&self) -> bool {
        self.offer.decided.load(Ordering::Acquire)
    }
}

impl Drop for Offered<'_> {
    fn drop(&mut self) {
        self.offer.ended.store(true, Ordering::Relaxed);
        self.helping.offers().retain(|offer| !Arc::ptr_eq(offer, &self.offer));
    }
}

impl Turn {
    /// What to search.
    pub fn offer(&self) -> &Offer {
        &self.0
    }

    /// Set when the search is no longer wanted.
    pub fn stop(&self) -> &AtomicBool {
        &self.0.ended
    }

    /// Counts for the lease that is helped with.
    pub fn progress(&self) -> &AtomicU64 {
        &self.0.lease.nodes
    }

    /// Ends the turn: so many nodes were searched, and perhaps the claim decided.
    pub fn end(self, nodes: u64, decided: bool) {
        self.0.nodes.fetch_add(nodes, Ordering::Relaxed);
        if decided && !self.0.ended.load(Ordering::Relaxed) {
            self.0.decided.store(true, Ordering::Release);
            self.0.lease.stop.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.helpers.fetch_sub(1, Ordering::Relaxed);
    }
}
