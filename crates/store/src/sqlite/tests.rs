//! The store against a ledger that is written for it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ostler_journal::{Ledger, LedgerEntry};
use ostler_model::{
    Caller, Event, ExecutionId, Owner, Principal, RequestChannel, Scope, SessionName, Termination,
    TerminationCause, Timestamp, UsagePeaks,
    termination::{LostReason, WaitStatus},
};
use serde_json::json;

use super::HistoryStore;
use crate::error::StoreError;
use crate::query::{HistoryQuery, HistoryStatus};
use crate::updater::{HistoryUpdater, UpdateOutcome};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A ledger and its history in a directory.
struct Fixture {
    ledger: Ledger,
    store: Arc<HistoryStore>,
    updater: HistoryUpdater,
    dir: tempfile::TempDir,
    clock: i64,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(&dir.path().join("ledger")).unwrap();
        let (store, updater) = open(dir.path(), &ledger);
        Self {
            ledger,
            store,
            updater,
            dir,
            clock: 1_700_000_000,
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.clock).unwrap()
    }

    fn append(&mut self, id: ExecutionId, by: &Owner, event: Event, detail: serde_json::Value) {
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

    fn start(&mut self, by: &Owner, command: &str) -> ExecutionId {
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

    fn end(&mut self, id: ExecutionId, by: &Owner, code: i32) {
        let ending = Termination::new(TerminationCause::Exited, WaitStatus::Code(code));
        let detail = json!({
            "user_us": 5, "system_us": 6, "max_rss_bytes": 7, "output_bytes": 8, "prompts": 1,
            "output_lines": 3, "peak_cpu_percent": 99.5, "written_bytes": 4, "peak_processes": 2,
        });
        self.append(id, by, Event::Finished { ending }, detail);
    }

    fn run(&mut self, by: &Owner, command: &str, code: i32) -> ExecutionId {
        let id = self.start(by, command);
        self.end(id, by, code);
        id
    }

    fn update(&mut self) {
        let (end, now) = (self.ledger.end(), self.now());
        loop {
            match self.updater.step(end, now) {
                UpdateOutcome::UpToDate(position) => return assert_eq!(position.0, end),
                UpdateOutcome::Advanced(_) | UpdateOutcome::Restarted(_) => {}
                UpdateOutcome::Failed(error) => panic!("{error}"),
            }
        }
    }

    fn commands(&self, query: &HistoryQuery) -> Vec<String> {
        let page = self.store.list(query).unwrap();
        page.rows.into_iter().map(|row| row.command).collect()
    }
}

fn open(dir: &Path, ledger: &Ledger) -> (Arc<HistoryStore>, HistoryUpdater) {
    let store = Arc::new(HistoryStore::new(dir.join("history.db")));
    let updater = HistoryUpdater::new(ledger.reader(), Arc::clone(&store), 90 * DAY);
    (store, updater)
}

fn owner(session: Option<&str>, project: Option<&str>) -> Owner {
    Owner {
        principal: Principal::unix(1),
        project: project.map(str::to_owned),
        session: session.map(|name| SessionName(name.to_owned())),
        task: None,
        channel: RequestChannel::Local,
    }
}

fn all(owner: &Owner) -> HistoryQuery {
    HistoryQuery::all_of(Caller {
        owner: owner.clone(),
        scope: Scope::Principal,
        projects: ostler_model::ProjectView::default(),
    })
}

#[test]
fn a_row_holds_what_the_ledger_says() {
    let mut fixture = Fixture::new();
    let owner = owner(Some("s"), Some("p"));
    let id = fixture.run(&owner, "make -j8", 2);
    fixture.update();
    let row = fixture.store.find(&all(&owner).caller, id).unwrap();
    let row = row.expect("it is there");
    assert_eq!(
        (row.id, &row.owner, row.client.as_str()),
        (id, &owner, "cli")
    );
    assert_eq!(
        (row.command.as_str(), row.directory.as_str()),
        ("make -j8", "/w")
    );
    assert_eq!(row.labels, ["team", "a\"b"]);
    assert_eq!(
        (row.level.as_str(), row.in_force),
        ("none", vec!["cgroup".to_owned()])
    );
    assert_eq!(
        (row.cause.as_deref(), row.code, row.signal),
        (Some("exited"), Some(2), None)
    );
    let second = Duration::from_secs(1);
    assert_eq!(row.started, Some(row.created + second));
    assert_eq!(row.ended, Some(row.created + 2 * second));
    let totals = row.totals.expect("it ended");
    assert_eq!((totals.usage.user_us, totals.usage.max_rss_bytes), (5, 7));
    assert_eq!(
        (totals.output_bytes, totals.prompts, row.attempts),
        (8, 1, 1)
    );
    let expected = UsagePeaks {
        cpu_percent: Some(99.5),
        written_bytes: Some(4),
        processes: Some(2),
        ..UsagePeaks::default()
    };
    assert_eq!((totals.output_lines, totals.peaks), (Some(3), expected));
}

#[test]
fn every_condition_selects() {
    let mut fixture = Fixture::new();
    let (one, two) = (owner(Some("s"), Some("p")), owner(Some("t"), None));
    fixture.run(&one, "cargo build", 0);
    fixture.run(&one, "cargo test --lib", 1);
    fixture.run(&two, "ls 100%_", 0);
    fixture.start(&two, "sleep 9");
    fixture.update();
    let since = fixture.now();
    fixture.run(&one, "last \"quoted\"", 0);
    fixture.update();
    type Change = fn(&mut HistoryQuery, Timestamp);
    let cases: [(Change, &[&str]); 14] = [
        (
            |_, _| {},
            &[
                "last \"quoted\"",
                "sleep 9",
                "ls 100%_",
                "cargo test --lib",
                "cargo build",
            ],
        ),
        (
            |q, _| q.project = Some("p".into()),
            &["last \"quoted\"", "cargo test --lib", "cargo build"],
        ),
        (
            |q, _| q.session = Some("t".into()),
            &["sleep 9", "ls 100%_"],
        ),
        (|q, _| q.status = Some(HistoryStatus::Running), &["sleep 9"]),
        (
            |q, _| q.status = Some(HistoryStatus::Failed),
            &["cargo test --lib"],
        ),
        (|q, _| q.status = Some(HistoryStatus::Lost), &[]),
        (
            |q, _| q.text = Some("CARGO".into()),
            &["cargo test --lib", "cargo build"],
        ),
        (|q, _| q.text = Some("\"quo".into()), &["last \"quoted\""]),
        (|q, _| q.text = Some("%_".into()), &["ls 100%_"]),
        (|q, _| q.text = Some("OR".into()), &[]),
        (
            |q, _| q.label = Some("a\"b".into()),
            &[
                "last \"quoted\"",
                "sleep 9",
                "ls 100%_",
                "cargo test --lib",
                "cargo build",
            ],
        ),
        (|q, _| q.label = Some("a".into()), &[]),
        (|q, at| q.since = Some(at), &["last \"quoted\""]),
        (
            |q, at| {
                q.until = Some(at);
                q.skip = 1;
                q.limit = 2;
            },
            &["ls 100%_", "cargo test --lib"],
        ),
    ];
    for (index, (change, expected)) in cases.into_iter().enumerate() {
        let mut query = all(&one);
        change(&mut query, since + Duration::from_millis(1));
        assert_eq!(fixture.commands(&query), expected, "case {index}");
    }
}

#[test]
fn a_session_sees_its_own_and_what_was_passed_to_its_project() {
    let mut fixture = Fixture::new();
    let (mine, other) = (owner(Some("s"), Some("p")), owner(Some("t"), Some("p")));
    fixture.run(&mine, "mine", 0);
    fixture.run(&other, "other", 0);
    let passed = fixture.start(&other, "passed");
    fixture.end(passed, &owner(None, Some("p")), 0);
    let mut stranger = mine.clone();
    stranger.principal = Principal::unix(2);
    fixture.run(&stranger, "stranger", 0);
    fixture.update();
    let mut query = all(&mine);
    // As `Caller::can_access` decides.
    query.caller.scope = Scope::Session;
    assert_eq!(fixture.commands(&query), ["passed", "mine"]);
    query.caller.owner.session = None;
    query.caller.owner.project = None;
    assert_eq!(fixture.commands(&query), ["passed"]);
    assert_eq!(fixture.commands(&all(&mine)), ["passed", "other", "mine"]);
}

#[test]
fn pages_continue_while_rows_are_added() {
    let mut fixture = Fixture::new();
    let owner = owner(None, None);
    let mut expected: Vec<String> = (0..25).map(|n| format!("job {n}")).collect();
    for command in &expected {
        fixture.run(&owner, command, 0);
    }
    expected.reverse();
    for text in [None, Some("job".to_owned())] {
        fixture.update();
        let mut query = HistoryQuery {
            text,
            limit: 7,
            ..all(&owner)
        };
        let mut listed = Vec::new();
        loop {
            let page = fixture.store.list(&query).unwrap();
            listed.extend(page.rows.into_iter().map(|row| row.command));
            fixture.run(&owner, "later", 0);
            fixture.update();
            query.before = page.next_before;
            if query.before.is_none() {
                break;
            }
        }
        listed.retain(|command| command != "later");
        assert_eq!(listed, expected);
    }
}

#[test]
fn a_killed_updater_loses_and_doubles_no_row() {
    let mut fixture = Fixture::new();
    let owner = owner(None, None);
    let mut rng = fastrand::Rng::with_seed(17);
    let mut count = 0;
    for _ in 0..40 {
        for _ in 0..rng.usize(..80) {
            fixture.run(&owner, "true", 0);
            count += 1;
        }
        let _partial = fixture.updater.step(fixture.ledger.end(), fixture.now());
        if rng.bool() {
            let (store, updater) = open(fixture.dir.path(), &fixture.ledger);
            (fixture.store, fixture.updater) = (store, updater);
        }
    }
    fixture.update();
    let mut query = all(&owner);
    let mut rows = 0;
    loop {
        let page = fixture.store.list(&query).unwrap();
        assert!(page.rows.iter().all(|row| row.code == Some(0)));
        rows += page.rows.len();
        query.before = page.next_before;
        if query.before.is_none() {
            break;
        }
    }
    assert_eq!(rows, count);
}

#[test]
fn a_deleted_damaged_or_foreign_database_is_made_anew() {
    let mut fixture = Fixture::new();
    let owner = owner(None, None);
    for n in 0..300 {
        fixture.run(&owner, &format!("job {n}"), 0);
    }
    fixture.update();
    let query = HistoryQuery {
        limit: 500,
        ..all(&owner)
    };
    let expected = fixture.commands(&query);
    let path = fixture.store.path().to_owned();
    let mut rng = fastrand::Rng::with_seed(3);
    for round in 0..12 {
        match round % 4 {
            0 => std::fs::remove_file(&path).unwrap(),
            1 => std::fs::write(&path, vec![0x5a; 100_000]).unwrap(),
            2 => {
                // Pages in the middle of a closed database.
                fixture.store = open(fixture.dir.path(), &fixture.ledger).0;
                let mut bytes = std::fs::read(&path).unwrap();
                let from = rng.usize(100..bytes.len() / 2);
                bytes[from..].fill(0xff);
                std::fs::write(&path, bytes).unwrap();
            }
            _ => {
                let other = Fixture::new();
                std::fs::copy(other.store.path(), &path).unwrap_or_default();
            }
        }
        // Another program looked at it, and closed it.
        let (store, updater) = open(fixture.dir.path(), &fixture.ledger);
        (fixture.store, fixture.updater) = (store, updater);
        fixture.run(&owner, "true", 0);
        fixture.update();
        let page = fixture.store.list(&query).unwrap();
        let listed: Vec<String> = page.rows.into_iter().map(|row| row.command).collect();
        let listed: Vec<String> = listed.into_iter().filter(|it| it != "true").collect();
        assert_eq!(listed, expected, "round {round}");
    }
}

#[test]
fn an_end_without_totals_has_none_and_the_first_end_counts() {
    let mut fixture = Fixture::new();
    let owner = owner(None, None);
    let id = fixture.start(&owner, "true");
    let lost = Termination::without_status(TerminationCause::Lost {
        reason: LostReason::NoRecord,
    });
    let finished = Event::Finished { ending: lost };
    fixture.append(id, &owner, finished, json!({}));
    fixture.end(id, &owner, 0);
    fixture.update();
    let row = fixture.store.find(&all(&owner).caller, id).unwrap();
    let row = row.expect("it is there");
    assert_eq!((row.cause.as_deref(), row.totals), (Some("lost"), None));
    assert_eq!(row.ended, Some(row.created + Duration::from_secs(2)));
}

#[test]
fn a_process_that_could_not_be_started_is_an_attempt_and_no_start() {
    let mut fixture = Fixture::new();
    let owner = owner(None, None);
    let id = ExecutionId::mint();
    let created = Event::Created {
        missing: Vec::new(),
    };
    fixture.append(id, &owner, created, json!({"command": "nothing"}));
    let failed = Event::SpawnFailed {
        attempt: 1,
        step: "exec".to_owned(),
        errno: Some(2),
        message: "no such file".to_owned(),
    };
    fixture.append(id, &owner, failed, json!({}));
    fixture.update();
    let row = fixture.store.find(&all(&owner).caller, id).unwrap();
    let row = row.expect("it is there");
    assert_eq!((row.started, row.attempts), (None, 1));
}

#[test]
fn any_text_can_be_searched_for() {
    let mut fixture = Fixture::new();
    let owner = owner(None, None);
    let texts = [
        "   ",
        "\"\"\"",
        "a\"b'c",
        "%_%",
        "NEAR(a b)",
        "a* OR b",
        "-c:d",
        "\u{feff}é漢字",
        "\n\t\r",
        "\\\\\\",
    ];
    for text in texts {
        fixture.run(&owner, &format!("echo {text} end"), 0);
    }
    fixture.update();
    for text in texts {
        let query = HistoryQuery {
            text: Some(text.to_owned()),
            ..all(&owner)
        };
        let found = fixture.commands(&query);
        assert!(
            found.contains(&format!("echo {text} end")),
            "{text:?}: {found:?}"
        );
        assert!(
            found.iter().all(|command| command.contains(text)),
            "{text:?}: {found:?}"
        );
    }
}

#[test]
fn rows_of_an_older_database_are_kept_and_have_no_peaks() {
    let mut fixture = Fixture::new();
    let owner = owner(None, None);
    let old = fixture.run(&owner, "true", 0);
    fixture.update();
    let path = fixture.store.path().to_owned();
    let back = "ALTER TABLE execution DROP COLUMN output_lines;
        ALTER TABLE execution DROP COLUMN peaks;
        PRAGMA user_version = 1;";
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch(back).unwrap();
    (fixture.store, fixture.updater) = open(fixture.dir.path(), &fixture.ledger);
    let new = fixture.run(&owner, "make", 0);
    fixture.update();
    let lines = |id| {
        let row = fixture.store.find(&all(&owner).caller, id).unwrap();
        let totals = row.and_then(|row| row.totals).expect("it ended");
        (totals.output_lines, totals.peaks.processes)
    };
    assert_eq!((lines(old), lines(new)), ((None, None), (Some(3), Some(2))));
}

#[test]
fn a_newer_database_is_left_alone() {
    let mut fixture = Fixture::new();
    fixture.run(&owner(None, None), "true", 0);
    fixture.update();
    let path = fixture.store.path().to_owned();
    rusqlite::Connection::open(&path)
        .unwrap()
        .pragma_update(None, "user_version", 99)
        .unwrap();
    let (_, mut updater) = open(fixture.dir.path(), &fixture.ledger);
    let outcome = updater.step(fixture.ledger.end(), fixture.now());
    assert!(matches!(
        outcome,
        UpdateOutcome::Failed(StoreError::Newer { found: 99, .. })
    ));
    assert!(path.exists());
}

#[test]
fn a_locked_database_is_tried_again() {
    let mut fixture = Fixture::new();
    let owner = owner(None, None);
    fixture.run(&owner, "true", 0);
    fixture.update();
    let holder = rusqlite::Connection::open(fixture.store.path()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    fixture.run(&owner, "false", 1);
    let outcome = fixture.updater.step(fixture.ledger.end(), fixture.now());
    assert!(matches!(
        outcome,
        UpdateOutcome::Failed(StoreError::Unavailable(_))
    ));
    // Readers go on.
    assert_eq!(fixture.commands(&all(&owner)), ["true"]);
    holder.execute_batch("ROLLBACK").unwrap();
    fixture.update();
    assert_eq!(fixture.commands(&all(&owner)), ["false", "true"]);
}

#[test]
fn old_rows_expire_and_running_ones_stay() {
    let mut fixture = Fixture::new();
    let owner = owner(None, None);
    fixture.run(&owner, "old", 0);
    fixture.start(&owner, "old service");
    fixture.clock += 91 * 24 * 60 * 60;
    fixture.run(&owner, "new", 0);
    fixture.update();
    assert_eq!(fixture.commands(&all(&owner)), ["new", "old service"]);
    let query = HistoryQuery {
        text: Some("old".into()),
        ..all(&owner)
    };
    assert_eq!(fixture.commands(&query), ["old service"]);
}

#[test]
fn statistics_count_the_same_command_only() {
    let mut fixture = Fixture::new();
    let (mine, mut other) = (owner(None, None), owner(None, None));
    other.principal = Principal::unix(2);
    let mut last = None;
    for n in 0..4 {
        last = Some(fixture.run(&mine, &format!("make -j{n}"), i32::from(n == 0)));
        fixture.run(&mine, "make clean", 0);
        fixture.run(&other, "make -j1", 0);
    }
    fixture.update();
    let row = fixture
        .store
        .find(&all(&mine).caller, last.unwrap())
        .unwrap();
    let fingerprint = row.unwrap().fingerprint.unwrap();
    let now = fixture.now();
    let statistics = |fixture: &Fixture, now| {
        fixture
            .store
            .statistics(&mine.principal, fingerprint, now)
            .unwrap()
    };
    assert_eq!(statistics(&fixture, now), None);
    fixture.run(&mine, "make -j5", 0);
    fixture.update();
    let found = statistics(&fixture, now).expect("five ends");
    assert_eq!((found.runs, found.failures), (5, 1));
    assert_eq!(found.median, Duration::from_secs(1));
    assert_eq!(statistics(&fixture, now + 40 * DAY), None);
}
