//! The state of a call that waits for a person's answer, carried by the client (MCP revision
//! 2026-07-28): sealed with a key of this daemon, bound to the caller, the tool and its arguments,
//! and valid for one use within five minutes.

use std::collections::HashMap;
use std::time::Duration;

use ostler_model::{Caller, ExecutionId};
use parking_lot::Mutex;
use rmcp::model::{JsonObject, RequestStateCodec, RequestStateError, SealOptions};
use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use thiserror::Error;
use tokio::time::Instant;

/// How long a call can be repeated with an answer, in milliseconds.
const STATE_TTL_MS: u64 = 300_000;
/// The most states outstanding; issuing more invalidates the oldest.
const MAX_STATES: usize = 1_024;
/// Bytes of the key.
const KEY_BYTES: usize = 32;

/// What a repeated call resumes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ResumeState {
    /// Serial number, for single use.
    #[serde(rename = "n")]
    number: u64,
    /// Id of the interaction.
    #[serde(rename = "i")]
    pub(super) interaction: String,
    /// The execution that waits for the answer.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub(super) execution: Option<ExecutionId>,
}

/// Why a state is rejected.
#[derive(Debug, Error)]
pub(super) enum ResumeStateError {
    /// Not issued by this daemon, altered, or of another call.
    #[error("it does not belong to this call, or its time is over")]
    Broken(#[source] RequestStateError),
    /// The state was used before.
    #[error("it was used before")]
    Used,
}

/// Seals and opens states.
#[derive(Debug)]
pub(super) struct StateSealer {
    codec: RequestStateCodec,
    issued: Mutex<IssuedStates>,
}

#[derive(Debug, Default)]
struct IssuedStates {
    last_number: u64,
    expires_at: HashMap<u64, Instant>,
}

impl StateSealer {
    /// A sealer with a random key.
    pub(super) fn new() -> Self {
        let mut key = vec![0_u8; KEY_BYTES];
        getrandom(key.as_mut_slice(), GetRandomFlags::empty())
            .expect("the kernel's generator is seeded once the system runs");
        let codec = RequestStateCodec::try_new(key).expect("the key is long enough");
        Self {
            codec,
            issued: Mutex::default(),
        }
    }

    /// Seals the state of this caller's call that waits for the answer to `interaction`.
    pub(super) fn seal(
        &self,
        context_digest: &[u8],
        interaction: String,
        execution: Option<ExecutionId>,
    ) -> Result<String, RequestStateError> {
        let ttl = Duration::from_millis(STATE_TTL_MS);
        let resume_state = ResumeState {
            number: self.issue_number(Instant::now() + ttl),
            interaction,
            execution,
        };
        let options = SealOptions::new().associated_data(context_digest).ttl(ttl);
        self.codec.seal_json_with(&resume_state, &options)
    }

    /// Opens a sealed state; succeeds once.
    pub(super) fn open(
        &self,
        context_digest: &[u8],
        state: &str,
    ) -> Result<ResumeState, ResumeStateError> {
        let opened = self.codec.open_json_with(state, context_digest);
        let resume_state: ResumeState = opened.map_err(ResumeStateError::Broken)?;
        let mut issued = self.issued.lock();
        match issued.expires_at.remove(&resume_state.number) {
            Some(_) => Ok(resume_state),
            None => Err(ResumeStateError::Used),
        }
    }

    fn issue_number(&self, expires_at: Instant) -> u64 {
        let mut issued = self.issued.lock();
        if issued.expires_at.len() >= MAX_STATES {
            let now = Instant::now();
            issued.expires_at.retain(|_, until| *until > now);
        }
        if issued.expires_at.len() >= MAX_STATES
            && let Some(oldest) = issued.expires_at.keys().min().copied()
        {
            issued.expires_at.remove(&oldest);
        }
        issued.last_number += 1;
        let number = issued.last_number;
        issued.expires_at.insert(number, expires_at);
        number
    }
}

/// Digest of the caller, the tool and the arguments, to which a state is bound.
pub(super) fn context_digest(caller: &Caller, tool: &str, arguments: &JsonObject) -> Vec<u8> {
    let mut digest = Sha256::new();
    let mut part = |bytes: &[u8]| {
        // Each part is prefixed with its length, so that different lists of parts never collide.
        digest.update((bytes.len() as u64).to_be_bytes());
        digest.update(bytes);
    };
    part(caller.owner.principal.0.as_bytes());
    let session = caller.owner.session.as_ref();
    part(session.map_or("", |session| &session.0).as_bytes());
    part(tool.as_bytes());
    let mut arguments = Value::Object(arguments.clone());
    arguments.sort_all_objects();
    part(arguments.to_string().as_bytes());
    digest.finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use ostler_model::owner::{Owner, Principal};
    use ostler_model::{Scope, SessionName};
    use serde_json::json;

    use super::*;

    fn caller(principal: &str, session: &str) -> Caller {
        Caller {
            owner: Owner {
                principal: Principal(principal.to_owned()),
                project: None,
                session: Some(SessionName(session.to_owned())),
                task: None,
                channel: ostler_model::RequestChannel::Local,
            },
            scope: Scope::Session,
            projects: ostler_model::ProjectView::default(),
        }
    }

    fn arguments(value: Value) -> JsonObject {
        ostler_interface::error::object(value)
    }

    #[test]
    fn what_a_state_is_bound_to_has_no_look_alikes() {
        let given = arguments(json!({"a": {"x": 1, "y": 2}, "b": [1]}));
        let reordered = arguments(json!({"b": [1], "a": {"y": 2, "x": 1}}));
        let mine = context_digest(&caller("a", "b"), "exec", &given);
        assert_eq!(mine, context_digest(&caller("a", "b"), "exec", &reordered));
        for other in [
            context_digest(&caller("ab", ""), "exec", &given),
            context_digest(&caller("", "ab"), "exec", &given),
            context_digest(&caller("a", "be"), "xec", &given),
            context_digest(&caller("a", "b"), "exec", &arguments(json!({"b": [1]}))),
        ] {
            assert_ne!(mine, other);
        }
    }

    #[test]
    fn a_state_is_good_once_and_only_for_its_call() {
        let seals = StateSealer::new();
        let state = seals.seal(b"mine", "i7".to_owned(), None).unwrap();
        assert!(matches!(
            seals.open(b"other", &state),
            Err(ResumeStateError::Broken(_))
        ));
        assert!(matches!(
            StateSealer::new().open(b"mine", &state),
            Err(ResumeStateError::Broken(_))
        ));
        assert_eq!(seals.open(b"mine", &state).unwrap().interaction, "i7");
        assert!(matches!(
            seals.open(b"mine", &state),
            Err(ResumeStateError::Used)
        ));
    }

    #[test]
    fn of_too_many_states_the_oldest_are_forgotten() {
        let seals = StateSealer::new();
        let seal = || seals.seal(b"", "i1".to_owned(), None).unwrap();
        let states: Vec<String> = (0..=MAX_STATES).map(|_| seal()).collect();
        assert!(matches!(
            seals.open(b"", &states[0]),
            Err(ResumeStateError::Used)
        ));
        assert!(seals.open(b"", &states[1]).is_ok());
        assert!(seals.open(b"", &states[MAX_STATES]).is_ok());
    }
}
