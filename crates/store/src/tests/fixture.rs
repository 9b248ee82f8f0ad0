//! A ledger that is written for a test, and its history.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ostler_journal::{Ledger, LedgerEntry};
use ostler_model::{
    Caller, Event, ExecutionId, Owner, Principal, RequestChannel, Scope, SessionName, Termination,
    TerminationCause, Timestamp, termination::WaitStatus,
};
use serde_json::json;

use crate::postgres::PostgresSettings;
use crate::query::HistoryQuery;
use crate::store::HistoryStore;
use crate::updater::{HistoryUpdater, UpdateOutcome};

pub(crate) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A ledger and its history in a directory.
pub(crate) struct Fixture {
    pub(crate) ledger: Ledger,
    pub(crate) store: Arc<HistoryStore>,
    pub(crate) updater: HistoryUpdater,
    pub(crate) place: Place,
    pub(crate) dir: tempfile::TempDir,
    pub(crate) clock: i64,
}

/// Where the history is.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    File(PathBuf),
    Server(Box<PostgresSettings>),
}

impl Place {
    pub(crate) fn file(&self) -> &Path {
        match self {
            Self::File(file) => file,
            Self::Server(settings) => panic!("no file: {settings:?}"),
        }
    }

    fn store(&self) -> HistoryStore {
        match self {
            Self::File(file) => HistoryStore::sqlite(file.clone()),
            Self::Server(settings) => HistoryStore::postgres(settings.as_ref().clone()),
        }
    }
}

impl Fixture {
    pub(crate) fn sqlite() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::File(dir.path().join("history.db"));
        Self::new(dir, place)
    }

    pub(crate) fn postgres(settings: PostgresSettings) -> Self {
        Self::new(
            tempfile::tempdir().unwrap(),
            Place::Server(Box::new(settings)),
        )
    }

    fn new(dir: tempfile::TempDir, place: Place) -> Self {
        let ledger = Ledger::open(&dir.path().join("ledger")).unwrap();
        let (store, updater) = open(&place, &ledger);
        Self {
            ledger,
            store,
            updater,
            place,
            dir,
            clock: 1_700_000_000,
        }
    }

    /// Another program continues.
    pub(crate) fn reopen(&mut self) {
        // The place is free first.
        self.store = Arc::new(HistoryStore::sqlite(PathBuf::new()));
        self.updater = HistoryUpdater::new(self.ledger.reader(), Arc::clone(&self.store), 90 * DAY);
        (self.store, self.updater) = open(&self.place, &self.ledger);
    }

    /// Replaces the ledger by an empty one; another program continues.
    pub(crate) fn begin_ledger_anew(&mut self) {
        let other = tempfile::tempdir_in(self.dir.path()).unwrap().keep();
        self.ledger = Ledger::open(&other).unwrap();
        self.reopen();
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_second(self.clock).unwrap()
    }

    pub(crate) fn append(
        &mut self,
        id: ExecutionId,
        by: &Owner,
        event: Event,
        detail: serde_json::Value,
    ) {
        self.clock += 1;
        let serde_json::Value::Object(detail) = detail else {
            panic!("details are an object");
        };
        let entry = LedgerEntry {
            at: self.now(),
            execution: Some(id),
            by: by.clone(),
            event,
            detail: detail.into_iter().collect::<BTreeMap<_, _>>(),
        };
        self.ledger.append(&entry).unwrap();
    }

    pub(crate) fn start(&mut self, by: &Owner, command: &str) -> ExecutionId {
        let id = ExecutionId::mint();
        let detail = json!({
            "command": command, "cwd": "/w", "face": "cli", "level": "none",
            "labels": ["team", "a\"b"], "in_force": ["cgroup"],
        });
        self.append(
            id,
            by,
            Event::Created {
                missing: Vec::new(),
            },
            detail,
        );
        self.append(id, by, Event::Started { attempt: 1, pid: 7 }, json!({}));
        id
    }

    pub(crate) fn end(&mut self, id: ExecutionId, by: &Owner, code: i32) {
        let ending = Termination::new(TerminationCause::Exited, WaitStatus::Code(code));
        let detail = json!({
            "user_us": 5, "system_us": 6, "max_rss_bytes": 7, "output_bytes": 8, "prompts": 1,
            "output_lines": 3, "peak_cpu_percent": 99.5, "written_bytes": 4, "peak_processes": 2,
        });
        self.append(id, by, Event::Finished { ending }, detail);
    }

    pub(crate) fn run(&mut self, by: &Owner, command: &str, code: i32) -> ExecutionId {
        let id = self.start(by, command);
        self.end(id, by, code);
        id
    }

    pub(crate) fn update(&mut self) {
        let (end, now) = (self.ledger.end(), self.now());
        loop {
            match self.updater.step(end, now) {
                UpdateOutcome::UpToDate(position) => return assert_eq!(position.0, end),
                UpdateOutcome::Advanced(_) | UpdateOutcome::Restarted(_) => {}
                UpdateOutcome::Failed(error) => panic!("{error}"),
            }
        }
    }

    pub(crate) fn commands(&self, query: &HistoryQuery) -> Vec<String> {
        let page = self.store.list(query).unwrap();
        page.rows.into_iter().map(|row| row.command).collect()
    }
}

fn open(place: &Place, ledger: &Ledger) -> (Arc<HistoryStore>, HistoryUpdater) {
    let store = Arc::new(place.store());
    let updater = HistoryUpdater::new(ledger.reader(), Arc::clone(&store), 90 * DAY);
    (store, updater)
}

pub(crate) fn owner(session: Option<&str>, project: Option<&str>) -> Owner {
    Owner {
        principal: Principal::unix(1),
        project: project.map(str::to_owned),
        session: session.map(|name| SessionName(name.to_owned())),
        task: None,
        channel: RequestChannel::Local,
    }
}

pub(crate) fn all(owner: &Owner) -> HistoryQuery {
    HistoryQuery::all_of(Caller {
        owner: owner.clone(),
        scope: Scope::Principal,
        projects: ostler_model::ProjectView::default(),
    })
}
