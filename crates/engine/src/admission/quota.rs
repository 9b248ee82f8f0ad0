//! Quotas: how many executions may run at once, and the queue of starts that wait for a slot.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ostler_model::{ExecutionId, Io, Lifetime, Owner, Principal, SessionName, Spec};

pub use crate::error::{
    HOLDER_COMMAND_CHARS, HOLDERS_LISTED_MAX, QuotaExceeded, QuotaHolder, WAITING_STARTS,
};
use crate::request::StartRequest;
use crate::settings::Quotas;

/// The executions that share one quota.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum QuotaKey {
    /// Finite executions of one session.
    Finite(Principal, SessionName),
    /// Services, terminals and everything outside sessions, of one principal.
    Other(Principal),
}

impl QuotaKey {
    /// The quota that an execution counts against.
    #[must_use]
    pub fn of(spec: &Spec, owner: &Owner) -> Self {
        let finite = matches!(spec.lifetime, Lifetime::Finite { .. });
        let piped = matches!(spec.io, Io::Pipes { .. });
        Self::new(owner, finite && piped)
    }

    /// The quota that a requested execution counts against.
    #[must_use]
    pub fn for_request(request: &StartRequest, owner: &Owner) -> Self {
        let finite = !matches!(request.lifetime, Some(Lifetime::Service { .. }));
        Self::new(owner, finite && request.options.pty.is_none())
    }

    fn new(owner: &Owner, is_plain: bool) -> Self {
        match &owner.session {
            Some(session) if is_plain => Self::Finite(owner.principal.clone(), session.clone()),
            Some(_) | None => Self::Other(owner.principal.clone()),
        }
    }

    const fn limit(&self, quotas: Quotas) -> u32 {
        match self {
            Self::Finite(..) => quotas.finite_per_session,
            Self::Other(_) => quotas.others_per_principal,
        }
    }

    /// `finite` or `other`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Finite(..) => "finite",
            Self::Other(_) => "other",
        }
    }
}

/// A start's ticket in the queue. Earlier starts have lower ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuotaTicket(u64);

/// The result of entering the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueuePosition {
    /// It has a slot.
    Granted(QuotaTicket),
    /// It waits behind earlier starts.
    Waiting(QuotaTicket),
    /// The queue is full.
    Full,
}

/// The slots and the queue of one quota.
#[derive(Debug, Default)]
struct QuotaQueue {
    holders: BTreeSet<ExecutionId>,
    /// Starts that have a slot and no execution yet.
    granted: BTreeSet<QuotaTicket>,
    /// Waiting starts, in first-come order, with the id that the client chose.
    waiting: BTreeMap<QuotaTicket, Option<ExecutionId>>,
}

impl QuotaQueue {
    fn used(&self) -> usize {
        self.holders.len() + self.granted.len()
    }

    fn is_empty(&self) -> bool {
        self.used() == 0 && self.waiting.is_empty()
    }

    /// Grants free slots in first-come order.
    fn grant(&mut self, limit: u32) -> Vec<QuotaTicket> {
        let mut granted = Vec::new();
        while self.used() < limit as usize
            && let Some((ticket, _)) = self.waiting.pop_first()
        {
            self.granted.insert(ticket);
            granted.push(ticket);
        }
        granted
    }
}

/// All quotas: who holds slots, and who waits for one, first come, first served. Quotas are
/// independent of each other. Operations that free slots return the starts that received one.
#[derive(Debug)]
pub struct QuotaTable {
    quotas: Quotas,
    queues: HashMap<QuotaKey, QuotaQueue>,
    last_ticket: u64,
}

impl QuotaTable {
    /// A table without any holder.
    #[must_use]
    pub fn new(quotas: Quotas) -> Self {
        Self {
            quotas,
            queues: HashMap::new(),
            last_ticket: 0,
        }
    }

    /// Requests a slot for a start with this client-chosen id; a running execution is never ended
    /// to free one.
    pub fn enter_queue(&mut self, key: &QuotaKey, chosen_id: Option<ExecutionId>) -> QueuePosition {
        let limit = key.limit(self.quotas);
        let queue = self.queues.entry(key.clone()).or_default();
        if queue.waiting.len() >= WAITING_STARTS {
            return QueuePosition::Full;
        }
        self.last_ticket += 1;
        let ticket = QuotaTicket(self.last_ticket);
        if queue.waiting.is_empty() && queue.used() < limit as usize {
            queue.granted.insert(ticket);
            return QueuePosition::Granted(ticket);
        }
        queue.waiting.insert(ticket, chosen_id);
        QueuePosition::Waiting(ticket)
    }

    /// Releases the ticket of a start, with or without a slot. One that became an execution has no
    /// ticket any more.
    pub fn leave_queue(&mut self, key: &QuotaKey, ticket: QuotaTicket) -> Vec<QuotaTicket> {
        self.change(key, |queue| {
            queue.granted.remove(&ticket);
            queue.waiting.remove(&ticket);
        })
    }

    /// Turns the start with this ticket into an execution.
    ///
    /// False where it has no slot.
    pub fn assign(&mut self, key: &QuotaKey, ticket: QuotaTicket, id: ExecutionId) -> bool {
        let Some(queue) = self.queues.get_mut(key) else {
            return false;
        };
        let granted = queue.granted.remove(&ticket);
        if granted {
            queue.holders.insert(id);
        }
        granted
    }

    /// Takes a slot regardless of the limit, for an execution that recovery found running.
    pub fn force_acquire(&mut self, key: QuotaKey, id: ExecutionId) {
        self.queues.entry(key).or_default().holders.insert(id);
    }

    /// Releases a slot.
    pub fn release(&mut self, key: &QuotaKey, id: ExecutionId) -> Vec<QuotaTicket> {
        self.change(key, |queue| {
            queue.holders.remove(&id);
        })
    }

    /// Drops the waiting starts of this quota that are selected; returns them.
    pub fn drop_waiters(
        &mut self,
        key: &QuotaKey,
        is_selected: impl Fn(QuotaTicket) -> bool,
    ) -> Vec<QuotaTicket> {
        let mut dropped = Vec::new();
        self.change(key, |queue| {
            let waiting = queue.waiting.keys().copied();
            dropped = waiting.filter(|ticket| is_selected(*ticket)).collect();
            queue.waiting.retain(|ticket, _| !dropped.contains(ticket));
        });
        dropped
    }

    /// The waiting start with this id.
    #[must_use]
    pub fn waiting_ticket(&self, key: &QuotaKey, chosen_id: ExecutionId) -> Option<QuotaTicket> {
        let mut waiting = self.queues.get(key)?.waiting.iter();
        let found = waiting.find(|(_, id)| **id == Some(chosen_id));
        found.map(|(ticket, _)| *ticket)
    }

    /// How many starts are ahead of this one; none where it does not wait.
    #[must_use]
    pub fn ahead(&self, key: &QuotaKey, ticket: QuotaTicket) -> Option<usize> {
        let mut waiting = self.queues.get(key)?.waiting.keys();
        waiting.position(|waiting| *waiting == ticket)
    }

    /// The executions that hold slots of a quota, oldest first.
    #[must_use]
    pub fn holders(&self, key: &QuotaKey) -> Vec<ExecutionId> {
        let queue = self.queues.get(key);
        queue.map_or_else(Vec::new, |line| line.holders.iter().copied().collect())
    }

    /// How many executions of a quota may run at once.
    #[must_use]
    pub const fn limit(&self, key: &QuotaKey) -> u32 {
        key.limit(self.quotas)
    }

    /// How many executions hold slots.
    #[must_use]
    pub fn running_count(&self) -> usize {
        self.queues.values().map(|line| line.holders.len()).sum()
    }

    fn change(&mut self, key: &QuotaKey, change: impl FnOnce(&mut QuotaQueue)) -> Vec<QuotaTicket> {
        let limit = key.limit(self.quotas);
        let Some(queue) = self.queues.get_mut(key) else {
            return Vec::new();
        };
        change(queue);
        let granted = queue.grant(limit);
        if queue.is_empty() {
            self.queues.remove(key);
        }
        granted
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }
}
