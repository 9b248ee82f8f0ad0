//! Workspaces with overlays, over real jails and without a zygote. On a machine that supports none,
//! the start is refused with the reason, and only that is tested.

use std::fs;
use std::path::Path;

use ostler_backend::OverlayRequestError;
use ostler_engine::{CleanOutcome, Engine, Error, ExecutionInfo, StartRequest};
use ostler_journal::LedgerCursor;
use ostler_model::{Event, IsolationLevel, OverlayOutcome, OverlayRequest, OverlayResponse, Scope};
use tempfile::TempDir;

use crate::test_engine::{PATIENCE, open_engine, test_caller};

struct OverlayFixture {
    engine: Engine,
    workspace: TempDir,
    _state: TempDir,
}

impl OverlayFixture {
    async fn new() -> Self {
        let (state, workspace) = (directory(), directory());
        let engine = open_engine(state.path(), |_| {}).await;
        fs::write(workspace.path().join("f"), "a\n").expect("written");
        Self {
            engine,
            workspace,
            _state: state,
        }
    }

    fn request(&self, script: &str) -> StartRequest {
        let cwd = fs::canonicalize(self.workspace.path()).expect("a path");
        let cwd = cwd.to_str().expect("a name").to_owned();
        let mut request = StartRequest::argv(["sh", "-c", script], cwd);
        request.options.level = Some(IsolationLevel::High);
        request.options.sandbox.overlay = true;
        request
    }

    /// Runs a script to its end; none where there are no overlays here.
    async fn run(&self, script: &str) -> Option<ExecutionInfo> {
        let (caller, request) = (test_caller(), self.request(script));
        match self.engine.run(&caller, request, Some(PATIENCE)).await {
            Ok(waited) => {
                let ending = waited.info.state.ending.clone().expect("it ended");
                assert_eq!(ending.code, Some(0), "{ending:?}");
                Some(waited.info)
            }
            Err(Error::UnmetIsolation(unmet)) => {
                assert!(!unmet.to_string().is_empty());
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    async fn request_overlay(
        &self,
        info: &ExecutionInfo,
        order: OverlayRequest,
    ) -> Result<OverlayResponse, Error> {
        let id = info.id.short();
        self.engine.handle_overlay(&test_caller(), &id, order).await
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.workspace.path().join(name)).ok()
    }

    fn outcomes(&self, info: &ExecutionInfo) -> Vec<OverlayOutcome> {
        let events = self.engine.events(&test_caller(), &info.id.short());
        let mut fates = Vec::new();
        for record in events.expect("events") {
            if let Event::Workspace { fate, .. } = record.event {
                fates.push(fate);
            }
        }
        fates
    }

    fn count_ledger_entries(&self, of: OverlayOutcome) -> usize {
        let ledger = self.engine.ledger().expect("a ledger");
        let read = ledger.read(LedgerCursor::default(), usize::MAX);
        let records = read.expect("entries").records;
        let entries = records.iter();
        let is = |event: &Event| matches!(event, Event::Workspace { fate, .. } if *fate == of);
        entries.filter(|it| is(&it.entry.event)).count()
    }
}

fn directory() -> TempDir {
    TempDir::new_in(Path::new("/var/tmp")).expect("a directory")
}

/// Commits the changes without a condition.
const COMMIT: OverlayRequest = OverlayRequest::Commit {
    allow_autorun: false,
};

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_wrote_is_shown_and_committed_once() {
    let fixture = OverlayFixture::new().await;
    let Some(info) = fixture.run("echo b >>f; mkdir d; echo n >d/n; cat f").await else {
        return;
    };
    assert_eq!(fixture.read("f").as_deref(), Some("a\n"));
    let listed = fixture
        .request_overlay(&info, OverlayRequest::Changes { limit: 10 })
        .await;
    let OverlayResponse::Changes(changes) = listed.expect("changes") else {
        panic!("no changes");
    };
    assert_eq!(
        (changes.totals, changes.fate),
        ([2, 1, 0], OverlayOutcome::Open)
    );
    let diff = OverlayRequest::Diff {
        paths: Vec::new(),
        limit_bytes: 10_000,
    };
    let OverlayResponse::Diff { text, .. } =
        fixture.request_overlay(&info, diff).await.expect("a diff")
    else {
        panic!("no diff");
    };
    assert!(text.contains("\n+b\n"), "{text}");
    let committed = fixture.request_overlay(&info, COMMIT).await;
    assert!(matches!(committed, Ok(OverlayResponse::Committed(_))));
    assert_eq!(fixture.read("f").as_deref(), Some("a\nb\n"));
    assert_eq!(fixture.read("d/n").as_deref(), Some("n\n"));
    let again = fixture
        .request_overlay(&info, OverlayRequest::Discard)
        .await;
    let decided = OverlayRequestError::AlreadyResolved {
        id: info.id,
        committed: true,
    };
    assert!(matches!(again, Err(Error::Workspace(error)) if error == decided));
    assert_eq!(fixture.outcomes(&info), [OverlayOutcome::Committed]);
    assert_eq!(fixture.count_ledger_entries(OverlayOutcome::Committed), 1);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_commits_nothing_and_a_discard_ends_it() {
    let fixture = OverlayFixture::new().await;
    let Some(info) = fixture.run("echo b >>f; echo n >n").await else {
        return;
    };
    fs::write(fixture.workspace.path().join("f"), "host\n").expect("written");
    let refused = fixture.request_overlay(&info, COMMIT).await;
    let Ok(OverlayResponse::Conflicts(refused_changes)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(refused_changes.changed_on_host.len(), 1);
    assert_eq!(refused_changes.totals, [1, 1, 0]);
    assert_eq!(fixture.read("n"), None);
    assert!(fixture.outcomes(&info).is_empty());
    let discarded = fixture
        .request_overlay(&info, OverlayRequest::Discard)
        .await;
    assert!(matches!(discarded, Ok(OverlayResponse::Discarded)));
    assert_eq!(fixture.read("f").as_deref(), Some("host\n"));
    assert_eq!(fixture.outcomes(&info), [OverlayOutcome::Discarded]);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_decided_while_it_runs() {
    let fixture = OverlayFixture::new().await;
    let request = fixture.request("echo b >>f; exec sleep 300");
    let info = match fixture.engine.start(&test_caller(), request).await {
        Ok(info) => info,
        Err(Error::UnmetIsolation(_)) => return,
        Err(error) => panic!("{error}"),
    };
    let refused = fixture.request_overlay(&info, COMMIT).await;
    let running = OverlayRequestError::Running(info.id);
    assert!(matches!(refused, Err(Error::Workspace(error)) if error == running));
    let id = info.id.short();
    let stopped = fixture
        .engine
        .stop(&test_caller(), &id, Default::default())
        .await;
    stopped.expect("stopped");
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cleaning_says_what_it_discards() {
    let fixture = OverlayFixture::new().await;
    let Some(info) = fixture.run("echo b >>f").await else {
        return;
    };
    let cleaned = fixture
        .engine
        .clean(&test_caller(), &[info.id.short()])
        .await;
    assert_eq!(cleaned.expect("a list")[0].1, CleanOutcome::Discarded);
    assert_eq!(fixture.count_ledger_entries(OverlayOutcome::Discarded), 1);
    assert_eq!(fixture.read("f").as_deref(), Some("a\n"));
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ends_leaves_open_changes_to_its_project() {
    let fixture = OverlayFixture::new().await;
    let Some(open) = fixture.run("echo b >>f").await else {
        return;
    };
    let nothing = fixture.run("true").await.expect("it runs");
    fixture
        .engine
        .end_session(&test_caller())
        .await
        .expect("ended");
    assert!(
        fixture
            .engine
            .info(&test_caller(), &nothing.id.short())
            .is_err()
    );
    let mut other = test_caller();
    other.owner.session = None;
    other.scope = Scope::Principal;
    let kept = fixture.engine.info(&other, &open.id.short()).expect("kept");
    assert_eq!(kept.owner.session, None);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_without_an_overlay_has_none() {
    let fixture = OverlayFixture::new().await;
    let request = StartRequest::argv(["true"], "/tmp");
    let waited = fixture
        .engine
        .run(&test_caller(), request, Some(PATIENCE))
        .await;
    let info = waited.expect("it runs").info;
    let none = fixture.request_overlay(&info, COMMIT).await;
    let error = OverlayRequestError::None(info.id);
    assert!(matches!(none, Err(Error::Workspace(it)) if it == error));
    fixture.engine.shutdown().await;
}
