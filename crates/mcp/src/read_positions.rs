//! How much of a terminal's output each client has been shown.
//!
//! An answer continues where the last one to the same client ended, so that nothing printed between
//! two calls is omitted or shown twice.

use std::collections::{BTreeMap, HashMap};

use std::sync::Arc;

use ostler_model::{Caller, ExecutionId, Principal, SessionName};
use parking_lot::Mutex;

/// Positions kept, over all clients; the least recently used one is dropped for a new one.
const POSITIONS: usize = 4_096;

/// A client and an execution.
type PositionKey = (Principal, Option<SessionName>, ExecutionId);

/// The positions of all clients.
#[derive(Debug, Default)]
pub(super) struct ReadPositions(Mutex<PositionTable>);

#[derive(Debug, Default)]
struct PositionTable {
    by_reader: HashMap<Arc<PositionKey>, ReadPosition>,
    /// The same readers by their last use, the least recent one first.
    by_use: BTreeMap<u64, Arc<PositionKey>>,
    uses: u64,
}

#[derive(Debug, Clone, Copy)]
struct ReadPosition {
    /// Everything before this offset was shown.
    offset: u64,
    /// When it was last used, counted in uses.
    last_used: u64,
}

impl ReadPositions {
    /// Offset of the first output this client has not been shown; none where it was shown nothing.
    pub(super) fn get(&self, caller: &Caller, id: ExecutionId) -> Option<u64> {
        let positions = self.0.lock();
        let position = positions.by_reader.get(&position_key(caller, id));
        position.map(|it| it.offset)
    }

    /// This client was shown a range of output. A range that starts beyond the client's position
    /// leaves the position unchanged: the output in between was not shown.
    pub(super) fn advance(&self, caller: &Caller, id: ExecutionId, from: u64, to: u64) {
        let reader = position_key(caller, id);
        self.0.lock().advance(reader, from, to);
    }
}

impl PositionTable {
    fn advance(&mut self, reader: PositionKey, from: u64, to: u64) {
        self.uses += 1;
        let used = self.uses;
        if let Some(position) = self.by_reader.get_mut(&reader) {
            if let Some(reader) = self.by_use.remove(&position.last_used) {
                self.by_use.insert(used, reader);
            }
            position.last_used = used;
            if from <= position.offset {
                position.offset = position.offset.max(to);
            }
            return;
        }
        if self.by_reader.len() >= POSITIONS
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.by_reader.remove(&oldest);
        }
        let position = ReadPosition {
            offset: to,
            last_used: used,
        };
        let reader = Arc::new(reader);
        self.by_use.insert(used, Arc::clone(&reader));
        self.by_reader.insert(reader, position);
    }
}

fn position_key(caller: &Caller, id: ExecutionId) -> PositionKey {
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
                channel: ostler_model::RequestChannel::Local,
            },
            scope: Scope::Session,
            projects: ostler_model::ProjectView::default(),
        }
    }

    #[test]
    fn a_stretch_behind_the_position_moves_it_and_one_beyond_does_not() {
        let positions = ReadPositions::default();
        let (ann, bob, id) = (caller("ann"), caller("bob"), ExecutionId::mint());
        assert_eq!(positions.get(&ann, id), None);
        for (from, to, position) in [
            (0, 10, 10),
            (10, 20, 20),
            (30, 40, 20),
            (5, 15, 20),
            (15, 25, 25),
        ] {
            positions.advance(&ann, id, from, to);
            assert_eq!(positions.get(&ann, id), Some(position), "{from}..{to}");
        }
        assert_eq!(positions.get(&bob, id), None);
    }

    #[test]
    fn the_oldest_goes_for_a_new_one() {
        let positions = ReadPositions::default();
        let ann = caller("ann");
        let ids: Vec<_> = (0..=POSITIONS).map(|_| ExecutionId::mint()).collect();
        for id in &ids[..POSITIONS] {
            positions.advance(&ann, *id, 0, 1);
        }
        positions.advance(&ann, ids[0], 1, 2);
        positions.advance(&ann, ids[POSITIONS], 0, 1);
        assert_eq!(positions.get(&ann, ids[0]), Some(2));
        assert_eq!(positions.get(&ann, ids[1]), None);
        assert_eq!(positions.get(&ann, ids[POSITIONS]), Some(1));
        let table = positions.0.lock();
        assert_eq!(
            (table.by_reader.len(), table.by_use.len()),
            (POSITIONS, POSITIONS)
        );
    }
}
