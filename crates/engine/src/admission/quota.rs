//! How many executions may run at once (D6).

use std::collections::{BTreeSet, HashMap};

use ostler_model::{ExecutionId, Io, Lifetime, Owner, Principal, SessionName, Spec};

use crate::error::Error;
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
        match &owner.session {
            Some(session) if finite && piped => {
                Self::Finite(owner.principal.clone(), session.clone())
            }
            Some(_) | None => Self::Other(owner.principal.clone()),
        }
    }

    const fn limit(&self, quotas: Quotas) -> u32 {
        match self {
            Self::Finite(..) => quotas.finite_per_session,
            Self::Other(_) => quotas.others_per_principal,
        }
    }

    const fn kind(&self) -> &'static str {
        match self {
            Self::Finite(..) => "finite",
            Self::Other(_) => "other",
        }
    }
}

/// Who holds which places.
#[derive(Debug, Default)]
pub struct Places {
    held: HashMap<Share, BTreeSet<ExecutionId>>,
}

impl Places {
    /// Takes a place.
    ///
    /// # Errors
    /// When none is free, with the holders; a running one is never ended to make room.
    pub fn take(&mut self, quotas: Quotas, share: &Share, id: ExecutionId) -> Result<(), Error> {
        let limit = share.limit(quotas);
        let held = self.held.entry(share.clone()).or_default();
        if held.len() >= limit as usize {
            let holders: Vec<ExecutionId> = held.iter().copied().collect();
            if held.is_empty() {
                self.held.remove(share);
            }
            return Err(Error::Quota {
                running: holders.len(),
                limit,
                kind: share.kind(),
                holders,
            });
        }
        held.insert(id);
        Ok(())
    }

    /// Takes a place whatever the limit: what recovery found running runs.
    pub fn take_anyway(&mut self, share: Share, id: ExecutionId) {
        self.held.entry(share).or_default().insert(id);
    }

    /// Gives a place back.
    pub fn give_back(&mut self, share: &Share, id: ExecutionId) {
        if let Some(held) = self.held.get_mut(share) {
            held.remove(&id);
            if held.is_empty() {
                self.held.remove(share);
            }
        }
    }

    /// How many places are held in all.
    #[must_use]
    pub fn count(&self) -> usize {
        self.held.values().map(BTreeSet::len).sum()
    }
}
