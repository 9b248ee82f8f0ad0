//! Quotas: how many executions may run at once, and the queue of starts that wait for a slot.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::time::Duration;

use ostler_model::{ExecutionId, Io, Lifetime, Owner, Principal, SessionName, Spec};

use crate::request::StartRequest;
use crate::settings::Quotas;

/// Who is counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum QuotaKey {
    /// Finite executions of one session.
    Finite(Principal, SessionName),
    /// Services, terminals and everything outside sessions, of one principal.
    Other(Principal),
}

impl QuotaKey {
    /// Where an execution counts.
    #[must_use]
    pub fn of(spec: &Spec, owner: &Owner) -> Self {
        let finite = matches!(spec.lifetime, Lifetime::Finite { .. });
        let piped = matches!(spec.io, Io::Pipes { .. });
        Self::new(owner, finite && piped)
    }

    /// Where an execution counts that is asked for.
    #[must_use]
    pub fn for_request(request: &StartRequest, owner: &Owner) -> Self {
        let finite = !matches!(request.lifetime, Some(Lifetime::Service { .. }));
        Self::new(owner, finite && request.pty.is_none())
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

/// Starts that wait for a place of one share; further ones are refused at once.
pub const WAITING_STARTS: usize = 1_000;

/// A start on its way to a place. Earlier starts have lower ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuotaTicket(u64);

/// What a start that asks for a place comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueuePosition {
    /// It has one.
    Granted(QuotaTicket),
    /// It waits behind the starts that came before it.
    Waiting(QuotaTicket),
    /// As many wait as may.
    Full,
}

/// The places of one share.
#[derive(Debug, Default)]
struct QuotaQueue {
    holders: BTreeSet<ExecutionId>,
    /// Starts that have a place and no execution yet.
    granted: BTreeSet<QuotaTicket>,
    /// Those that wait, first come first, with the id that the client chose.
    waiting: BTreeMap<QuotaTicket, Option<ExecutionId>>,
}

impl QuotaQueue {
    fn used(&self) -> usize {
        self.holders.len() + self.granted.len()
    }

    fn is_empty(&self) -> bool {
        self.used() == 0 && self.waiting.is_empty()
    }

    /// Gives free places to those who came first.
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

/// Who holds which places, and who waits for one: first come, first served. Shares do not wait
/// for each other. What frees places answers who got one by it.
#[derive(Debug)]
pub struct QuotaTable {
    quotas: Quotas,
    queues: HashMap<QuotaKey, QuotaQueue>,
    last_ticket: u64,
}

impl QuotaTable {
    /// Nobody holds any.
    #[must_use]
    pub fn new(quotas: Quotas) -> Self {
        Self {
            quotas,
            queues: HashMap::new(),
            last_ticket: 0,
        }
    }

    /// Asks for a place, for a start whose client chose this id; a running one is never ended
    /// to make room.
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

    /// The start needs no place any more, whether it has one or waits. One that became an
    /// execution has given its ticket away.
    pub fn leave_queue(&mut self, key: &QuotaKey, ticket: QuotaTicket) -> Vec<QuotaTicket> {
        self.change(key, |queue| {
            queue.granted.remove(&ticket);
            queue.waiting.remove(&ticket);
        })
    }

    /// The start that has a place is an execution from now on.
    ///
    /// False where it has none.
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

    /// Takes a place whatever the limit: what recovery found running runs.
    pub fn force_acquire(&mut self, key: QuotaKey, id: ExecutionId) {
        self.queues.entry(key).or_default().holders.insert(id);
    }

    /// Gives a place back.
    pub fn release(&mut self, key: &QuotaKey, id: ExecutionId) -> Vec<QuotaTicket> {
        self.change(key, |queue| {
            queue.holders.remove(&id);
        })
    }

    /// Nobody waits for a place of this share any more: those who did.
    pub fn drop_waiters(&mut self, key: &QuotaKey) -> Vec<QuotaTicket> {
        let mut dismissed = Vec::new();
        self.change(key, |queue| {
            dismissed = std::mem::take(&mut queue.waiting).into_keys().collect();
        });
        dismissed
    }

    /// How many are served before the start with this id; none where it does not wait.
    #[must_use]
    pub fn ahead(&self, key: &QuotaKey, chosen_id: ExecutionId) -> Option<usize> {
        let queue = self.queues.get(key)?;
        queue.waiting.values().position(|id| *id == Some(chosen_id))
    }

    /// Who holds the places of a share, oldest first.
    #[must_use]
    pub fn holders(&self, key: &QuotaKey) -> Vec<ExecutionId> {
        let queue = self.queues.get(key);
        queue.map_or_else(Vec::new, |line| line.holders.iter().copied().collect())
    }

    /// How many executions of a share may run at once.
    #[must_use]
    pub const fn limit(&self, key: &QuotaKey) -> u32 {
        key.limit(self.quotas)
    }

    /// How many executions hold places.
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

/// What an execution that holds a place is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaHolder {
    /// Its id.
    pub id: ExecutionId,
    /// Its command line, cut.
    pub command: String,
}

/// Holders that a refusal names; the rest is counted.
pub const HOLDERS_LISTED_MAX: usize = 32;
/// Characters of a holder's command line.
pub const HOLDER_COMMAND_CHARS: usize = 60;

/// No place became free for a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaExceeded {
    /// How many run.
    pub running: usize,
    /// How many may.
    pub limit: u32,
    /// `finite` or `other`.
    pub kind: &'static str,
    /// Who holds the places, oldest first: those that the caller sees, at most
    /// [`HOLDERS_LISTED_MAX`].
    pub holders: Vec<QuotaHolder>,
    /// How long the start waited.
    pub waited: Duration,
    /// Whether as many starts wait already as may.
    pub queue_full: bool,
}

impl fmt::Display for QuotaExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            running,
            limit,
            kind,
            ..
        } = self;
        write!(f, "{running} of {limit} {kind} executions run already")?;
        for (n, holder) in self.holders.iter().enumerate() {
            let lead = if n == 0 { ": " } else { ", " };
            write!(f, "{lead}{} ({})", holder.id.short(), holder.command)?;
        }
        match self.running.saturating_sub(self.holders.len()) {
            0 => {}
            rest => write!(f, " and {rest} more")?,
        }
        if self.queue_full {
            write!(f, "; {WAITING_STARTS} starts wait for a place already")?;
        } else if !self.waited.is_zero() {
            let waited = self.waited.as_secs_f64();
            write!(f, "; none of them ended within {waited:.1} s")?;
        }
        Ok(())
    }
}
