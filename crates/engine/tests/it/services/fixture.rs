//! An engine, a workspace, and small servers to run in it.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use ostler_engine::{
    Diagnosis, Engine, EnsureResult, Error, ExecutionInfo, ServiceError, ServiceInfo,
    ServiceRequest, ServiceStopped, Settings, StartGuard, StartRequest, StopRequest, WaitEnd,
    WaitFor,
};
use ostler_model::{Caller, ExecutionId, Owner, Principal, Scope, SessionName};
use tempfile::TempDir;

use crate::test_engine::{PATIENCE, open_engine, test_caller};

/// The polling interval for conditions without a notification.
const LOOK: Duration = Duration::from_millis(20);

/// Answers every request with 200 on the port of its first argument, else of `PORT`.
const SERVER: &str = r#"
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *_): pass
port = int(sys.argv[1]) if len(sys.argv) > 1 else int(os.environ["PORT"])
print("on", port, flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"#;

pub(crate) struct ServiceFixture {
    pub(crate) engine: Engine,
    pub(crate) state: TempDir,
    pub(crate) work: TempDir,
}

impl ServiceFixture {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let (state, work) = (directory(), directory());
        std::fs::write(work.path().join("server.py"), SERVER).expect("written");
        let engine = open(state.path(), change).await;
        Self {
            engine,
            state,
            work,
        }
    }

    /// The same state directory in another engine.
    pub(crate) async fn reopen(self) -> Self {
        self.engine.shutdown().await;
        let engine = open(self.state.path(), |_| {}).await;
        Self { engine, ..self }
    }

    pub(crate) fn dir(&self) -> PathBuf {
        std::fs::canonicalize(self.work.path()).expect("it is there")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let new = self.work.path().join(".new");
        std::fs::write(&new, text).expect("written");
        std::fs::rename(new, self.work.path().join(name)).expect("put in place");
    }

    /// A client's request, without a command of its own.
    pub(crate) fn base(&self) -> StartRequest {
        StartRequest::argv(["true"], self.dir())
    }

    /// A service that runs a script.
    pub(crate) fn sh(&self, script: &str) -> ServiceRequest {
        let start = StartRequest::argv(["/bin/sh", "-c", script], self.dir());
        ServiceRequest::new(start)
    }

    /// The server, on a port of its own.
    pub(crate) fn server(&self, name: &str, port: u16) -> ServiceRequest {
        let port = port.to_string();
        let words = ["python3", "server.py", &port];
        let start = StartRequest::argv(words, self.dir());
        named(name, ServiceRequest::new(start))
    }

    /// The server, on the port it is given.
    pub(crate) fn by_name(&self, name: &str) -> ServiceRequest {
        let start = StartRequest::argv(["python3", "server.py"], self.dir());
        named(name, ServiceRequest::new(start))
    }

    /// Starts and waits until it is ready.
    pub(crate) async fn ready(&self, request: ServiceRequest) -> ExecutionInfo {
        let guard = self.start(request).await;
        let info = guard.expect("it starts").commit().expect("open");
        self.until_ready(info.id).await
    }

    pub(crate) async fn until_ready(&self, id: ExecutionId) -> ExecutionInfo {
        let id = id.to_string();
        let me = test_caller();
        let wait = self.engine.wait(&me, &id, &WaitFor::Ready, Some(PATIENCE));
        let waited = wait.await.expect("it is known");
        assert_eq!(waited.end, WaitEnd::Ready, "{:?}", waited.info.state);
        waited.info
    }

    pub(crate) fn service(&self, name: &str) -> ServiceInfo {
        let found = self.engine.service(&test_caller(), name, Some(&self.dir()));
        found.expect("it is known")
    }

    pub(crate) fn id(&self, name: &str) -> ExecutionId {
        self.service(name).execution.expect("it was started").id
    }

    pub(crate) async fn start(&self, request: ServiceRequest) -> Result<StartGuard, Error> {
        self.engine.start_service(&test_caller(), request).await
    }

    pub(crate) async fn ensure(&self, request: ServiceRequest) -> Result<EnsureResult, Error> {
        self.engine.ensure_service(&test_caller(), request).await
    }

    pub(crate) async fn up(&self, names: &[&str]) -> Result<Vec<EnsureResult>, Error> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let (me, dir, base) = (test_caller(), self.dir(), self.base());
        let result = self.engine.service_up(&me, &dir, &names, &base).await?;
        assert!(result.failures.is_empty(), "{:?}", result.failures);
        Ok(result.services)
    }

    pub(crate) async fn restart(&self, name: &str) -> Result<ServiceInfo, Error> {
        self.engine
            .restart_service(&test_caller(), name, None)
            .await
    }

    pub(crate) async fn why(&self, name: &str) -> Result<Diagnosis, Error> {
        self.engine
            .diagnose_service(&test_caller(), name, None)
            .await
    }

    pub(crate) async fn stop(&self, name: &str) -> ServiceStopped {
        let me = test_caller();
        let stopped = self
            .engine
            .stop_service(&me, name, None, StopRequest::default());
        stopped.await.expect("it stops")
    }

    /// Until something is so.
    pub(crate) async fn wait_until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let mut looks = tokio::time::interval(LOOK);
        let found = tokio::time::timeout(PATIENCE, async {
            while !condition(self) {
                looks.tick().await;
            }
        });
        assert!(found.await.is_ok(), "{what} within {PATIENCE:?}");
    }

    pub(crate) async fn close(self) {
        let all = self.engine.services(&test_caller(), None).expect("a list");
        for info in all.iter().filter(|it| it.is_living()) {
            let force = StopRequest {
                force: true,
                ..StopRequest::default()
            };
            let id = info.execution.as_ref().expect("it lives").id.to_string();
            self.engine
                .stop(&test_caller(), &id, force)
                .await
                .expect("it stops");
        }
        self.engine.shutdown().await;
    }
}

fn directory() -> TempDir {
    TempDir::new().expect("a directory")
}

async fn open(state: &Path, change: impl FnOnce(&mut Settings)) -> Engine {
    let with_python = |settings: &mut Settings| {
        settings.base_env = vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
        change(settings);
    };
    open_engine(state, with_python).await
}

pub(crate) fn named(name: &str, request: ServiceRequest) -> ServiceRequest {
    ServiceRequest {
        name: Some(name.to_owned()),
        ..request
    }
}

pub(crate) fn caller(uid: u32, project: Option<&str>, session: &str) -> Caller {
    Caller {
        owner: Owner {
            principal: Principal::unix(uid),
            project: project.map(str::to_owned),
            session: Some(SessionName(session.to_owned())),
            task: None,
            channel: ostler_model::RequestChannel::Local,
        },
        scope: Scope::Session,
        projects: ostler_model::ProjectView::default(),
    }
}

/// A free port; each test process searches in its own range, outside the kernel's range of
/// ephemeral ports.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let place = u16::try_from(std::process::id() % 900).expect("small") * 10;
    loop {
        let port = 10_000 + place + NEXT.fetch_add(1, Ordering::Relaxed) % 1_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

pub(crate) fn service_error<T: std::fmt::Debug>(result: Result<T, Error>) -> ServiceError {
    match result {
        Err(Error::Service(error)) => error,
        other => panic!("no refusal: {other:?}"),
    }
}
