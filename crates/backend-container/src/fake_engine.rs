//! A container engine for tests: the API on a unix socket, containers without processes. The socket
//! of an init is made by this process, whose pid is that of all containers.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use ostler_sys::seqpacket;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::EngineDiscovery;

/// The version of the API that it offers: that of Docker 20.10.
pub(crate) const API: &str = "1.41";
/// How long a test waits.
const WAIT_LIMIT: Duration = Duration::from_secs(10);
/// The image that it has.
pub(crate) const IMAGE: &str = "busybox";

/// What it does with a request instead of what an engine does.
#[derive(Debug, Clone)]
pub(crate) enum EngineFault {
    /// Refuses with this status and message.
    Refuse(u16, &'static str),
    /// Never answers.
    Hang,
    /// Answers with something that is no JSON.
    Garbage,
}

/// A container.
#[derive(Debug)]
pub(crate) struct FakeContainer {
    /// Its configuration, as it was sent.
    pub(crate) config: Value,
    /// `created`, `running`, `paused` or `exited`.
    pub(crate) status: &'static str,
    /// Its health.
    pub(crate) health: &'static str,
    init: Option<OwnedFd>,
}

impl FakeContainer {
    /// Its init accepts nothing any more; its socket stays.
    pub(crate) fn stop_listening(&mut self) {
        self.init = None;
    }
}

#[derive(Debug, Default)]
pub(crate) struct EngineState {
    /// The containers, by name.
    pub(crate) containers: BTreeMap<String, FakeContainer>,
    /// What goes wrong, by method and the end of the path.
    pub(crate) faults: Vec<(Method, &'static str, EngineFault)>,
    /// What was requested: method, path without version.
    pub(crate) requests: Vec<String>,
    /// The versions that were in paths.
    pub(crate) versions: Vec<String>,
    /// Whether inits make their sockets.
    pub(crate) inits_fail: bool,
    /// The id of its image.
    pub(crate) image_id: String,
}

/// The engine.
#[derive(Debug)]
pub(crate) struct FakeEngine {
    directory: tempfile::TempDir,
    /// What it has and does.
    pub(crate) state: Arc<Mutex<EngineState>>,
    server: JoinSet<()>,
    /// Changes after each request.
    answered: watch::Sender<()>,
}

impl FakeEngine {
    /// One that listens.
    pub(crate) fn start() -> Self {
        let mut engine = Self {
            directory: tempfile::tempdir().expect("a directory"),
            state: Arc::default(),
            server: JoinSet::new(),
            answered: watch::Sender::new(()),
        };
        engine.state.lock().image_id = "sha256:1".to_owned();
        engine.listen();
        engine
    }

    /// Listens again.
    pub(crate) fn listen(&mut self) {
        let _absent = std::fs::remove_file(self.socket());
        let listener = UnixListener::bind(self.socket()).expect("bound");
        let (state, answered) = (Arc::clone(&self.state), self.answered.clone());
        self.server.spawn(serve(listener, state, answered));
    }

    /// Waits until this is so; it is looked at after each request.
    pub(crate) async fn until(&self, holds: impl Fn(&EngineState) -> bool) {
        let mut answered = self.answered.subscribe();
        let wait = async {
            while !holds(&self.state.lock()) {
                answered.changed().await.expect("the engine is there");
            }
        };
        let waited = tokio::time::timeout(WAIT_LIMIT, wait).await;
        assert!(waited.is_ok(), "{:?}", self.state.lock());
    }

    /// Ends it; what it has stays.
    pub(crate) async fn stop(&mut self) {
        self.server.shutdown().await;
    }

    /// Its socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("engine.sock")
    }

    /// How it is found.
    pub(crate) fn discovery(&self) -> EngineDiscovery {
        EngineDiscovery {
            configured: Some(self.socket().display().to_string()),
            ..EngineDiscovery::default()
        }
    }

    /// What goes wrong from now on.
    pub(crate) fn fail(&self, method: Method, path_end: &'static str, fault: EngineFault) {
        self.state.lock().faults.push((method, path_end, fault));
    }

    /// Nothing goes wrong any more.
    pub(crate) fn repair(&self) {
        self.state.lock().faults.clear();
    }

    /// The names of its containers.
    pub(crate) fn names(&self) -> Vec<String> {
        self.state.lock().containers.keys().cloned().collect()
    }

    /// How many requests of this method had a path with this end.
    pub(crate) fn count(&self, method: &Method, path_end: &str) -> usize {
        let state = self.state.lock();
        let requests = state.requests.iter();
        requests
            .filter(|it| it.starts_with(method.as_str()) && it.ends_with(path_end))
            .count()
    }

    /// Changes all containers.
    pub(crate) fn change(&self, change: impl Fn(&mut FakeContainer)) {
        self.state.lock().containers.values_mut().for_each(change);
    }
}

async fn serve(
    listener: UnixListener,
    state: Arc<Mutex<EngineState>>,
    answered: watch::Sender<()>,
) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (state, answered) = (Arc::clone(&state), answered.clone());
        let service = service_fn(move |request| {
            let (state, answered) = (Arc::clone(&state), answered.clone());
            async move {
                let response = handle(state, request).await;
                answered.send_replace(());
                response
            }
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        connections.spawn(async move {
            let _closed = connection.await.is_err();
        });
    }
}

async fn handle(
    state: Arc<Mutex<EngineState>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let (version, path) = without_version(&path);
    let fault = {
        let mut state = state.lock();
        state.requests.push(format!("{} {path}", parts.method));
        state.versions.extend(version.map(str::to_owned));
        let mut faults = state.faults.iter();
        let found = faults.find(|(method, end, _)| *method == parts.method && path.ends_with(end));
        found.map(|(_, _, fault)| fault.clone())
    };
    match fault {
        Some(EngineFault::Hang) => std::future::pending().await,
        Some(EngineFault::Garbage) => return Ok(Response::new(Full::from("<html>"))),
        Some(EngineFault::Refuse(status, message)) => {
            return Ok(answer(status, &json!({ "message": message })));
        }
        None => {}
    }
    let body = body.collect().await.expect("a body").to_bytes();
    let query = parts.uri.query().unwrap_or_default();
    let (status, value) = respond(&mut state.lock(), &parts.method, path, query, &body);
    Ok(answer(status, &value))
}

fn without_version(path: &str) -> (Option<&str>, &str) {
    let rest = path
        .strip_prefix("/v")
        .and_then(|rest| rest.split_once('/'));
    match rest {
        Some((version, _)) if version.contains('.') => {
            (Some(version), &path[version.len() + "/v".len()..])
        }
        _ => (None, path),
    }
}

fn answer(status: u16, value: &Value) -> Response<Full<Bytes>> {
    let body = if value.is_null() {
        Bytes::new()
    } else {
        Bytes::from(value.to_string())
    };
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = StatusCode::from_u16(status).expect("a status");
    response
}

fn respond(
    state: &mut EngineState,
    method: &Method,
    path: &str,
    query: &str,
    body: &[u8],
) -> (u16, Value) {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match (method.as_str(), parts.as_slice()) {
        ("GET", ["version"]) => (200, json!({ "Version": "20.10.24", "ApiVersion": API })),
        ("GET", ["info"]) => (200, info()),
        ("GET", ["images", IMAGE, "json"]) => (
            200,
            json!({ "Id": state.image_id, "Config": { "User": "1000" } }),
        ),
        ("GET", ["networks", "web"]) => (200, json!({ "Name": "web" })),
        ("GET", ["containers", "json"]) => (200, list(state, query)),
        ("POST", ["containers", "create"]) => create(state, query, body),
        ("POST", ["containers", name, "start"]) => start(state, name),
        ("GET", ["containers", name, "json"]) => inspect(state, name),
        // Another request removes it meanwhile.
        ("POST", ["containers", name, "wait"]) => match state.containers.remove(*name) {
            Some(_) => (200, json!({ "StatusCode": 137 })),
            None => missing(path),
        },
        ("DELETE", ["containers", name]) => match state.containers.remove(*name) {
            Some(_) => (204, Value::Null),
            None => missing(path),
        },
        _ => missing(path),
    }
}

fn missing(path: &str) -> (u16, Value) {
    (404, json!({ "message": format!("no such thing: {path}") }))
}

fn info() -> Value {
    json!({
        "Driver": "overlay2",
        "DriverStatus": [["Backing Filesystem", "extfs"]],
        "CgroupDriver": "cgroupfs",
        "CgroupVersion": "1",
        "MemoryLimit": true,
        "SwapLimit": true,
        "CpuCfsQuota": true,
        "PidsLimit": true,
        "SecurityOptions": ["name=seccomp,profile=default"],
    })
}

/// The containers with the label of the query, which the client writes as it is compared here.
fn list(state: &EngineState, query: &str) -> Value {
    let containers = state.containers.iter().filter(|(_, container)| {
        let labels = container.config["Labels"].as_object();
        let label = labels.and_then(|labels| labels["dev.ostler.state"].as_str());
        label.is_some_and(|label| query.contains(&label.replace(':', "%3A")))
    });
    let listed = containers.map(|(name, container)| {
        json!({ "Id": name, "Names": [format!("/{name}")], "Labels": container.config["Labels"] })
    });
    Value::Array(listed.collect())
}

fn create(state: &mut EngineState, query: &str, body: &[u8]) -> (u16, Value) {
    let name = query.split('&').find_map(|it| it.strip_prefix("name="));
    let name = name.expect("a name").to_owned();
    let container = FakeContainer {
        config: serde_json::from_slice(body).expect("JSON"),
        status: "created",
        health: "none",
        init: None,
    };
    state.containers.insert(name.clone(), container);
    (201, json!({ "Id": name, "Warnings": [] }))
}

fn start(state: &mut EngineState, name: &str) -> (u16, Value) {
    let inits_fail = state.inits_fail;
    let Some(container) = state.containers.get_mut(name) else {
        return missing(name);
    };
    if inits_fail {
        container.status = "exited";
        return (204, Value::Null);
    }
    container.status = "running";
    let mounts = container.config["HostConfig"]["Mounts"].as_array();
    let mut mounts = mounts.into_iter().flatten();
    let directory = mounts.find(|it| it["Target"] == "/run/ostler");
    let directory = directory.and_then(|it| it["Source"].as_str());
    container.init = Some(listen(Path::new(directory.expect("mounted"))));
    (204, Value::Null)
}

/// Makes the socket of an init.
fn listen(directory: &Path) -> OwnedFd {
    let directory = File::open(directory).expect("there");
    seqpacket::listen(directory.as_fd(), "init.sock", 8).expect("bound")
}

fn inspect(state: &EngineState, name: &str) -> (u16, Value) {
    let Some(container) = state.containers.get(name) else {
        return missing(name);
    };
    let status = container.status;
    let lives = status == "running" || status == "paused";
    let pid = if lives { std::process::id() } else { 0 };
    let state = json!({
        "Status": status,
        "Running": lives,
        "Paused": status == "paused",
        "Pid": pid,
        "ExitCode": i32::from(!lives),
        "Health": { "Status": container.health },
    });
    (
        200,
        json!({ "Id": name, "State": state, "Image": "sha256:1" }),
    )
}
