//! How many executions may run at once (D6).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::time::Duration;

use ostler_model::{ExecutionId, Io, Lifetime, Owner, Principal, SessionName, Spec};

use crate::request::StartRequest;
use crate::settings::Quotas;

/// Who is counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Share {
    /// Finite executions of one session.
    Finite(Principal, SessionName),
    /// Services, terminals and everything outside sessions, of one principal.
    Other(Principal),
}

impl Share {
    /// Where an execution counts.
    #[must_use]
    pub fn of(spec: &Spec, owner: &Owner) -> Self {
        let finite = matches!(spec.lifetime, Lifetime::Finite { .. });
        let piped = matches!(spec.io, Io::Pipes { .. });
        Self::new(owner, finite && piped)
    }

    /// Where an execution counts that is asked for.
    #[must_use]
    pub fn asked(request: &StartRequest, owner: &Owner) -> Self {
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
pub struct Ticket(u64);

/// What a start that asks for a place comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueuePosition {
    /// It has one.
    Granted(Ticket),
    /// It waits behind the starts that came before it.
    Waits(Ticket),
    /// As many wait as may.
    Full,
}

/// The places of one share.
#[derive(Debug, Default)]
struct ShareQueue {
    held: BTreeSet<ExecutionId>,
    /// Starts that have a place and no execution yet.
    granted: BTreeSet<Ticket>,
    /// Those that wait, first come first, with the id that the client chose.
    waiting: BTreeMap<Ticket, Option<ExecutionId>>,
}

impl ShareQueue {
    fn taken(&self) -> usize {
        self.held.len() + self.granted.len()
    }

    fn is_empty(&self) -> bool {
        self.taken() == 0 && self.waiting.is_empty()
    }

    /// Gives free places to those who came first.
    fn grant(&mut self, limit: u32) -> Vec<Ticket> {
        let mut now = Vec::new();
        while self.taken() < limit as usize
            && let Some((ticket, _)) = self.waiting.pop_first()
        {
            self.granted.insert(ticket);
            now.push(ticket);
        }
        now
    }
}

/// Who holds which places, and who waits for one: first come, first served. Shares do not wait
/// for each other. What frees places answers who got one by it.
#[derive(Debug)]
pub struct Places {
    quotas: Quotas,
    lines: HashMap<Share, ShareQueue>,
    tickets: u64,
}

impl Places {
    /// Nobody holds any.
    #[must_use]
    pub fn new(quotas: Quotas) -> Self {
        Self {
            quotas,
            lines: HashMap::new(),
            tickets: 0,
        }
    }

    /// Asks for a place, for a start whose client chose this id; a running one is never ended
    /// to make room.
    pub fn ask(&mut self, share: &Share, chosen: Option<ExecutionId>) -> QueuePosition {
        let limit = share.limit(self.quotas);
        let line = self.lines.entry(share.clone()).or_default();
        if line.waiting.len() >= WAITING_STARTS {
            return QueuePosition::Full;
        }
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        if line.waiting.is_empty() && line.taken() < limit as usize {
            line.granted.insert(ticket);
            return QueuePosition::Granted(ticket);
        }
        line.waiting.insert(ticket, chosen);
        QueuePosition::Waits(ticket)
    }

    /// The start needs no place any more, whether it has one or waits. One that became an
    /// execution has given its ticket away.
    pub fn leave(&mut self, share: &Share, ticket: Ticket) -> Vec<Ticket> {
        self.change(share, |line| {
            line.granted.remove(&ticket);
            line.waiting.remove(&ticket);
        })
    }

    /// The start that has a place is an execution from now on.
    ///
    /// False where it has none.
    pub fn seat(&mut self, share: &Share, ticket: Ticket, id: ExecutionId) -> bool {
        let Some(line) = self.lines.get_mut(share) else {
            return false;
        };
        let granted = line.granted.remove(&ticket);
        if granted {
            line.held.insert(id);
        }
        granted
    }

    /// Takes a place whatever the limit: what recovery found running runs.
    pub fn take_anyway(&mut self, share: Share, id: ExecutionId) {
        self.lines.entry(share).or_default().held.insert(id);
    }

    /// Gives a place back.
    pub fn give_back(&mut self, share: &Share, id: ExecutionId) -> Vec<Ticket> {
        self.change(share, |line| {
            line.held.remove(&id);
        })
    }

    /// Nobody waits for a place of this share any more: those who did.
    pub fn dismiss(&mut self, share: &Share) -> Vec<Ticket> {
        let mut dismissed = Vec::new();
        self.change(share, |line| {
            dismissed = std::mem::take(&mut line.waiting).into_keys().collect();
        });
        dismissed
    }

    /// How many are served before the start with this id; none where it does not wait.
    #[must_use]
    pub fn ahead(&self, share: &Share, chosen: ExecutionId) -> Option<usize> {
        let line = self.lines.get(share)?;
        line.waiting.values().position(|id| *id == Some(chosen))
    }

    /// Who holds the places of a share, oldest first.
    #[must_use]
    pub fn holders(&self, share: &Share) -> Vec<ExecutionId> {
        let line = self.lines.get(share);
        line.map_or_else(Vec::new, |line| line.held.iter().copied().collect())
    }

    /// How many executions of a share may run at once.
    #[must_use]
    pub const fn limit(&self, share: &Share) -> u32 {
        share.limit(self.quotas)
    }

    /// How many executions hold places.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lines.values().map(|line| line.held.len()).sum()
    }

    fn change(&mut self, share: &Share, change: impl FnOnce(&mut ShareQueue)) -> Vec<Ticket> {
        let limit = share.limit(self.quotas);
        let Some(line) = self.lines.get_mut(share) else {
            return Vec::new();
        };
        change(line);
        let granted = line.grant(limit);
        if line.is_empty() {
            self.lines.remove(share);
        }
        granted
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
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
pub const HOLDERS_TOLD: usize = 32;
/// Characters of a holder's command line.
pub const HOLDER_COMMAND_CHARS: usize = 60;

/// No place became free for a start (D6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaExceeded {
    /// How many run.
    pub running: usize,
    /// How many may.
    pub limit: u32,
    /// `finite` or `other`.
    pub kind: &'static str,
    /// Who holds the places, oldest first: those that the caller sees, at most
    /// [`HOLDERS_TOLD`].
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
