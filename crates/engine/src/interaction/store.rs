//! The file of interactions: the next engine ends those that were open, and knows how the last others
//! ended. Answers that clients still wait for and approvals survive the engine.

use std::collections::HashMap;

use ostler_journal::LedgerEntry;
use ostler_model::{
    ByteString, Event, ExecutionId, InteractionState, Owner, Principal, QuestionKind,
    QuestionSource, SessionName, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::question::Question;
use super::record::{EndedInteraction, InteractionRecord};
use super::state::{Interaction, InteractionOutcome};
use super::validate::parse_yes_no;
use crate::admission::approval::{Approval, CONSENT_S, CoveredStart};
use crate::interaction_id::InteractionId;
use crate::ledger_checkpoint::LedgerFold;

/// The file within the state directory.
pub(super) const FILE: &str = "interactions.json";

/// The most ended interactions in the file: approvals that hold at first, then answers, then others,
/// of each those that ended last.
const ENDED_MAX: usize = 256;
/// The most bytes of them, about.
const ENDED_BYTES: usize = 512 * 1024;
/// The most of one session, approvals that hold apart.
const ENDED_OF_SESSION_MAX: usize = 64;
/// The most bytes of one session, approvals that hold apart.
const ENDED_OF_SESSION_BYTES: usize = 64 * 1024;

/// The interactions of an engine, as a later one takes them over.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct StoredInteractions {
    /// The number of the last one.
    pub(super) last_id: u64,
    /// The open ones.
    open: Vec<StoredQuestion>,
    /// Some that have ended, the one that ended last first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ended: Vec<StoredEnd>,
}

/// An interaction, as far as a later engine reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredQuestion {
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

impl From<&Interaction> for StoredQuestion {
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

impl From<StoredQuestion> for Interaction {
    fn from(open: StoredQuestion) -> Self {
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

/// An interaction that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredEnd {
    question: StoredQuestion,
    state: InteractionState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    approval: Option<StoredApproval>,
}

/// What is kept longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EndPriority {
    /// A yes that a start may still use.
    Approval,
    Answer,
    Other,
}

/// What a yes approves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredApproval {
    rule: String,
    reason: String,
    command: String,
    cwd: ByteString,
    /// Whether it was consumed.
    consumed: bool,
    /// The start that it covers, as JSON: some names of files cannot be written so, and such an
    /// approval is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    covered: Option<serde_json::Value>,
}

impl StoredApproval {
    fn of(approval: &Approval, consumed: bool) -> Self {
        let covered = approval.covered.as_ref();
        Self {
            rule: approval.rule.clone(),
            reason: approval.reason.clone(),
            command: approval.command.clone(),
            cwd: approval.cwd.clone(),
            consumed,
            covered: covered.and_then(|it| serde_json::to_value(it).ok()),
        }
    }

    fn restore(self) -> Approval {
        let covered = self.covered;
        Approval {
            rule: self.rule,
            reason: self.reason,
            command: self.command,
            cwd: self.cwd,
            covered: covered.and_then(|it| serde_json::from_value::<CoveredStart>(it).ok()),
        }
    }
}

impl StoredEnd {
    /// None for one that is open, and for one about an execution: its answer was typed there.
    fn of(record: &InteractionRecord) -> Option<Self> {
        let outcome = record.outcome.as_ref()?;
        let question = &record.interaction.question;
        if question.execution.is_some() {
            return None;
        }
        let approval = question.approval.as_ref();
        Some(Self {
            question: StoredQuestion::from(&record.interaction),
            state: record.interaction.state.clone(),
            answer: answer_of(outcome),
            approval: approval.map(|it| StoredApproval::of(it, record.consumed)),
        })
    }

    fn priority(&self, now: Timestamp) -> EndPriority {
        let approval = self.approval.as_ref();
        let is_unused = approval.is_some_and(|it| !it.consumed && it.covered.is_some());
        let is_yes = self.answer.as_deref().and_then(parse_yes_no) == Some(true);
        let is_valid = |at: &Timestamp| now.as_second() - at.as_second() <= CONSENT_S;
        match &self.state {
            InteractionState::Answered { at, .. } if is_unused && is_yes && is_valid(at) => {
                EndPriority::Approval
            }
            InteractionState::Answered { .. } => EndPriority::Answer,
            InteractionState::Open
            | InteractionState::Cancelled { .. }
            | InteractionState::TimedOut { .. } => EndPriority::Other,
        }
    }

    /// Its length in bytes, about.
    fn len(&self) -> usize {
        let approval = self.approval.as_ref();
        let files = approval.and_then(|it| it.covered.as_ref());
        let files = files.map_or(0, |it| it.to_string().len());
        let options: usize = self.question.options.iter().map(String::len).sum();
        // The message of an approval has its command.
        2 * self.question.message.len() + options + files
    }

    fn restore(self) -> EndedInteraction {
        let consumed = self.approval.as_ref().is_some_and(|it| it.consumed);
        let mut interaction = Interaction::from(self.question);
        interaction.question.approval = self.approval.map(|it| Box::new(it.restore()));
        EndedInteraction {
            outcome: outcome_of(&self.state, self.answer),
            interaction: Interaction {
                state: self.state,
                ..interaction
            },
            consumed,
        }
    }
}

/// What is kept of a number of ends, in their order.
fn select(ends: Vec<StoredEnd>, now: Timestamp) -> Vec<StoredEnd> {
    let mut by_priority: Vec<(EndPriority, usize)> = (0..)
        .zip(&ends)
        .map(|(at, end)| (end.priority(now), at))
        .collect();
    by_priority.sort_unstable();
    let mut budget = EndBudget::default();
    let mut kept = vec![false; ends.len()];
    for (priority, at) in by_priority {
        kept[at] = budget.take(priority, &ends[at]);
    }
    let pairs = ends.into_iter().zip(kept);
    pairs
        .filter_map(|(end, kept)| kept.then_some(end))
        .collect()
}

/// The ends that the file has so far, counted against its limits.
#[derive(Default)]
struct EndBudget {
    count: usize,
    bytes: usize,
    sessions: HashMap<(Principal, Option<SessionName>), (usize, usize)>,
}

impl EndBudget {
    /// Whether there is room for one more.
    fn take(&mut self, priority: EndPriority, end: &StoredEnd) -> bool {
        let len = end.len();
        let owner = &end.question.owner;
        let key = (owner.principal.clone(), owner.session.clone());
        let of_session = self.sessions.entry(key).or_default();
        let (count, bytes) = (of_session.0 + 1, of_session.1 + len);
        let fits_session = count <= ENDED_OF_SESSION_MAX && bytes <= ENDED_OF_SESSION_BYTES;
        let is_approval = priority == EndPriority::Approval;
        let fits = self.count < ENDED_MAX && self.bytes + len <= ENDED_BYTES;
        if !fits || !(is_approval || fits_session) {
            return false;
        }
        if !is_approval {
            *of_session = (count, bytes);
        }
        self.count += 1;
        self.bytes += len;
        true
    }
}

fn answer_of(outcome: &InteractionOutcome) -> Option<String> {
    match outcome {
        InteractionOutcome::Answered(answer) | InteractionOutcome::Default(answer) => {
            Some(answer.clone())
        }
        InteractionOutcome::Cancelled(_) | InteractionOutcome::TimedOut => None,
    }
}

fn outcome_of(state: &InteractionState, answer: Option<String>) -> InteractionOutcome {
    match (state, answer) {
        (InteractionState::Cancelled { reason }, _) => {
            InteractionOutcome::Cancelled(reason.clone())
        }
        (InteractionState::TimedOut { took_default: true }, Some(answer)) => {
            InteractionOutcome::Default(answer)
        }
        (InteractionState::TimedOut { .. } | InteractionState::Open, _) => {
            InteractionOutcome::TimedOut
        }
        (InteractionState::Answered { .. }, answer) => {
            InteractionOutcome::Answered(answer.unwrap_or_default())
        }
    }
}

impl StoredInteractions {
    /// Of these, the one that changed last first.
    pub(super) fn new(last_id: u64, records: &[&InteractionRecord], now: Timestamp) -> Self {
        let open = records.iter().filter(|it| it.interaction.is_open());
        let open = open.map(|it| StoredQuestion::from(&it.interaction));
        let ends = records.iter().filter_map(|it| StoredEnd::of(it));
        Self {
            last_id,
            open: open.collect(),
            ended: select(ends.collect(), now),
        }
    }

    /// The open ones in the order of their ids, and those that have ended.
    pub(super) fn into_parts(mut self) -> (Vec<Interaction>, Vec<EndedInteraction>) {
        self.open.sort_unstable_by_key(|it| it.id);
        let open = self.open.into_iter().map(Interaction::from).collect();
        let ended = self.ended.into_iter().map(StoredEnd::restore).collect();
        (open, ended)
    }

    /// The end of an open one, of which the ledger has the answer.
    fn end(&mut self, id: u64, state: InteractionState, answer: Option<String>, at: Timestamp) {
        let Some(index) = self.open.iter().position(|it| it.id == id) else {
            return;
        };
        let question = self.open.remove(index);
        if question.execution.is_none() {
            let end = StoredEnd {
                question,
                state,
                answer,
                // What it covers is in the file alone: it is asked for again.
                approval: None,
            };
            self.ended.insert(0, end);
            self.ended = select(std::mem::take(&mut self.ended), at);
        }
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
        let text = |key: &str| entry.detail.get(key).and_then(|it| it.as_str());
        if state != InteractionState::Open {
            return self.end(id, state, text("answer").map(str::to_owned), entry.at);
        }
        if self.open.iter().any(|it| it.id == id) {
            return;
        }
        let kind = entry.detail.get("kind").cloned();
        let kind = kind.and_then(|it| serde_json::from_value(it).ok());
        self.open.push(StoredQuestion {
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
    use std::time::Duration;

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
        (stored.last_id, stored.into_parts().0)
    }

    /// As the engine that has these open writes the file.
    fn write(dir: &Path, ledger_end: u64, last_id: u64, open: &[Interaction]) {
        let records = open.iter().map(|it| record(it.clone(), None));
        let records: Vec<InteractionRecord> = records.collect();
        let records: Vec<&InteractionRecord> = records.iter().collect();
        let stored = StoredInteractions::new(last_id, &records, Timestamp::UNIX_EPOCH);
        LedgerCheckpoint::new(dir, FILE).write(ledger_end, stored);
    }

    fn record(interaction: Interaction, outcome: Option<InteractionOutcome>) -> InteractionRecord {
        InteractionRecord {
            interaction,
            deadline: tokio::time::Instant::now(),
            claim: None,
            outcome,
            consumed: false,
            consumer: None,
            changed: 1,
        }
    }

    fn ended(id: u64, outcome: InteractionOutcome) -> InteractionRecord {
        let at = Timestamp::UNIX_EPOCH;
        let state = match &outcome {
            InteractionOutcome::Answered(_) => {
                let by = Principal::unix(7);
                InteractionState::Answered { by, at }
            }
            InteractionOutcome::Default(_) => InteractionState::TimedOut { took_default: true },
            InteractionOutcome::TimedOut => InteractionState::TimedOut {
                took_default: false,
            },
            InteractionOutcome::Cancelled(reason) => InteractionState::Cancelled {
                reason: reason.clone(),
            },
        };
        let interaction = Interaction {
            id: InteractionId(id),
            owner: entry(id, InteractionState::Open).by,
            question: Question::new(QuestionKind::InputRequest, "Well?"),
            created_at: at,
            expires_at: at,
            state,
        };
        record(interaction, Some(outcome))
    }

    fn approval(command: ostler_model::Command) -> Approval {
        let request = crate::StartRequest::new(command, "/srv");
        let files = crate::admission::named_files::NamedFiles::default();
        let subject = crate::admission::command_policy::approval_subject(request, files);
        Approval {
            rule: "ask".to_owned(),
            reason: "to be asked".to_owned(),
            command: "true".to_owned(),
            covered: subject.covered(),
            cwd: subject.cwd,
        }
    }

    #[test]
    fn ends_are_taken_over_as_they_were() {
        let outcomes = [
            InteractionOutcome::Answered("blue".to_owned()),
            InteractionOutcome::Default("green".to_owned()),
            InteractionOutcome::TimedOut,
            InteractionOutcome::Cancelled(CancelReason::Shutdown),
        ];
        let records = (1..).zip(outcomes).map(|(id, outcome)| ended(id, outcome));
        let mut records: Vec<InteractionRecord> = records.collect();
        let command = ostler_model::Command::Argv {
            program: "true".into(),
            args: Vec::new(),
        };
        records[0].interaction.question.approval = Some(Box::new(approval(command)));
        records[0].consumed = true;
        let records: Vec<&InteractionRecord> = records.iter().collect();
        let json =
            serde_json::to_string(&StoredInteractions::new(4, &records, Timestamp::UNIX_EPOCH))
                .expect("JSON");
        let read: StoredInteractions = serde_json::from_str(&json).expect("the same");
        let (open, ended) = read.into_parts();
        assert!(open.is_empty());
        for (ended, record) in ended.iter().zip(&records) {
            assert_eq!(ended.interaction, record.interaction);
            assert_eq!(Some(&ended.outcome), record.outcome.as_ref());
            assert_eq!(ended.consumed, record.consumed);
        }
        assert_eq!(ended.len(), records.len());
    }

    #[test]
    fn the_file_has_the_last_ends_and_no_answer_that_was_typed() {
        let answer = || InteractionOutcome::Answered("x".repeat(10));
        let gone = || InteractionOutcome::Cancelled(CancelReason::Shutdown);
        let ids_at = |records: &[InteractionRecord], now: Timestamp| -> Vec<u64> {
            let all: Vec<&InteractionRecord> = records.iter().collect();
            let stored = StoredInteractions::new(999, &all, now);
            stored.ended.iter().map(|it| it.question.id).collect()
        };
        let ids = |records: &[InteractionRecord]| ids_at(records, Timestamp::UNIX_EPOCH);
        // The newest first: what a shutdown cancelled does not displace answers.
        let mut records: Vec<InteractionRecord> = (0..80).map(|id| ended(id, gone())).collect();
        records.extend((100..150).map(|id| ended(id, answer())));
        records[90].interaction.question.execution = Some(ExecutionId::mint());
        let kept = ids(&records);
        assert_eq!(kept.len(), ENDED_OF_SESSION_MAX);
        assert_eq!(kept.iter().filter(|id| **id >= 100).count(), 49, "{kept:?}");
        assert_eq!(kept[..15], (0..15).collect::<Vec<u64>>()[..]);
        // One that is too large does not displace what is older, and an approval is displaced by
        // nothing of its session.
        records[80].interaction.question.message = "m".repeat(ENDED_OF_SESSION_BYTES);
        let kept = ids(&records);
        assert!(!kept.contains(&100) && kept.contains(&149), "{kept:?}");
        let mut approved = ended(500, InteractionOutcome::Answered("yes".to_owned()));
        let subject = ostler_model::Command::Argv {
            program: "true".into(),
            args: Vec::new(),
        };
        approved.interaction.question.approval = Some(Box::new(approval(subject)));
        approved.interaction.question.message = "m".repeat(ENDED_OF_SESSION_BYTES);
        records.push(approved);
        assert_eq!(ids(&records).last(), Some(&500));
        let later = Timestamp::UNIX_EPOCH + Duration::from_secs(601);
        assert_ne!(ids_at(&records, later).last(), Some(&500), "it has expired");
        if let Some(approved) = records.last_mut() {
            approved.consumed = true;
        }
        assert_ne!(ids(&records).last(), Some(&500), "consumed");
        // Another session has room of its own.
        let mut other = ended(600, answer());
        other.interaction.owner.session = Some(SessionName("other".to_owned()));
        records.push(other);
        assert_eq!(ids(&records).last(), Some(&600));
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
        write(dir, ledger.end(), last_id, &open);
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
        write(dir, 1, last_id, &open);
        let as_value = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).ok();
        let written = fs::read(&path).expect("there");
        assert_eq!(as_value(&written), as_value(VERSION_1.as_bytes()));
        for other in [r#"{"version":2,"open":"elsewhere"}"#, "{"] {
            fs::write(&path, other).expect("written");
            assert_eq!(read(dir, &reader, 0), (0, Vec::new()));
        }
    }
}
