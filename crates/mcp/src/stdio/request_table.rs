//! The requests of one connection that are under way. Pure.

use std::collections::HashMap;

use crate::connection_log::OutputKind;
use crate::json_rpc::IN_FLIGHT;
use rmcp::model::{ProtocolVersion, RequestId};
use serde_json::Value;

/// The most requests under way on one connection.
const MAX_REQUESTS: usize = 4_096;

/// The destination of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerRoute {
    /// Its own line; `standing` where the request then stays in effect for the rest of the
    /// connection.
    Line { line: u64, standing: bool },
    /// Part of the answer to a batch.
    Member { batch: u64 },
    /// Dropped: the client received it from an earlier daemon.
    Replayed,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AdmitError {
    /// One with its id is under way.
    Duplicate,
    /// Too many requests are under way.
    TooMany,
}

impl AdmitError {
    /// The error message.
    pub(super) fn message(self) -> String {
        match self {
            Self::Duplicate => IN_FLIGHT.to_owned(),
            Self::TooMany => {
                format!("more than {MAX_REQUESTS} requests are in flight; wait for some answers")
            }
        }
    }
}

/// The requests under way.
#[derive(Debug, Default)]
pub(super) struct RequestTable {
    requests: HashMap<RequestId, OpenRequest>,
    batches: HashMap<u64, OpenBatch>,
    /// The protocol revision that the handshake negotiated.
    pub(super) revision: Option<ProtocolVersion>,
}

#[derive(Debug)]
struct OpenRequest {
    role: AnswerRoute,
    /// Whether the client received the acknowledgement of this subscription.
    acknowledged: bool,
}

#[derive(Debug, Default)]
struct OpenBatch {
    remaining: usize,
    answers: Vec<Value>,
}

impl RequestTable {
    /// Registers a request.
    pub(super) fn admit(
        &mut self,
        id: &RequestId,
        role: AnswerRoute,
        acknowledged: bool,
    ) -> Result<(), AdmitError> {
        if self.requests.contains_key(id) {
            return Err(AdmitError::Duplicate);
        }
        if self.requests.len() >= MAX_REQUESTS {
            return Err(AdmitError::TooMany);
        }
        let call = OpenRequest { role, acknowledged };
        self.requests.insert(id.clone(), call);
        if let AnswerRoute::Member { batch } = role {
            self.batches.entry(batch).or_default().remaining += 1;
        }
        Ok(())
    }

    /// Adds an answer to a member of a batch that is not a request under way.
    pub(super) fn add_answer(&mut self, batch: u64, answer: Value) {
        self.batches.entry(batch).or_default().answers.push(answer);
    }

    /// The answer to a batch, once its last member is answered; [`Value::Null`] where none of them
    /// takes an answer.
    pub(super) fn take_finished(&mut self, batch: u64) -> Option<Value> {
        if self.batches.get(&batch).is_some_and(|it| it.remaining > 0) {
            return None;
        }
        let answers = self.batches.remove(&batch).unwrap_or_default().answers;
        Some(if answers.is_empty() {
            Value::Null
        } else {
            Value::Array(answers)
        })
    }

    /// The destination of the answer to this request; none where it is no longer expected. `is_ok`
    /// for a result.
    pub(super) fn remove_answered(&mut self, id: &RequestId, is_ok: bool) -> Option<AnswerRoute> {
        let role = self.requests.remove(id)?.role;
        if let AnswerRoute::Member { batch } = role
            && let Some(batch) = self.batches.get_mut(&batch)
        {
            batch.remaining -= 1;
        }
        Some(match role {
            AnswerRoute::Line { line, standing } => AnswerRoute::Line {
                line,
                standing: standing && is_ok,
            },
            AnswerRoute::Member { .. } | AnswerRoute::Replayed => role,
        })
    }

    /// The acknowledgement of this subscription; none where the client has received one.
    pub(super) fn acknowledge(&mut self, id: &RequestId) -> Option<OutputKind> {
        match self.requests.get_mut(id) {
            Some(call) if call.acknowledged => None,
            Some(call) => {
                call.acknowledged = true;
                Some(match call.role {
                    AnswerRoute::Line { line, .. } => OutputKind::Acknowledgement { line },
                    AnswerRoute::Member { .. } | AnswerRoute::Replayed => OutputKind::Message,
                })
            }
            None => Some(OutputKind::Message),
        }
    }

    /// Whether no answer is pending.
    pub(super) fn is_idle(&self) -> bool {
        self.requests.is_empty()
    }

    /// Every request that is under way.
    pub(super) fn ids(&self) -> Vec<RequestId> {
        self.requests.keys().cloned().collect()
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
        let mut table = RequestTable::default();
        let role = AnswerRoute::Line {
            line: 4,
            standing: true,
        };
        assert_eq!(table.admit(&id(1), role, false), Ok(()));
        assert_eq!(table.admit(&id(1), role, false), Err(AdmitError::Duplicate));
        let failed = AnswerRoute::Line {
            line: 4,
            standing: false,
        };
        assert_eq!(table.remove_answered(&id(1), false), Some(failed));
        assert_eq!(table.remove_answered(&id(1), true), None);
        assert_eq!(table.admit(&id(1), role, false), Ok(()));
        assert_eq!(table.remove_answered(&id(1), true), Some(role));
        assert!(table.is_idle());
    }

    #[test]
    fn a_batch_is_answered_when_all_its_members_are() {
        let mut table = RequestTable::default();
        let role = AnswerRoute::Member { batch: 9 };
        table.admit(&id(1), role, false).unwrap();
        table.admit(&id(2), role, false).unwrap();
        table.add_answer(9, Value::from("malformed"));
        assert_eq!(table.take_finished(9), None);
        for number in [2, 1] {
            assert_eq!(table.take_finished(9), None);
            assert_eq!(table.remove_answered(&id(number), true), Some(role));
            table.add_answer(9, Value::from(number));
        }
        let all = serde_json::json!(["malformed", 2, 1]);
        assert_eq!(table.take_finished(9), Some(all));
        assert_eq!(table.take_finished(10), Some(Value::Null));
    }

    #[test]
    fn a_subscription_is_acknowledged_once() {
        let mut table = RequestTable::default();
        let role = |line| AnswerRoute::Line {
            line,
            standing: false,
        };
        table.admit(&id(1), role(1), false).unwrap();
        table.admit(&id(2), role(2), true).unwrap();
        let first = OutputKind::Acknowledgement { line: 1 };
        assert_eq!(table.acknowledge(&id(1)), Some(first));
        assert_eq!(table.acknowledge(&id(1)), None);
        assert_eq!(table.acknowledge(&id(2)), None);
    }

    #[test]
    fn there_is_a_limit() {
        let mut table = RequestTable::default();
        let limit = i64::try_from(MAX_REQUESTS).unwrap();
        for number in 0..limit {
            table
                .admit(&id(number), AnswerRoute::Replayed, false)
                .unwrap();
        }
        let refused = table.admit(&id(limit), AnswerRoute::Replayed, false);
        assert_eq!(refused, Err(AdmitError::TooMany));
    }
}
