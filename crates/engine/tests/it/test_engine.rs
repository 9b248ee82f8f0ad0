//! An engine over processes of this machine, in a state directory of its own.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ostler_backend_local::{LocalBackend, ZygoteConfig};
use ostler_engine::{Engine, ExecutionInfo, Settings, StartRequest, StopRequest, WaitEnd, WaitFor};
use ostler_model::{Caller, Owner, Principal, Scope, SessionName};
use tempfile::TempDir;

/// No answer of a test takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// An engine and its state directory.
pub(crate) struct TestEngine {
    pub(crate) engine: Engine,
    pub(crate) state: TempDir,
}

impl TestEngine {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let state = TempDir::new().expect("a directory");
        let engine = open_engine(state.path(), change).await;
        Self { engine, state }
    }

    pub(crate) async fn start(&self, request: StartRequest) -> ExecutionInfo {
        let started = self.engine.start(&test_caller(), request).await;
        started.expect("it starts")
    }

    /// Starts; returns the id.
    pub(crate) async fn start_id(&self, request: StartRequest) -> String {
        self.start(request).await.id.to_string()
    }

    pub(crate) async fn wait(
        &self,
        id: &str,
        until: &WaitFor,
        at_most: Duration,
    ) -> (WaitEnd, ExecutionInfo) {
        let caller = test_caller();
        let waited = self.engine.wait(&caller, id, until, Some(at_most)).await;
        let waited = waited.expect("it is known");
        (waited.end, waited.info)
    }

    pub(crate) async fn wait_end(&self, id: &str) -> ExecutionInfo {
        let (end, info) = self.wait(id, &WaitFor::Exit, PATIENCE).await;
        assert_eq!(end, WaitEnd::Exit);
        info
    }

    pub(crate) async fn kill(&self, id: &str) -> ExecutionInfo {
        let force = StopRequest {
            force: true,
            ..StopRequest::default()
        };
        let stopped = self.engine.stop(&test_caller(), id, force).await;
        stopped.expect("it stops")
    }
}

/// Opens an engine over a state directory, with a short grace period.
pub(crate) async fn open_engine(state: &Path, change: impl FnOnce(&mut Settings)) -> Engine {
    let backend = LocalBackend::open(state, ZygoteConfig::InProcess).await;
    let mut settings = Settings::new(state);
    settings.base_env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    settings.grace = Duration::from_millis(500);
    change(&mut settings);
    let engine = Engine::open(settings, Arc::new(backend.expect("a backend"))).await;
    engine.expect("an engine")
}

/// The session of most tests.
pub(crate) fn test_caller() -> Caller {
    caller("one")
}

/// A session of root.
pub(crate) fn caller(session: &str) -> Caller {
    Caller {
        owner: Owner {
            principal: Principal::unix(0),
            project: None,
            session: Some(SessionName(session.to_owned())),
            task: None,
            channel: ostler_model::RequestChannel::Local,
        },
        scope: Scope::Session,
        projects: ostler_model::ProjectView::default(),
    }
}
