//! Which container serves a start, and which ones are removed: pure decisions.
//!
//! ```text
//!             create                 started                    removed
//!   (none) ──────────▶ starting ───────────────▶ warm ──────────────────────┐
//!                         │ failed                │ retired: unhealthy,      ▼
//!                         │                       │ or serves one start  removing ──▶ (none)
//!                         └───────────────────────┴──▶ (last use ends) ──────┘
//! ```
//!
//! A container in use is never removed here, whatever its state: its commands end as they will. One
//! that runs nothing is removed when it was idle for its idle timeout.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::identity::{ContainerName, PoolKey};

/// The most containers of a daemon, those that are being removed not counted.
pub(crate) const CONTAINERS_MAX: usize = 64;
/// The most that are being removed, while the engine does not remove them; at this number nothing
/// is created.
const REMOVING_MAX: usize = 64;
/// From one try to remove a container to the next.
const REMOVE_RETRY: Duration = Duration::from_secs(30);

/// What a container is there for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContainerTraits {
    /// Starts with this key may share it.
    pub(crate) key: PoolKey,
    /// How long it is kept when it runs nothing; none where it serves one start.
    pub(crate) idle_timeout: Option<Duration>,
}

/// What is done for a start. The container that is named counts one more use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ContainerChoice {
    /// This one runs already.
    Serve(ContainerName),
    /// This one is being made for another start.
    Wait(ContainerName),
    /// This one is to be made.
    Create(ContainerName),
    /// There are as many as may be.
    Full,
}

/// What a container does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It is being made.
    Starting,
    /// It serves starts.
    Warm,
    /// It serves no further start.
    Retired,
    /// It is to be removed, at this time or later; none while that is tried.
    Removing(Option<Instant>),
}

#[derive(Debug, Clone)]
struct PoolEntry {
    traits: ContainerTraits,
    phase: Phase,
    uses: usize,
    /// When its last use ended.
    idle_since: Instant,
}

impl PoolEntry {
    fn serves(&self, key: &PoolKey, phase: Phase) -> bool {
        self.phase == phase && self.traits.idle_timeout.is_some() && self.traits.key == *key
    }

    /// When it is removed, if nothing uses it before.
    fn due(&self) -> Option<Instant> {
        match self.phase {
            Phase::Removing(at) => at,
            Phase::Warm if self.uses == 0 => {
                let idle = self.traits.idle_timeout.unwrap_or_default();
                // One that no clock reaches is never due.
                self.idle_since.checked_add(idle)
            }
            Phase::Starting | Phase::Warm | Phase::Retired => None,
        }
    }

    const fn is_removing(&self) -> bool {
        matches!(self.phase, Phase::Removing(_))
    }
}

/// All containers of a daemon.
#[derive(Debug, Default)]
pub(crate) struct PoolState {
    members: BTreeMap<ContainerName, PoolEntry>,
}

impl PoolState {
    /// Decides on a start; `fresh` is the name of the container if one has to be made. Where there
    /// are too many, the one that was idle for longest makes room.
    pub(crate) fn admit(
        &mut self,
        traits: ContainerTraits,
        fresh: ContainerName,
        now: Instant,
    ) -> ContainerChoice {
        if traits.idle_timeout.is_some() {
            for phase in [Phase::Warm, Phase::Starting] {
                let mut members = self.members.iter_mut();
                let found = members.find(|(_, member)| member.serves(&traits.key, phase));
                if let Some((name, member)) = found {
                    member.uses += 1;
                    return match phase {
                        Phase::Starting => ContainerChoice::Wait(name.clone()),
                        Phase::Warm | Phase::Retired | Phase::Removing(_) => {
                            ContainerChoice::Serve(name.clone())
                        }
                    };
                }
            }
        }
        if !self.make_room(now) {
            return ContainerChoice::Full;
        }
        let member = PoolEntry {
            traits,
            phase: Phase::Starting,
            uses: 1,
            idle_since: now,
        };
        self.members.insert(fresh.clone(), member);
        ContainerChoice::Create(fresh)
    }

    /// Whether one more may be made.
    fn make_room(&mut self, now: Instant) -> bool {
        let removing = self.members.values().filter(|it| it.is_removing()).count();
        if removing >= REMOVING_MAX {
            return false;
        }
        if self.members.len() - removing < CONTAINERS_MAX {
            return true;
        }
        let members = self.members.values_mut();
        let idle = members.filter(|it| it.phase == Phase::Warm && it.uses == 0);
        let Some(oldest) = idle.min_by_key(|it| it.idle_since) else {
            return false;
        };
        oldest.phase = Phase::Removing(Some(now));
        true
    }

    /// A container of an earlier daemon serves this one, with as many executions as still run in it.
    pub(crate) fn adopt(
        &mut self,
        name: ContainerName,
        traits: ContainerTraits,
        uses: usize,
        now: Instant,
    ) {
        let member = PoolEntry {
            traits,
            phase: Phase::Warm,
            uses,
            idle_since: now,
        };
        self.members.entry(name).or_insert(member);
    }

    /// A container of an earlier daemon is to be removed at this time.
    pub(crate) fn adopt_for_removal(&mut self, name: ContainerName, due: Instant) {
        let member = PoolEntry {
            traits: ContainerTraits {
                key: PoolKey::from_label(""),
                idle_timeout: None,
            },
            phase: Phase::Removing(Some(due)),
            uses: 0,
            idle_since: due,
        };
        self.members.entry(name).or_insert(member);
    }

    /// The container serves starts.
    pub(crate) fn started(&mut self, name: &ContainerName) {
        if let Some(member) = self.members.get_mut(name)
            && member.phase == Phase::Starting
        {
            member.phase = Phase::Warm;
        }
    }

    /// The container could not be made: what there is of it is to be removed.
    pub(crate) fn failed(&mut self, name: &ContainerName, now: Instant) {
        if let Some(member) = self.members.get_mut(name) {
            member.phase = Phase::Removing(Some(now));
        }
    }

    /// The container is not to serve further starts: it is not healthy, or does not run.
    pub(crate) fn retire(&mut self, name: &ContainerName, now: Instant) {
        if let Some(member) = self.members.get_mut(name)
            && member.phase == Phase::Warm
        {
            member.phase = if member.uses == 0 {
                Phase::Removing(Some(now))
            } else {
                Phase::Retired
            };
        }
    }

    /// An execution in the container has ended.
    pub(crate) fn release(&mut self, name: &ContainerName, now: Instant) {
        let Some(member) = self.members.get_mut(name) else {
            return;
        };
        member.uses = member.uses.saturating_sub(1);
        member.idle_since = now;
        if member.uses > 0 {
            return;
        }
        let serves_one = member.traits.idle_timeout.is_none();
        if member.phase == Phase::Retired || (member.phase == Phase::Warm && serves_one) {
            member.phase = Phase::Removing(Some(now));
        }
    }

    /// The containers to remove now; each is named once, until its removal failed.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<ContainerName> {
        let members = self.members.iter_mut();
        let due = members.filter(|(_, member)| member.due().is_some_and(|due| due <= now));
        due.map(|(name, member)| {
            member.phase = Phase::Removing(None);
            name.clone()
        })
        .collect()
    }

    /// When the next one is to be removed.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.members.values().filter_map(PoolEntry::due).min()
    }

    /// The container is gone.
    pub(crate) fn removed(&mut self, name: &ContainerName) {
        self.members.remove(name);
    }

    /// The container could not be removed; that is tried again later.
    pub(crate) fn not_removed(&mut self, name: &ContainerName, now: Instant) {
        if let Some(member) = self.members.get_mut(name) {
            member.phase = Phase::Removing(Some(now + REMOVE_RETRY));
        }
    }

    /// The daemon ends: the containers that run nothing, which are to be removed.
    pub(crate) fn take_unused(&mut self) -> Vec<ContainerName> {
        let members = self.members.iter_mut();
        let unused = members.filter(|(_, member)| member.uses == 0);
        unused
            .map(|(name, member)| {
                member.phase = Phase::Removing(None);
                name.clone()
            })
            .collect()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
