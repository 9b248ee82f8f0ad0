//! Every route, through the router.

mod output;
mod refused;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request};
use http_body_util::BodyExt;
use ostler_api::{ExecutionBody, OutputFrame, StartBody};
use ostler_http::rest::{REQUEST_BODY_BYTES, RestState, router};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::common::{PATIENCE, ServerFixture, normalize, normalize_text};

struct RestFixture {
    bench: ServerFixture,
    router: Router,
    shutdown: CancellationToken,
}

impl RestFixture {
    async fn new() -> Self {
        let bench = ServerFixture::new().await;
        let shutdown = CancellationToken::new();
        let router = router(RestState::new(bench.engine.clone(), shutdown.clone()));
        Self {
            bench,
            router,
            shutdown,
        }
    }

    async fn raw(&self, method: Method, path: &str, body: impl Into<Body>) -> (u16, Vec<u8>) {
        self.send_from(None, method, path, body).await
    }

    async fn send_from(
        &self,
        session: Option<&str>,
        method: Method,
        path: &str,
        body: impl Into<Body>,
    ) -> (u16, Vec<u8>) {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(session) = session {
            request = request.header("Ostler-Session", session);
        }
        let mut request = request.body(body.into()).unwrap();
        request.extensions_mut().insert(self.bench.caller(None));
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let kind = response.headers().get("content-type").cloned();
        let bytes = timeout(PATIENCE, response.into_body().collect()).await;
        let bytes = bytes.expect("a body in time").unwrap().to_bytes().to_vec();
        if status >= 400 {
            assert_eq!(kind.unwrap(), "application/problem+json");
        }
        (status, bytes)
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        let (status, bytes) = self.raw(Method::GET, path, Body::empty()).await;
        (status, parsed(&bytes))
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        let (status, bytes) = self.raw(Method::POST, path, body.to_string()).await;
        (status, parsed(&bytes))
    }

    async fn start(&self, script: &str, more: Value) -> String {
        let mut body = json!({
            "command": {"argv": {"program": "sh", "args": ["-c", script]}},
            "cwd": self.bench.directory()
        });
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let (status, info) = self.post("/api/v1/executions", body).await;
        assert_eq!(status, 201, "{info}");
        info["id"].as_str().unwrap().to_owned()
    }

    async fn run(&self, script: &str, more: Value) -> String {
        let id = self.start(script, more).await;
        let (status, waited) = self
            .post(&format!("/api/v1/executions/{id}/wait"), json!({}))
            .await;
        assert_eq!((status, &waited["why"]), (200, &json!("exit")), "{waited}");
        id
    }
}

fn parsed(bytes: &[u8]) -> Value {
    if bytes.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(bytes).unwrap_or_else(|_| String::from_utf8_lossy(bytes).into())
}

fn normalized(value: &Value) -> Value {
    let mut value = normalize(value);
    if let Some(items) = value.as_array_mut() {
        items.iter_mut().for_each(|item| *item = normalize(item));
    }
    value
}

#[tokio::test]
async fn health_says_who_answers() {
    let web = RestFixture::new().await;
    let (status, health) = web.get("/api/v1/health").await;
    assert_eq!(status, 200);
    assert_eq!(health["pid"], std::process::id());
    assert_eq!(health["running"], 0);
}

#[tokio::test]
async fn an_execution_from_start_to_removal() {
    let web = RestFixture::new().await;
    let more = json!({"labels": ["a"], "description": "d", "timeout_ms": 60_000});
    let id = web.run("echo out; echo err >&2; exit 7", more).await;
    let (_, info) = web.get(&format!("/api/v1/executions/{id}")).await;
    insta::assert_json_snapshot!("info", normalized(&info));
    let info: ExecutionBody = serde_json::from_value(info).unwrap();
    assert!(info.is_finished());

    let (_, page) = web
        .get(&format!("/api/v1/executions/{id}/output?stream=stderr"))
        .await;
    assert_eq!(page["lines"][0]["text"], "err", "{page}");
    let (_, listed) = web
        .get("/api/v1/executions?label=a&status=failed&limit=1")
        .await;
    assert_eq!(listed["executions"][0]["id"], json!(id));
    let (_, listed) = web.get("/api/v1/executions?label=a&label=b").await;
    assert_eq!(listed["executions"], json!([]));

    let path = format!("/api/v1/executions/{id}");
    assert_eq!(web.raw(Method::DELETE, &path, Body::empty()).await.0, 204);
    assert_eq!(web.get(&path).await.0, 404);
}

#[tokio::test]
async fn input_reaches_a_command_until_it_is_closed() {
    let web = RestFixture::new().await;
    let id = web.start("cat", json!({"stdin": "open"})).await;
    let path = format!("/api/v1/executions/{id}/input");
    let (status, taken) = web.raw(Method::POST, &path, "hello\n").await;
    assert_eq!((status, parsed(&taken)), (200, json!({"taken": 6})));
    let closing = format!("{path}?close=true");
    assert_eq!(web.raw(Method::POST, &closing, Body::empty()).await.0, 200);
    web.post(&format!("/api/v1/executions/{id}/wait"), json!({}))
        .await;
    let (_, page) = web.get(&format!("/api/v1/executions/{id}/output")).await;
    assert_eq!(page["lines"][0]["text"], "hello", "{page}");
}

#[tokio::test]
async fn waits_end_by_pattern_quiet_or_time() {
    let web = RestFixture::new().await;
    let id = web
        .start("echo ready on 80; exec sleep 300", json!({}))
        .await;
    let path = format!("/api/v1/executions/{id}/wait");
    let (_, waited) = web
        .post(&path, json!({"until": "pattern", "pattern": r"on \d+"}))
        .await;
    assert_eq!(
        (&waited["why"], &waited["matched"]["line"]),
        (&json!("pattern"), &json!("ready on 80"))
    );
    let (_, waited) = web
        .post(&path, json!({"until": "idle", "idle_ms": 20}))
        .await;
    assert_eq!(waited["why"], "idle");
    let (_, waited) = web.post(&path, json!({"at_most_ms": 20})).await;
    assert_eq!(
        (&waited["why"], &waited["info"]["status"]),
        (&json!("at_most"), &json!("running"))
    );
    let (status, problem) = web.post(&path, json!({"until": "pattern"})).await;
    assert_eq!((status, &problem["code"]), (422, &json!("value_error")));
    let (status, problem) = web
        .post(&path, json!({"until": "pattern", "pattern": "("}))
        .await;
    assert_eq!(status, 422, "{problem}");
    let (_, gone) = web
        .post(
            &format!("/api/v1/executions/{id}/stop"),
            json!({"force": true}),
        )
        .await;
    assert_eq!(
        (&gone["status"], &gone["signal"]),
        (&json!("terminated"), &json!("SIGKILL"))
    );
}

#[tokio::test]
async fn a_wait_tells_the_prompt() {
    let web = RestFixture::new().await;
    let script = "printf 'Continue? [y/N] '; read x; exec sleep 300";
    let id = web.start(script, json!({"stdin": "open"})).await;
    let path = format!("/api/v1/executions/{id}/wait");
    let (_, waited) = web.post(&path, json!({"until": "prompt"})).await;
    assert_eq!(waited["why"], "prompt", "{waited}");
    let mut prompt = waited["prompt"].clone();
    assert!(prompt["pid"].take().as_u64().is_some(), "{waited}");
    let expected = json!({
        "text": "Continue? [y/N] ",
        "secret": false,
        "kind": "confirmation",
        "options": ["y", "N"],
        "default": "N",
        "pid": null,
    });
    assert_eq!(prompt, expected);
    let (status, problem) = web
        .post(&path, json!({"until": "prompt", "idle_ms": 1}))
        .await;
    assert_eq!((status, &problem["code"]), (422, &json!("value_error")));
    let stop = format!("/api/v1/executions/{id}/stop");
    web.post(&stop, json!({"force": true})).await;
    let (_, waited) = web.post(&path, json!({"until": "prompt"})).await;
    assert_eq!(
        (&waited["why"], waited.get("prompt")),
        (&json!("exit"), None)
    );
}

#[tokio::test]
async fn signals_by_name_and_number() {
    let web = RestFixture::new().await;
    for signal in [json!("TERM"), json!("SIGTERM"), json!(15)] {
        let id = web.start("exec sleep 300", json!({})).await;
        let (status, _) = web
            .post(
                &format!("/api/v1/executions/{id}/signal"),
                json!({"signal": signal}),
            )
            .await;
        assert_eq!(status, 204);
        let (_, waited) = web
            .post(&format!("/api/v1/executions/{id}/wait"), json!({}))
            .await;
        assert_eq!(waited["info"]["signal"], "SIGTERM");
        assert_eq!(waited["info"]["status"], "failed");
    }
}

#[tokio::test]
async fn document_000_has_its_routes() {
    let web = RestFixture::new().await;
    let ended = web
        .run("echo out; echo err >&2", json!({"labels": ["x"]}))
        .await;
    let living = web.start("exec sleep 300", json!({})).await;

    let (_, listed) = web.get("/api/processes?labels=x&status=completed").await;
    assert_eq!(listed[0]["pid"], json!(ended));
    let (_, shown) = web.get(&format!("/api/process/{ended}")).await;
    assert_eq!(
        (&shown["pid"], &shown["exit_code"]),
        (&json!(ended), &json!(0))
    );

    let (_, output) = web.get(&format!("/api/process/{ended}/output")).await;
    assert_eq!(
        (&output["stdout"][0]["text"], &output["stderr"]),
        (&json!("out"), &json!([]))
    );
    assert!(output["stdout"][0]["timestamp"].is_string());
    let path =
        format!("/api/process/{ended}/output?with_stdout=false&with_stderr=true&tail=5&grep=e");
    let (_, output) = web.get(&path).await;
    assert_eq!(
        (&output["stdout"], &output["stderr"][0]["text"]),
        (&json!([]), &json!("err"))
    );

    let (status, refused) = web
        .post(&format!("/api/process/{living}/clean"), json!({}))
        .await;
    assert_eq!(
        (status, &refused["code"]),
        (409, &json!("process_clean_error"))
    );
    let body = json!({"pids": [living, "zzzzzzzz"]});
    let (_, cleaned) = web.post("/api/process/clean_selected", body).await;
    let expected = json!({
        "success": [], "failed": [], "running": [{"pid": living}], "not_found": [{"pid": "zzzzzzzz"}]
    });
    assert_eq!(cleaned, expected);
    let (status, _) = web
        .post("/api/process/clean_selected", json!({"pids": []}))
        .await;
    assert_eq!(status, 422);
    let (_, cleaned) = web.post("/api/process/clean_all", Value::Null).await;
    assert_eq!(cleaned, json!({"count": 1}));
    let (_, cleaned) = web.post("/api/process/clean_all", json!({})).await;
    assert_eq!(cleaned, json!({"count": 0}));

    let body = json!({"force": true, "reason": "over"});
    let (_, stopped) = web.post(&format!("/api/process/{living}/stop"), body).await;
    assert_eq!(
        (&stopped["status"], &stopped["stop_reason"]),
        (&json!("terminated"), &json!("over"))
    );
    let path = format!("/api/process/{living}/output");
    assert_eq!(web.raw(Method::DELETE, &path, Body::empty()).await.0, 200);
    let (status, body) = web
        .post(&format!("/api/process/{living}/clean"), json!({}))
        .await;
    assert_eq!((status, &body["result"]), (200, &json!("success")));
}

#[tokio::test]
async fn a_waiting_client_is_informed_of_the_shutdown() {
    let web = RestFixture::new().await;
    let id = web.start("echo first; exec sleep 300", json!({})).await;
    let path = format!("/api/v1/executions/{id}");
    web.post(
        &format!("{path}/wait"),
        json!({"until": "pattern", "pattern": "first"}),
    )
    .await;
    web.shutdown.cancel();
    let (status, problem) = web.post(&format!("{path}/wait"), json!({})).await;
    assert_eq!(
        (status, &problem["retryable"]),
        (503, &json!(true)),
        "{problem}"
    );
    let following = format!("{path}/raw?follow=true");
    let (_, bytes) = web.raw(Method::GET, &following, Body::empty()).await;
    let lines: Vec<&[u8]> = bytes
        .split(|&b| b == b'\n')
        .filter(|l| !l.is_empty())
        .collect();
    let frames: Vec<OutputFrame> = lines
        .iter()
        .map(|l| serde_json::from_slice(l).unwrap())
        .collect();
    assert!(
        matches!(
            frames[..],
            [OutputFrame::Data { .. }, OutputFrame::Problem { .. }]
        ),
        "{frames:?}"
    );
    web.post(&format!("{path}/stop"), json!({"force": true}))
        .await;
}

#[tokio::test]
async fn shutdown_is_requested_by_post() {
    let web = RestFixture::new().await;
    assert_eq!(web.post("/api/v1/shutdown", json!({})).await.0, 202);
    assert!(web.shutdown.is_cancelled());
}

#[tokio::test]
async fn a_tree_is_paused_looked_at_and_goes_on() {
    let web = RestFixture::new().await;
    let more = json!({"limits": {"pids": 64}, "stdin": "open"});
    let id = web.start("read line; echo $line", more).await;
    let at = |what: &str| format!("/api/v1/executions/{id}/{what}");
    let (status, paused) = web.post(&at("pause"), json!({})).await;
    assert_eq!((status, &paused["paused"]), (200, &json!(true)), "{paused}");
    let (status, uses) = web.get(&at("resources")).await;
    assert_eq!(status, 200, "{uses}");
    assert_eq!(uses["limits"]["pids"], 64);
    assert!(!uses["processes"].as_array().unwrap().is_empty(), "{uses}");
    let (status, resumed) = web.post(&at("resume"), json!({})).await;
    assert_eq!(
        (status, &resumed["paused"]),
        (200, &json!(false)),
        "{resumed}"
    );
    let (status, page) = web.get(&at("network?limit=5")).await;
    assert_eq!(status, 200);
    assert_eq!(page, json!({"decisions": [], "next": 0, "more": false}));
    let (status, problem) = web.get(&at("network?limit=0")).await;
    assert_eq!(status, 422, "{problem}");
    web.post(&at("stop"), json!({"force": true})).await;
    let (status, uses) = web.get(&at("resources")).await;
    assert_eq!((status, &uses["processes"]), (200, &json!([])));
    for what in ["pause", "resume"] {
        let path = format!("/api/v1/executions/zzzzzzzz/{what}");
        let (status, problem) = web.post(&path, json!({})).await;
        assert_eq!(status, 404, "{what}: {problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_under_a_chosen_id_is_answered_again() {
    let web = RestFixture::new().await;
    let minted = ostler_model::ExecutionId::mint();
    let id = minted.to_string();
    for _ in 0..2 {
        let more = json!({"id": id, "stdin": "open"});
        assert_eq!(web.start("read x", more).await, minted.short());
    }
    let (_, list) = web.get("/api/v1/executions").await;
    assert_eq!(list["executions"].as_array().unwrap().len(), 1);
    let shell = json!({"id": id, "kind": "bash", "cwd": web.bench.directory()});
    let (status, answer) = web.post("/api/v1/shells", shell).await;
    assert_eq!((status, &answer["uuid"]), (201, &json!(id)));
    let body = |id: &str| {
        json!({
            "command": {"argv": {"program": "true", "args": []}}, "cwd": "/", "id": id
        })
    };
    for bad in ["00000000-0000-0000-0000-000000000000", "mine", ""] {
        let (status, problem) = web.post("/api/v1/executions", body(bad)).await;
        assert_eq!(problem["code"], "value_error", "{status} {problem}");
    }
    let path = format!("/api/v1/executions/{id}/stop");
    let (status, stopped) = web.post(&path, json!({"force": true})).await;
    assert_eq!(status, 200, "{stopped}");
}
