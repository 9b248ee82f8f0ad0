//! Services over REST, with a real server.

use std::net::TcpListener;

use crate::common::{PATIENCE, ServerFixture};
use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request};
use http_body_util::BodyExt;
use ostler_http::rest::{RestState, router};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// Longer than a server takes to start here, in milliseconds.
const WAIT_MS: u64 = 30_000;

struct HttpFixture {
    bench: ServerFixture,
    router: Router,
}

impl HttpFixture {
    async fn new() -> Self {
        let bench = ServerFixture::new().await;
        let state = RestState::new(bench.engine.clone(), CancellationToken::new());
        let router = router(state);
        Self { bench, router }
    }

    async fn ask(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let body = match body.is_null() {
            true => Body::empty(),
            false => body.to_string().into(),
        };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .body(body)
            .unwrap();
        request.extensions_mut().insert(self.bench.caller(None));
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = timeout(PATIENCE, response.into_body().collect()).await;
        let bytes = bytes.expect("a body in time").unwrap().to_bytes();
        let body = match bytes.is_empty() {
            true => Value::Null,
            false => serde_json::from_slice(&bytes).unwrap(),
        };
        (status, body)
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.ask(Method::GET, path, Value::Null).await
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.ask(Method::POST, path, body).await
    }

    /// The body that starts this script.
    fn body(&self, argv: &[&str], more: Value) -> Value {
        let mut body = json!({
            "command": {"argv": {"program": argv[0], "args": &argv[1..]}},
            "cwd": self.bench.directory(),
            "base_env": [["PATH", std::env::var("PATH").unwrap()]],
        });
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        body
    }

    /// A web server on this port.
    fn server(&self, port: u16, more: Value) -> Value {
        let port = port.to_string();
        let argv = ["python3", "-m", "http.server", "--bind", "127.0.0.1", &port];
        self.body(&argv, more)
    }
}

/// A port without a listener.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[tokio::test]
async fn a_server_is_started_waited_for_listed_and_stopped() {
    let web = HttpFixture::new().await;
    let port = free_port();
    let body = web.server(port, json!({"name": "files", "wait_ms": WAIT_MS}));
    let (status, start_response) = web.post("/api/v1/services", body).await;
    assert_eq!(status, 201, "{start_response}");
    assert_eq!(start_response["waited"]["why"], "ready", "{start_response}");
    let service = &start_response["service"];
    assert_eq!(service["name"], "files");
    assert_eq!(service["status"], "ready");
    let info = &service["execution"];
    let state = &info["service"];
    assert_eq!(state["ports"][0]["port"], port, "{state}");
    assert_eq!(state["ports"][0]["main"], true);
    let url = state["url"].as_str().unwrap();
    assert!(url.contains(&format!(":{port}")), "{url}");
    let message = start_response["message"].as_str().unwrap();
    let words = format!(
        "Service started with ID: {}. Status: ready. The service is running in the background.\n\
         URL: {url}\nPorts: {port} (python3",
        info["id"].as_str().unwrap()
    );
    assert!(message.starts_with(&words), "{message}");
    assert!(state["signs"].as_array().unwrap().len() > 1, "{state}");

    let (_, list) = web.get("/api/v1/services").await;
    assert_eq!(list["services"][0]["name"], "files", "{list}");
    let (status, shown) = web.get("/api/v1/services/files").await;
    assert_eq!((status, &shown["living"]), (200, &json!(true)), "{shown}");
    let (status, by_id) = web
        .get(&format!(
            "/api/v1/services/{}",
            info["id"].as_str().unwrap()
        ))
        .await;
    assert_eq!((status, &by_id["name"]), (200, &json!("files")), "{by_id}");
    let (status, why) = web.get("/api/v1/services/files/why").await;
    assert_eq!((status, &why["status"]), (200, &json!("ready")), "{why}");

    let path = format!("/api/v1/executions/{}/wait", info["id"].as_str().unwrap());
    let (_, waited) = web.post(&path, json!({"until": "ready"})).await;
    assert_eq!(waited["why"], "ready", "{waited}");

    let body = web.server(port, json!({"name": "files", "wait_ms": WAIT_MS}));
    let (status, again) = web.post("/api/v1/services/ensure", body).await;
    assert_eq!((status, &again["reused"]), (200, &json!(true)), "{again}");
    assert_eq!(again["service"]["execution"]["id"], info["id"]);

    let (status, stopped) = web.post("/api/v1/services/files/stop", json!({})).await;
    assert_eq!(status, 200, "{stopped}");
    assert_eq!(stopped["released"], json!([port]));
    assert_eq!(stopped["service"]["status"], "stopped");
    TcpListener::bind(("127.0.0.1", port)).unwrap();
}

#[tokio::test]
async fn a_server_that_dies_is_reported_at_once() {
    let web = HttpFixture::new().await;
    let body = web.body(
        &["sh", "-c", "echo cannot go on >&2; exit 3"],
        json!({"name": "bad", "ready_when": "listening", "wait_ms": WAIT_MS}),
    );
    let (status, start_response) = web.post("/api/v1/services", body).await;
    assert_eq!(status, 201, "{start_response}");
    let message = start_response["message"].as_str().unwrap();
    assert!(
        message.starts_with("Service failed to become ready: ") && message.contains('3'),
        "{message}"
    );
    assert_eq!(
        start_response["service"]["status"], "failed",
        "{start_response}"
    );
}

#[tokio::test]
async fn a_wait_that_takes_too_long_leaves_it_running() {
    let web = HttpFixture::new().await;
    let body = web.body(
        &["sleep", "300"],
        json!({"name": "slow", "ready_when": "listening", "wait_ms": 300}),
    );
    let (_, start_response) = web.post("/api/v1/services", body).await;
    assert_eq!(
        start_response["waited"]["why"], "at_most",
        "{start_response}"
    );
    let message = start_response["message"].as_str().unwrap();
    assert!(
        message.starts_with(
            "Service failed to become ready: not ready within 300ms\nIt is still running: ID "
        ),
        "{message}"
    );
    assert!(message.contains("; it waits for a port"), "{message}");
    assert_eq!(start_response["service"]["living"], true);
    let (status, _) = web
        .post("/api/v1/services/slow/stop", json!({"force": true}))
        .await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn definitions_are_kept_started_by_name_and_forgotten() {
    let web = HttpFixture::new().await;
    let port = free_port();
    let (status, expected) = web
        .ask(
            Method::PUT,
            "/api/v1/services/files",
            web.server(port, json!({})),
        )
        .await;
    assert_eq!((status, &expected), (204, &Value::Null));
    let (_, shown) = web.get("/api/v1/services/files").await;
    assert_eq!(shown["defined_in"], "api", "{shown}");
    assert_eq!(
        (&shown["status"], &shown["execution"]),
        (&json!("stopped"), &Value::Null)
    );

    let up = json!({
        "cwd": web.bench.directory(),
        "names": ["files"],
        "base_env": [["PATH", std::env::var("PATH").unwrap()]],
        "wait_ms": WAIT_MS,
    });
    let (status, upped) = web.post("/api/v1/services/up", up).await;
    assert_eq!(status, 200, "{upped}");
    assert_eq!(upped["services"][0]["waited"]["why"], "ready", "{upped}");
    let (status, _) = web
        .ask(Method::DELETE, "/api/v1/services/files", Value::Null)
        .await;
    assert_eq!(status, 204);
    let (_, shown) = web.get("/api/v1/services/files").await;
    assert_eq!(shown["living"], true, "{shown}");
    let again = web.ask(Method::DELETE, "/api/v1/services/files", Value::Null);
    assert_eq!(again.await.0, 404);
    let (status, _) = web.post("/api/v1/services/files/stop", json!({})).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn what_cannot_be_is_a_problem_that_says_what_is_allowed() {
    let web = HttpFixture::new().await;
    let (status, unknown) = web.get("/api/v1/services/nobody").await;
    assert_eq!(
        (status, &unknown["code"]),
        (404, &json!("process_not_found")),
        "{unknown}"
    );
    for path in [
        "/api/v1/services/nobody/stop",
        "/api/v1/services/nobody/restart",
    ] {
        let (status, _) = web.post(path, Value::Null).await;
        assert_eq!(status, 404, "{path}");
    }
    let (status, relative) = web.get("/api/v1/services?cwd=here").await;
    assert_eq!(status, 422);
    let message = relative["message"].as_str().unwrap();
    assert!(
        message.contains("allowed: an absolute directory"),
        "{message}"
    );
    for (more, expected) in [
        (
            json!({"port": 70_000}),
            "field 'port': allowed: a port from 1 to 65535, or auto",
        ),
        (json!({"ready_when": "soon"}), "field 'ready_when'"),
        (json!({"nmae": "x"}), "unknown field `nmae`"),
        (json!({"name": "Not A Name"}), "Not A Name"),
        (json!({"ready_pattern": "("}), "("),
    ] {
        let body = web.body(&["true"], more);
        let (status, problem) = web.post("/api/v1/services", body).await;
        assert_eq!(status, 422, "{problem}");
        let message = problem["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message}");
    }
    let mismatch = web.body(&["true"], json!({"name": "a"}));
    let (status, _) = web.ask(Method::PUT, "/api/v1/services/b", mismatch).await;
    assert_eq!(status, 422);
    std::fs::write(
        web.bench.work.path().join("ostler.toml"),
        "[services.web]\ncomand = \"true\"\n",
    )
    .unwrap();
    let up = json!({"cwd": web.bench.directory()});
    let (status, problem) = web.post("/api/v1/services/up", up).await;
    assert_eq!(status, 422, "{problem}");
    let message = problem["message"].as_str().unwrap();
    assert!(message.contains("ostler.toml: line 2"), "{message}");
    assert!(message.contains("command"), "{message}");
}

#[tokio::test]
async fn a_command_is_recognised_without_being_started() {
    let web = HttpFixture::new().await;
    let (status, found) = web
        .post("/api/v1/detect", web.server(8_123, json!({})))
        .await;
    assert_eq!(status, 200, "{found}");
    let service = &found["service"];
    assert_eq!(
        (&service["port"], &service["kind"]),
        (&json!(8_123), &json!("server")),
        "{found}"
    );
    let (_, none) = web
        .post("/api/v1/detect", web.body(&["ls"], json!({})))
        .await;
    assert_eq!(none, json!({"service": null}));
    let (_, list) = web.get("/api/v1/executions").await;
    assert_eq!(list, json!({"executions": [], "total": 0}));
}

#[tokio::test]
async fn a_start_may_leave_it_to_the_table() {
    let web = HttpFixture::new().await;
    let body = web.server(free_port(), json!({"service": "auto"}));
    let (status, info) = web.post("/api/v1/executions", body).await;
    assert_eq!(
        (status, &info["service"]["automatic"]),
        (201, &json!(true)),
        "{info}"
    );
    let path = format!("/api/v1/executions/{}", info["id"].as_str().unwrap());
    let wait = json!({"until": "ready", "at_most_ms": WAIT_MS});
    let (_, waited) = web.post(&format!("{path}/wait"), wait).await;
    assert_eq!(waited["why"], "ready", "{waited}");
    web.post(&format!("{path}/stop"), json!({"force": true}))
        .await;
    let body = web.body(&["true"], json!({"service": "auto"}));
    let (status, info) = web.post("/api/v1/executions", body).await;
    assert_eq!((status, &info["service"]), (201, &Value::Null), "{info}");
}

#[tokio::test]
async fn names_hold_within_the_workspace_of_the_directory_that_is_given() {
    let web = HttpFixture::new().await;
    let root = std::path::PathBuf::from(web.bench.directory());
    for name in ["a", "b"] {
        std::fs::create_dir(root.join(name)).unwrap();
        let toml = "[services.web]\ncommand = \"exec sleep 300\"\n";
        std::fs::write(root.join(name).join("ostler.toml"), toml).unwrap();
        let cwd = root.join(name);
        let up = json!({"cwd": cwd, "base_env": [["PATH", std::env::var("PATH").unwrap()]]});
        let (status, upped) = web.post("/api/v1/services/up", up).await;
        assert_eq!(status, 200, "{upped}");
    }
    let at = |name: &str, rest: &str| {
        let dir = root.join(name).display().to_string();
        format!("/api/v1/services{rest}?cwd={dir}")
    };
    let (_, listed) = web.get(&at("a", "")).await;
    assert_eq!(
        (&listed["total"], &listed["elsewhere"]),
        (&json!(1), &json!(1)),
        "{listed}"
    );
    let file = root.join("a/ostler.toml").canonicalize().unwrap();
    assert_eq!(listed["services"][0]["workspace"], json!(file), "{listed}");
    let (_, all) = web.get("/api/v1/services").await;
    assert_eq!(all["total"], 2, "{all}");
    // Without a directory the name is ambiguous.
    let (status, several) = web.post("/api/v1/services/web/stop", json!({})).await;
    assert_eq!(status, 422, "{several}");
    let (status, elsewhere) = web.post(&at(".", "/web/stop"), json!({})).await;
    assert_eq!(status, 404, "{elsewhere}");
    assert!(
        elsewhere.to_string().contains("in another workspace: "),
        "{elsewhere}"
    );
    let (status, stopped) = web.post(&at("a", "/web/stop"), json!({})).await;
    assert_eq!(status, 200, "{stopped}");
    let (_, left) = web.get(&at("b", "/web")).await;
    assert_eq!(left["living"], true, "{left}");
    let (status, again) = web.post(&at("b", "/web/restart"), Value::Null).await;
    assert_eq!((status, &again["living"]), (200, &json!(true)), "{again}");
    let (_, gone) = web.get(&at("a", "/web")).await;
    assert_eq!(gone["living"], false, "{gone}");
    let (status, _) = web.post(&at("b", "/web/stop"), json!({})).await;
    assert_eq!(status, 200);
}
