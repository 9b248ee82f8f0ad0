//! How far each client has been shown a terminal's output.
//!
//! An answer goes on where the last one to the same client ended, so that nothing printed
//! between two calls is left out and nothing is shown twice.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ostler_model::{Caller, ExecutionId, Principal, SessionName};

/// Positions kept, over all clients; the one used longest ago is dropped for a new one.
const POSITIONS: usize = 4_096;

/// A client and an execution.
type Reader = (Principal, Option<SessionName>, ExecutionId);

/// The positions of all clients.
#[derive(Debug, Default)]
pub(super) struct ReadPositions(Mutex<Positions>);

#[derive(Debug, Default)]
struct Positions {
    known: HashMap<Reader, Position>,
    uses: u64,
}

#[derive(Debug, Clone, Copy)]
struct Position {
    /// Everything before this offset was shown.
    offset: u64,
    /// When it was used last, counted in uses.
    used: u64,
}

impl ReadPositions {
    /// Where what this client was not shown begins; none where it was shown nothing yet.
    pub(super) fn of(&self, caller: &Caller, id: ExecutionId) -> Option<u64> {
        let known = self.lock();
        let position = known.known.get(&reader(caller, id));
        position.map(|it| it.offset)
    }

    /// This client was shown a stretch of output. One that begins beyond the client's position
    /// leaves that where it is: what lies between was not shown.
    pub(super) fn advance(&self, caller: &Caller, id: ExecutionId, (from, to): (u64, u64)) {
        let mut positions = self.lock();
        positions.uses += 1;
        let used = positions.uses;
        let reader = reader(caller, id);
        if let Some(known) = positions.known.get_mut(&reader) {
            known.used = used;
            if from <= known.offset {
                known.offset = known.offset.max(to);
            }
            return;
        }
        if positions.known.len() >= POSITIONS {
            let oldest = positions.known.iter().min_by_key(|(_, it)| it.used);
            let oldest = oldest.map(|(reader, _)| reader.clone());
            oldest.map(|reader| positions.known.remove(&reader));
        }
        let position = Position { offset: to, used };
        positions.known.insert(reader, position);
    }

    fn lock(&self) -> MutexGuard<'_, Positions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn reader(caller: &Caller, id: ExecutionId) -> Reader {
    let owner = &caller.owner;
    (owner.principal.clone(), owner.session.clone(), id)
}

#[cfg(test)]
mod tests {
    use ostler_model::{Owner, Scope};

    use super::*;

    fn caller(session: &str) -> Caller {
        Caller {
            owner: Owner {
                principal: Principal::unix(1000),
                project: None,
                session: Some(SessionName(session.to_owned())),
                task: None,
                channel: ostler_model::Channel::Local,
            },
            scope: Scope::Session,
        }
    }

    #[test]
    fn a_stretch_behind_the_position_moves_it_and_one_beyond_does_not() {
        let positions = ReadPositions::default();
        let (ann, bob, id) = (caller("ann"), caller("bob"), ExecutionId::mint());
        assert_eq!(positions.of(&ann, id), None);
        for (stretch, at) in [
            ((0, 10), 10),
            ((10, 20), 20),
            ((30, 40), 20),
            ((5, 15), 20),
            ((15, 25), 25),
        ] {
            positions.advance(&ann, id, stretch);
            assert_eq!(positions.of(&ann, id), Some(at), "{stretch:?}");
        }
        assert_eq!(positions.of(&bob, id), None);
    }

    #[test]
    fn the_oldest_goes_for_a_new_one() {
        let positions = ReadPositions::default();
        let ann = caller("ann");
        let ids: Vec<_> = (0..=POSITIONS).map(|_| ExecutionId::mint()).collect();
        for id in &ids {
            positions.advance(&ann, *id, (0, 1));
        }
        assert_eq!(positions.of(&ann, ids[0]), None);
        assert_eq!(positions.of(&ann, ids[POSITIONS]), Some(1));
    }
}
