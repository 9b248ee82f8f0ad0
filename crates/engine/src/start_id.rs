//! Starts under an id that the client chose, which makes them idempotent: the same start, sent
//! again after a connection broke, answers the execution that the first one began.

use std::time::Duration;

use ostler_model::{ExecutionId, Timestamp};

use crate::admission::arguments::ArgumentError;

/// How far the time in an id may be from this machine's clock, in seconds: a day. Ids sort by
/// their time, and lists follow that order.
const CLOCK_SKEW_S: u64 = 24 * 60 * 60;

/// What has an id already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdHolder {
    None,
    /// An execution that the caller sees and whose principal is the caller's.
    Own,
    /// Another execution, by its whole id or by its short form.
    Other,
}

/// What a start under a chosen id does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartIdAction {
    /// It begins an execution with this id.
    Start,
    /// It answers the execution that has it.
    ReturnExisting,
}

/// Decides about a start under `id`.
///
/// # Errors
/// When no execution can get this id. An id of another principal's execution is refused with the
/// same message as an id whose short form is taken.
pub(crate) fn decide(
    id: ExecutionId,
    holder: IdHolder,
    now: Timestamp,
) -> Result<StartIdAction, ArgumentError> {
    match holder {
        IdHolder::Own => Ok(StartIdAction::ReturnExisting),
        IdHolder::Other => Err(id_in_use_error()),
        IdHolder::None => match id.minted_at() {
            Some(at) if id.is_version_7() && is_near(at, now) => Ok(StartIdAction::Start),
            Some(_) | None => Err(invalid_id(
                "a UUID of version 7 is allowed, whose time is at most a day from the daemon's \
                 clock",
            )),
        },
    }
}

/// The refusal of an id that something else has.
pub(crate) fn id_in_use_error() -> ArgumentError {
    invalid_id("it cannot be used; choose another one")
}

fn is_near(at: Timestamp, now: Timestamp) -> bool {
    at.duration_since(now).unsigned_abs() <= Duration::from_secs(CLOCK_SKEW_S)
}

fn invalid_id(problem: &'static str) -> ArgumentError {
    ArgumentError::Invalid {
        what: "id".to_owned(),
        problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_begins_one_execution_and_then_answers_it() {
        let id = ExecutionId::mint();
        let now = Timestamp::now();
        assert_eq!(decide(id, IdHolder::None, now), Ok(StartIdAction::Start));
        assert_eq!(
            decide(id, IdHolder::Own, now),
            Ok(StartIdAction::ReturnExisting)
        );
        assert!(decide(id, IdHolder::Other, now).is_err());
    }

    #[test]
    fn only_ids_of_about_now_begin_something() {
        let id = ExecutionId::mint();
        let now = Timestamp::now();
        let day = Duration::from_secs(CLOCK_SKEW_S);
        for far in [now + day * 2, now - day * 2] {
            assert!(decide(id, IdHolder::None, far).is_err());
            // The existing execution under this id is returned.
            assert_eq!(
                decide(id, IdHolder::Own, far),
                Ok(StartIdAction::ReturnExisting)
            );
        }
        assert!(decide(id, IdHolder::None, now + day / 2).is_ok());
        for text in [
            "00000000-0000-0000-0000-000000000000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "919108f7-52d1-4320-9bac-f847db4148a8",
            "c232ab00-9414-11ec-b3c8-9f6bdeced846",
            "1ec9414c-232a-6b00-b3c8-9f6bdeced846",
        ] {
            let id: ExecutionId = text.parse().expect("a UUID");
            let refused = decide(id, IdHolder::None, now).expect_err(text);
            assert!(refused.to_string().contains("version 7"), "{refused}");
        }
    }
}
