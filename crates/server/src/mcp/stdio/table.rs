//! The requests of one connection that are under way. Pure.

use std::collections::HashMap;

use rmcp::model::{ProtocolVersion, RequestId};
use serde_json::Value;

use super::record::Output;

/// Requests that can be under way at a time on one connection.
const REQUESTS: usize = 4_096;

/// Why a request is refused whose id another one has that is not answered yet.
pub(in crate::mcp) const IN_FLIGHT: &str =
    "a request with this id is in flight; each request needs an id of its own";

/// Where the answer to a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A line of its own; `standing` where the request then holds for the rest of the
    /// connection.
    Line { line: u64, standing: bool },
    /// Into the answer to a batch.
    Member { batch: u64 },
    /// Nowhere: the client had it from an earlier service.
    Replayed,
}

/// Why a request is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// One with its id is under way.
    Duplicate,
    /// There are too many.
    TooMany,
}

impl Refusal {
    /// In words.
    pub(super) fn message(self) -> String {
        match self {
            Self::Duplicate => IN_FLIGHT.to_owned(),
            Self::TooMany => {
                format!("more than {REQUESTS} requests are in flight; wait for some answers")
            }
        }
    }
}

/// The table.
#[derive(Debug, Default)]
pub(super) struct Table {
    calls: HashMap<RequestId, Call>,
    batches: HashMap<u64, Batch>,
    /// What the handshake came to.
    pub(super) revision: Option<ProtocolVersion>,
}

#[derive(Debug)]
struct Call {
    role: Role,
    /// The client knows that this subscription holds.
    acknowledged: bool,
}

#[derive(Debug, Default)]
struct Batch {
    left: usize,
    answers: Vec<Value>,
}

impl Table {
    /// Takes a request in.
    pub(super) fn admit(
        &mut self,
        id: &RequestId,
        role: Role,
        acknowledged: bool,
    ) -> Result<(), Refusal> {
        if self.calls.contains_key(id) {
            return Err(Refusal::Duplicate);
        }
        if self.calls.len() >= REQUESTS {
            return Err(Refusal::TooMany);
        }
        let call = Call { role, acknowledged };
        self.calls.insert(id.clone(), call);
        if let Role::Member { batch } = role {
            self.batches.entry(batch).or_default().left += 1;
        }
        Ok(())
    }

    /// An answer to a member of a batch that is no request under way.
    pub(super) fn note(&mut self, batch: u64, answer: Value) {
        self.batches.entry(batch).or_default().answers.push(answer);
    }

    /// The answer to a batch, once its last member is answered; [`Value::Null`] where none of
    /// them takes an answer.
    pub(super) fn finished(&mut self, batch: u64) -> Option<Value> {
        if self.batches.get(&batch).is_some_and(|it| it.left > 0) {
            return None;
        }
        let answers = self.batches.remove(&batch).unwrap_or_default().answers;
        Some(if answers.is_empty() {
            Value::Null
        } else {
            Value::Array(answers)
        })
    }

    /// Where the answer to this request goes; none where nobody waits for it any more. `is_ok`
    /// where it is a result.
    pub(super) fn answered(&mut self, id: &RequestId, is_ok: bool) -> Option<Role> {
        let role = self.calls.remove(id)?.role;
        if let Role::Member { batch } = role
            && let Some(batch) = self.batches.get_mut(&batch)
        {
            batch.left -= 1;
        }
        Some(match role {
            Role::Line { line, standing } => Role::Line {
                line,
                standing: standing && is_ok,
            },
            Role::Member { .. } | Role::Replayed => role,
        })
    }

    /// What an acknowledgement of this subscription is; none where the client had one.
    pub(super) fn acknowledge(&mut self, id: &RequestId) -> Option<Output> {
        match self.calls.get_mut(id) {
            Some(call) if call.acknowledged => None,
            Some(call) => {
                call.acknowledged = true;
                Some(match call.role {
                    Role::Line { line, .. } => Output::Acknowledgement { line },
                    Role::Member { .. } | Role::Replayed => Output::Message,
                })
            }
            None => Some(Output::Message),
        }
    }

    /// Whether nobody waits for an answer.
    pub(super) fn is_idle(&self) -> bool {
        self.calls.is_empty()
    }

    /// Every request that is under way.
    pub(super) fn ids(&self) -> Vec<RequestId> {
        self.calls.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: i64) -> RequestId {
        RequestId::Number(number)
    }

    #[test]
    fn a_request_is_answered_once_and_its_id_can_be_used_again() {
        let mut table = Table::default();
        let role = Role::Line {
            line: 4,
            standing: true,
        };
        assert_eq!(table.admit(&id(1), role, false), Ok(()));
        assert_eq!(table.admit(&id(1), role, false), Err(Refusal::Duplicate));
        let failed = Role::Line {
            line: 4,
            standing: false,
        };
        assert_eq!(table.answered(&id(1), false), Some(failed));
        assert_eq!(table.answered(&id(1), true), None);
        assert_eq!(table.admit(&id(1), role, false), Ok(()));
        assert_eq!(table.answered(&id(1), true), Some(role));
        assert!(table.is_idle());
    }

    #[test]
    fn a_batch_is_answered_when_all_its_members_are() {
        let mut table = Table::default();
        let role = Role::Member { batch: 9 };
        table.admit(&id(1), role, false).unwrap();
        table.admit(&id(2), role, false).unwrap();
        table.note(9, Value::from("malformed"));
        assert_eq!(table.finished(9), None);
        for number in [2, 1] {
            assert_eq!(table.finished(9), None);
            assert_eq!(table.answered(&id(number), true), Some(role));
            table.note(9, Value::from(number));
        }
        let all = serde_json::json!(["malformed", 2, 1]);
        assert_eq!(table.finished(9), Some(all));
        assert_eq!(table.finished(10), Some(Value::Null));
    }

    #[test]
    fn a_subscription_is_acknowledged_once() {
        let mut table = Table::default();
        let role = |line| Role::Line {
            line,
            standing: false,
        };
        table.admit(&id(1), role(1), false).unwrap();
        table.admit(&id(2), role(2), true).unwrap();
        let first = Output::Acknowledgement { line: 1 };
        assert_eq!(table.acknowledge(&id(1)), Some(first));
        assert_eq!(table.acknowledge(&id(1)), None);
        assert_eq!(table.acknowledge(&id(2)), None);
    }

    #[test]
    fn there_is_a_limit() {
        let mut table = Table::default();
        let limit = i64::try_from(REQUESTS).unwrap();
        for number in 0..limit {
            table.admit(&id(number), Role::Replayed, false).unwrap();
        }
        let refused = table.admit(&id(limit), Role::Replayed, false);
        assert_eq!(refused, Err(Refusal::TooMany));
    }
}
