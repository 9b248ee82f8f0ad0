//! The file of open interactions, by which the next engine ends those of one that was killed.

use std::collections::BTreeMap;

use ostler_journal::LedgerEntry;
use ostler_model::{
    ByteString, Event, ExecutionId, InteractionState, Owner, QuestionKind, QuestionSource,
    Timestamp,
};
use serde::{Deserialize, Serialize};

use super::question::Question;
use super::state::Interaction;
use crate::interaction_id::InteractionId;
use crate::ledger_checkpoint::LedgerFold;

/// The file within the state directory.
pub(super) const FILE: &str = "interactions.json";

/// The interactions of an engine, as a later one takes them over.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct StoredInteractions {
    /// The number of the last one.
    pub(super) last_id: u64,
    /// The open ones.
    open: Vec<OpenInteraction>,
}

/// An open interaction, as far as a later engine reports it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct OpenInteraction {
    id: u64,
    owner: Owner,
    kind: QuestionKind,
    source: QuestionSource,
    message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    options: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    secret: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    execution: Option<ExecutionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    directory: Option<ByteString>,
    created_at: Timestamp,
    expires_at: Timestamp,
}

impl From<&Interaction> for OpenInteraction {
    fn from(interaction: &Interaction) -> Self {
        let question = &interaction.question;
        Self {
            id: interaction.id.0,
            owner: interaction.owner.clone(),
            kind: question.kind,
            source: question.source,
            message: question.message.clone(),
            options: question.options.clone(),
            default: question.default.clone(),
            secret: question.secret,
            execution: question.execution,
            directory: question.directory.as_deref().map(ByteString::from),
            created_at: interaction.created_at,
            expires_at: interaction.expires_at,
        }
    }
}

impl From<OpenInteraction> for Interaction {
    fn from(open: OpenInteraction) -> Self {
        Self {
            id: InteractionId(open.id),
            owner: open.owner,
            question: Question {
                options: open.options,
                default: open.default,
                execution: open.execution,
                source: open.source,
                secret: open.secret,
                directory: open.directory.map(|it| it.as_path().to_owned()),
                ..Question::new(open.kind, open.message)
            },
            created_at: open.created_at,
            expires_at: open.expires_at,
            state: InteractionState::Open,
        }
    }
}

impl StoredInteractions {
    pub(super) fn new<'a>(last_id: u64, open: impl Iterator<Item = &'a Interaction>) -> Self {
        Self {
            last_id,
            open: open.map(OpenInteraction::from).collect(),
        }
    }

    /// The open ones, in the order of their ids.
    pub(super) fn into_open(self) -> impl Iterator<Item = Interaction> {
        let by_id: BTreeMap<u64, OpenInteraction> =
            self.open.into_iter().map(|it| (it.id, it)).collect();
        by_id.into_values().map(Interaction::from)
    }
}

impl LedgerFold for StoredInteractions {
    fn apply(&mut self, entry: LedgerEntry) {
        let Event::Interaction { interaction, state } = entry.event else {
            return;
        };
        let Some(InteractionId(id)) = InteractionId::parse(&interaction) else {
            return;
        };
        self.last_id = self.last_id.max(id);
        if state != InteractionState::Open {
            self.open.retain(|it| it.id != id);
            return;
        }
        if self.open.iter().any(|it| it.id == id) {
            return;
        }
        let text = |key: &str| entry.detail.get(key).and_then(|it| it.as_str());
        let kind = entry.detail.get("kind").cloned();
        let kind = kind.and_then(|it| serde_json::from_value(it).ok());
        self.open.push(OpenInteraction {
            id,
            kind: kind.unwrap_or(QuestionKind::InputRequest),
            // Not in the ledger: one without an execution is a client's or the policy's.
            source: match entry.execution {
                None if entry.detail.contains_key("rule") => QuestionSource::Policy,
                None | Some(_) => QuestionSource::Api,
            },
            message: text("message").unwrap_or_default().to_owned(),
            options: Vec::new(),
            default: None,
            secret: entry
                .detail
                .get("secret")
                .and_then(serde_json::Value::as_bool)
                == Some(true),
            execution: entry.execution,
            directory: None,
            created_at: entry.at,
            expires_at: entry.at,
            owner: entry.by,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use ostler_journal::{Ledger, LedgerReader};
    use ostler_model::{CancelReason, Principal, RequestChannel};

    use super::*;
    use crate::ledger_checkpoint::LedgerCheckpoint;

    /// A file of version 1, with everything that it can hold.
    const VERSION_1: &str = r#"{"version":1,"last_id":7,"ledger_end":1,"open":[{"id":3,
        "owner":{"principal":"uid:7","project":"demo","session":"mine"},"kind":"choice_selection",
        "source":"api","message":"Which?","options":["a","b"],"default":"a",
        "execution":"0198c0de-0000-7000-8000-000000000000","directory":"/srv",
        "created_at":"2026-01-01T00:00:00Z","expires_at":"2026-01-01T00:05:00Z"},
        {"id":7,"owner":{"principal":"uid:7"},"kind":"input_request","source":"command",
        "message":"Password:","secret":true,
        "created_at":"2026-01-01T00:00:00Z","expires_at":"2026-01-01T00:05:00Z"}]}"#;

    fn entry(id: u64, state: InteractionState) -> LedgerEntry {
        LedgerEntry {
            at: Timestamp::UNIX_EPOCH,
            execution: None,
            by: Owner {
                principal: Principal::unix(7),
                project: None,
                session: None,
                task: None,
                channel: RequestChannel::Local,
            },
            event: Event::Interaction {
                interaction: InteractionId(id).to_string(),
                state,
            },
            detail: [("message".to_owned(), "Well?".into())].into(),
        }
    }

    /// The number of the last one, and the open ones.
    fn read(dir: &Path, ledger: &LedgerReader, ledger_end: u64) -> (u64, Vec<Interaction>) {
        let stored: StoredInteractions = LedgerCheckpoint::new(dir, FILE).read(ledger, ledger_end);
        (stored.last_id, stored.into_open().collect())
    }

    fn ids(open: &[Interaction]) -> Vec<u64> {
        open.iter().map(|it| it.id.0).collect()
    }

    #[test]
    fn what_the_ledger_has_since_the_file_is_applied_to_it() {
        let scratch = tempfile::tempdir().expect("a directory");
        let dir = scratch.path();
        let mut ledger = Ledger::open(&dir.join("ledger")).expect("opened");
        assert_eq!(read(dir, &ledger.reader(), ledger.end()), (0, Vec::new()));
        let cancelled = || InteractionState::Cancelled {
            reason: CancelReason::EngineKilled,
        };
        let mut append = |id, state| ledger.append(&entry(id, state)).expect("appended");
        append(5, InteractionState::Open);
        append(8, InteractionState::Open);
        append(3, cancelled());
        append(9, InteractionState::Open);
        append(9, cancelled());
        fs::write(dir.join(FILE), VERSION_1).expect("written");
        let (last_id, open) = read(dir, &ledger.reader(), ledger.end());
        assert_eq!((last_id, ids(&open)), (9, vec![7, 8]), "5 is before it");
        assert_eq!(open[1].question.message, "Well?");
        let store = LedgerCheckpoint::new(dir, FILE);
        store.write(ledger.end(), StoredInteractions::new(last_id, open.iter()));
        assert_eq!(read(dir, &ledger.reader(), ledger.end()), (last_id, open));
        fs::remove_file(dir.join(FILE)).expect("removed");
        let (last_id, open) = read(dir, &ledger.reader(), ledger.end());
        assert_eq!((last_id, ids(&open)), (9, vec![5, 8]));
    }

    #[test]
    fn a_file_of_version_1_is_read_and_written_as_it_was() {
        let scratch = tempfile::tempdir().expect("a directory");
        let (dir, path) = (scratch.path(), scratch.path().join(FILE));
        let reader = LedgerReader::open(&dir.join("ledger"));
        fs::write(&path, VERSION_1).expect("written");
        let (last_id, open) = read(dir, &reader, 1);
        let store = LedgerCheckpoint::new(dir, FILE);
        store.write(1, StoredInteractions::new(last_id, open.iter()));
        let as_value = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).ok();
        let written = fs::read(&path).expect("there");
        assert_eq!(as_value(&written), as_value(VERSION_1.as_bytes()));
        for other in [r#"{"version":2,"open":"elsewhere"}"#, "{"] {
            fs::write(&path, other).expect("written");
            assert_eq!(read(dir, &reader, 0), (0, Vec::new()));
        }
    }
}
