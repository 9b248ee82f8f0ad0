//! The file of open interactions, by which the next engine ends those of one that was killed.
//!
//! It names the position of the ledger that it was written at. What the ledger has after that is
//! applied to it, so that a kill between the two leaves nothing open and ends nothing twice.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ostler_journal::atomic_file::{AtomicFile, PRIVATE_MODE};
use ostler_journal::{LedgerCursor, LedgerReader, LedgerRecord};
use ostler_model::{
    ByteString, Event, ExecutionId, InteractionState, Owner, QuestionKind, QuestionSource,
    Timestamp,
};
use serde::{Deserialize, Serialize};

use super::question::Question;
use super::state::Interaction;
use crate::interaction_id::InteractionId;

/// The file within the state directory.
const FILE: &str = "interactions.json";
const VERSION: u8 = 1;
/// The ledger entries that are read at once.
const LEDGER_PAGE: usize = 1_000;
/// Without a file, the last entries of the ledger that are read: one of an earlier version had none.
const LEDGER_TAIL: u64 = 10_000;

/// Writes the file.
#[derive(Debug)]
pub(super) struct InteractionStore {
    path: PathBuf,
}

/// What a killed engine left.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LeftInteractions {
    /// The number of the last interaction.
    pub(super) last_id: u64,
    /// Those that were open.
    pub(super) open: Vec<Interaction>,
}

#[derive(Debug, Serialize, Deserialize)]
struct InteractionsFile {
    version: u8,
    last_id: u64,
    /// How many entries the ledger had.
    ledger_end: u64,
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

impl InteractionStore {
    pub(super) fn new(state_dir: &Path) -> Self {
        Self {
            path: state_dir.join(FILE),
        }
    }

    /// Replaces the file. Not synced: a power failure may leave an earlier one, whose ledger
    /// position then is earlier, too.
    pub(super) fn write<'a>(
        &self,
        last_id: u64,
        ledger_end: u64,
        open: impl Iterator<Item = &'a Interaction>,
    ) {
        let file = InteractionsFile {
            version: VERSION,
            last_id,
            ledger_end,
            open: open.map(OpenInteraction::from).collect(),
        };
        if let Err(error) = self.replace(&file) {
            // The ledger has them, too: the next engine reads it from the last file on.
            tracing::warn!(path = %self.path.display(), %error, "cannot be written");
        }
    }

    fn replace(&self, file: &InteractionsFile) -> std::io::Result<()> {
        let bytes = serde_json::to_vec(file)?;
        let mut new = AtomicFile::create(&self.path, PRIVATE_MODE)?;
        new.write_all(&bytes)?;
        new.commit()
    }

    /// What the last engine left: what its file has, and what the ledger has since.
    pub(super) fn read(&self, ledger: &LedgerReader, ledger_end: u64) -> LeftInteractions {
        let file = self.read_file().unwrap_or_else(|| InteractionsFile {
            version: VERSION,
            last_id: 0,
            ledger_end: ledger_end.saturating_sub(LEDGER_TAIL),
            open: Vec::new(),
        });
        let by_id = file.open.into_iter().map(|it| (it.id, it));
        let mut left = LedgerFold {
            last_id: file.last_id,
            open: by_id.collect(),
        };
        let mut next = LedgerCursor(file.ledger_end.min(ledger_end));
        loop {
            match ledger.read(next, LEDGER_PAGE) {
                Ok((records, _)) if records.is_empty() => break,
                Ok((records, after)) => {
                    records.into_iter().for_each(|it| left.apply(it));
                    next = after;
                }
                Err(error) => {
                    tracing::warn!(%error, "the ledger cannot be read for open interactions");
                    break;
                }
            }
        }
        LeftInteractions {
            last_id: left.last_id,
            open: left.open.into_values().map(Interaction::from).collect(),
        }
    }

    fn read_file(&self) -> Option<InteractionsFile> {
        let bytes = fs::read(&self.path).ok()?;
        match serde_json::from_slice::<InteractionsFile>(&bytes) {
            Ok(file) if file.version <= VERSION => Some(file),
            Ok(file) => {
                tracing::warn!(
                    version = file.version,
                    "a newer file of interactions: ignored"
                );
                None
            }
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "cannot be read: ignored");
                None
            }
        }
    }
}

/// The interactions after some entries of the ledger.
#[derive(Debug, Default)]
struct LedgerFold {
    last_id: u64,
    open: BTreeMap<u64, OpenInteraction>,
}

impl LedgerFold {
    fn apply(&mut self, record: LedgerRecord) {
        let entry = record.entry;
        let Event::Interaction { interaction, state } = entry.event else {
            return;
        };
        let Some(InteractionId(id)) = InteractionId::parse(&interaction) else {
            return;
        };
        self.last_id = self.last_id.max(id);
        if state != InteractionState::Open {
            self.open.remove(&id);
            return;
        }
        let text = |key: &str| entry.detail.get(key).and_then(|it| it.as_str());
        let kind = entry.detail.get("kind").cloned();
        let kind = kind.and_then(|it| serde_json::from_value(it).ok());
        let found = OpenInteraction {
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
        };
        self.open.entry(id).or_insert(found);
    }
}

#[cfg(test)]
mod tests {
    use ostler_journal::{Ledger, LedgerEntry};
    use ostler_model::{CancelReason, Principal, RequestChannel};

    use super::*;

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

    fn ids(left: &LeftInteractions) -> Vec<u64> {
        left.open.iter().map(|it| it.id.0).collect()
    }

    #[test]
    fn what_the_ledger_has_since_the_file_is_applied_to_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut ledger = Ledger::open(&dir.path().join("ledger")).expect("opened");
        let store = InteractionStore::new(dir.path());
        let none = store.read(&ledger.reader(), ledger.end());
        assert_eq!(none, LeftInteractions::default());
        let cancelled = || InteractionState::Cancelled {
            reason: CancelReason::EngineKilled,
        };
        let mut append = |id, state| ledger.append(&entry(id, state)).expect("appended");
        append(5, InteractionState::Open);
        append(8, InteractionState::Open);
        append(3, cancelled());
        append(9, InteractionState::Open);
        append(9, cancelled());
        fs::write(dir.path().join(FILE), VERSION_1).expect("written");
        let left = store.read(&ledger.reader(), ledger.end());
        assert_eq!(
            (left.last_id, ids(&left)),
            (9, vec![7, 8]),
            "5 is before it"
        );
        assert_eq!(left.open[1].question.message, "Well?");
        store.write(left.last_id, ledger.end(), left.open.iter());
        assert_eq!(store.read(&ledger.reader(), ledger.end()), left);
        fs::remove_file(dir.path().join(FILE)).expect("removed");
        let from_ledger = store.read(&ledger.reader(), ledger.end());
        assert_eq!((from_ledger.last_id, ids(&from_ledger)), (9, vec![5, 8]));
    }

    #[test]
    fn a_file_of_version_1_is_read_and_written_as_it_was() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join(FILE);
        fs::write(&path, VERSION_1).expect("written");
        let store = InteractionStore::new(dir.path());
        let left = store.read(&LedgerReader::open(&dir.path().join("ledger")), 1);
        store.write(left.last_id, 1, left.open.iter());
        let as_value = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).ok();
        let written = fs::read(&path).expect("there");
        assert_eq!(as_value(&written), as_value(VERSION_1.as_bytes()));
        fs::write(&path, r#"{"version":2,"open":"elsewhere"}"#).expect("written");
        let reader = LedgerReader::open(&dir.path().join("ledger"));
        assert_eq!(store.read(&reader, 0), LeftInteractions::default());
    }
}
