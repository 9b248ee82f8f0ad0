//! Workspaces whose writes are kept apart, over real cells; without a zygote. Where this machine
//! has none of them, the start is refused with the reason, which is all there is to test.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ostler_backend::OverlayRequestError;
use ostler_backend_local::{LocalBackend, ZygoteConfig};
use ostler_engine::{CleanOutcome, Engine, Error, ExecutionInfo, Settings, StartRequest};
use ostler_journal::LedgerCursor;
use ostler_model::{
    Caller, Event, IsolationLevel, OverlayOutcome, OverlayRequest, OverlayResponse, Owner,
    Principal, Scope, SessionName,
};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(30);

struct OverlayFixture {
    engine: Engine,
    workspace: TempDir,
    _state: TempDir,
}

impl OverlayFixture {
    async fn new() -> Self {
        let (state, workspace) = (directory(), directory());
        let place = LocalBackend::open(state.path(), ZygoteConfig::InProcess).await;
        let mut settings = Settings::new(state.path());
        settings.base_env = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let engine = Engine::open(settings, Arc::new(place.expect("a place"))).await;
        fs::write(workspace.path().join("f"), "a\n").expect("written");
        Self {
            engine: engine.expect("an engine"),
            workspace,
            _state: state,
        }
    }

    fn request(&self, script: &str) -> StartRequest {
        let cwd = fs::canonicalize(self.workspace.path()).expect("a path");
        let cwd = cwd.to_str().expect("a name").to_owned();
        let mut request = StartRequest::argv(["sh", "-c", script], cwd);
        request.level = Some(IsolationLevel::High);
        request.sandbox.overlay = true;
        request
    }

    /// Runs a script to its end; none where there are no overlays here.
    async fn run(&self, script: &str) -> Option<ExecutionInfo> {
        let (caller, request) = (caller(), self.request(script));
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
        self.engine.handle_overlay(&caller(), &id, order).await
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.workspace.path().join(name)).ok()
    }

    fn outcomes(&self, info: &ExecutionInfo) -> Vec<OverlayOutcome> {
        let events = self.engine.events(&caller(), &info.id.short());
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
        let (entries, _) = read.expect("entries");
        let entries = entries.iter();
        let is = |event: &Event| matches!(event, Event::Workspace { fate, .. } if *fate == of);
        entries.filter(|it| is(&it.entry.event)).count()
    }
}

fn directory() -> TempDir {
    TempDir::new_in(Path::new("/var/tmp")).expect("a directory")
}

fn caller() -> Caller {
    Caller {
        owner: Owner {
            principal: Principal::unix(0),
            project: None,
            session: Some(SessionName("one".to_owned())),
            task: None,
            channel: ostler_model::RequestChannel::Local,
        },
        scope: Scope::Session,
    }
}

/// What is committed as it comes.
const COMMIT: OverlayRequest = OverlayRequest::Commit {
    allow_autorun: false,
};

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_wrote_is_shown_and_committed_once() {
    let lab = OverlayFixture::new().await;
    let Some(info) = lab.run("echo b >>f; mkdir d; echo n >d/n; cat f").await else {
        return;
    };
    assert_eq!(lab.read("f").as_deref(), Some("a\n"));
    let listed = lab
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
        lab.request_overlay(&info, diff).await.expect("a diff")
    else {
        panic!("no diff");
    };
    assert!(text.contains("\n+b\n"), "{text}");
    let committed = lab.request_overlay(&info, COMMIT).await;
    assert!(matches!(committed, Ok(OverlayResponse::Committed(_))));
    assert_eq!(lab.read("f").as_deref(), Some("a\nb\n"));
    assert_eq!(lab.read("d/n").as_deref(), Some("n\n"));
    let again = lab.request_overlay(&info, OverlayRequest::Discard).await;
    let decided = OverlayRequestError::AlreadyResolved {
        id: info.id,
        committed: true,
    };
    assert!(matches!(again, Err(Error::Workspace(error)) if error == decided));
    assert_eq!(lab.outcomes(&info), [OverlayOutcome::Committed]);
    assert_eq!(lab.count_ledger_entries(OverlayOutcome::Committed), 1);
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_commits_nothing_and_a_discard_ends_it() {
    let lab = OverlayFixture::new().await;
    let Some(info) = lab.run("echo b >>f; echo n >n").await else {
        return;
    };
    fs::write(lab.workspace.path().join("f"), "host\n").expect("written");
    let refused = lab.request_overlay(&info, COMMIT).await;
    let Ok(OverlayResponse::Conflicts(conflicts)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(conflicts.len(), 1);
    assert_eq!(lab.read("n"), None);
    assert!(lab.outcomes(&info).is_empty());
    let discarded = lab.request_overlay(&info, OverlayRequest::Discard).await;
    assert!(matches!(discarded, Ok(OverlayResponse::Discarded)));
    assert_eq!(lab.read("f").as_deref(), Some("host\n"));
    assert_eq!(lab.outcomes(&info), [OverlayOutcome::Discarded]);
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_decided_while_it_runs() {
    let lab = OverlayFixture::new().await;
    let request = lab.request("echo b >>f; exec sleep 300");
    let info = match lab.engine.start(&caller(), request).await {
        Ok(info) => info,
        Err(Error::UnmetIsolation(_)) => return,
        Err(error) => panic!("{error}"),
    };
    let refused = lab.request_overlay(&info, COMMIT).await;
    let running = OverlayRequestError::Running(info.id);
    assert!(matches!(refused, Err(Error::Workspace(error)) if error == running));
    let id = info.id.short();
    let stopped = lab.engine.stop(&caller(), &id, Default::default()).await;
    stopped.expect("stopped");
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cleaning_says_what_it_discards() {
    let lab = OverlayFixture::new().await;
    let Some(info) = lab.run("echo b >>f").await else {
        return;
    };
    let cleaned = lab.engine.clean(&caller(), &[info.id.short()]).await;
    assert_eq!(cleaned.expect("a list")[0].1, CleanOutcome::Discarded);
    assert_eq!(lab.count_ledger_entries(OverlayOutcome::Discarded), 1);
    assert_eq!(lab.read("f").as_deref(), Some("a\n"));
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ends_leaves_open_changes_to_its_project() {
    let lab = OverlayFixture::new().await;
    let Some(open) = lab.run("echo b >>f").await else {
        return;
    };
    let nothing = lab.run("true").await.expect("it runs");
    lab.engine.end_session(&caller()).await.expect("ended");
    assert!(lab.engine.info(&caller(), &nothing.id.short()).is_err());
    let mut other = caller();
    other.owner.session = None;
    other.scope = Scope::Principal;
    let kept = lab.engine.info(&other, &open.id.short()).expect("kept");
    assert_eq!(kept.owner.session, None);
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_without_an_overlay_has_none() {
    let lab = OverlayFixture::new().await;
    let request = StartRequest::argv(["true"], "/tmp");
    let waited = lab.engine.run(&caller(), request, Some(PATIENCE)).await;
    let info = waited.expect("it runs").info;
    let none = lab.request_overlay(&info, COMMIT).await;
    let error = OverlayRequestError::None(info.id);
    assert!(matches!(none, Err(Error::Workspace(it)) if it == error));
    lab.engine.shutdown().await;
}
