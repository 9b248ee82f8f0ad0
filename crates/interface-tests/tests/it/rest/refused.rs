//! Invalid requests, and unauthorised callers.

use super::*;

/// Invalid requests.
const BAD_REQUESTS: &str = r#"
GET /api/v1/executions?state=running
GET /api/v1/executions?limit=0
GET /api/v1/executions?limit=99999999999999999999
GET /api/v1/executions/nonsense
GET /api/v1/executions/zzzzzzzz
GET /api/v1/executions/{id}/output?cursor=here
GET /api/v1/executions/{id}/output?stream=stdboth
GET /api/v1/executions/{id}/output?grep=%28
GET /api/v1/executions/{id}/export
GET /api/v1/executions/{id}/report?limit=10001
GET /api/process/{id}/output?tail=-1&since=then
GET /api/process/{id}?verbose=1
GET /api/v1/executions/%ff
GET /api/v2/nothing
GET /api/v1/shutdown
POST /api/v1/executions {}
POST /api/v1/executions {"command": {"argv": {"program": "ls", "args": []}}, "cwd": "{dir}", "shell": true}
POST /api/v1/executions {"command": {"argv": {"program": "ls", "args": []}}, "cwd": "{dir}", "timeout_ms": -1}
POST /api/v1/executions {"command": {"argv": {"program": "ls", "args": []}}, "cwd": "{dir}", "labels": [1]}
POST /api/v1/executions {"command": {"argv": {"program": "ls", "args": []}}, "cwd": "relative"}
POST /api/v1/executions {"command": {"argv": {"program": "ls", "args": [], "cwd": "/"}}, "cwd": "{dir}"}
POST /api/v1/executions {"command": {"argv": {"program": "ls", "args": []}}, "cwd": "{dir}", "limits": {"memory": 1}}
POST /api/v1/executions {"command": {"argv": {"program": "ls", "args": []}}, "cwd": "{dir}", "timeout_ms": 18446744073709551615}
POST /api/v1/executions {"command": {"argv": {"program": "ls", "args": []}}, "cwd": "{dir}", "retention": {"for_ms": 18446744073709551615}}
POST /api/v1/executions/zzzzzzzz/stop {"graceful": true}
POST /api/v1/executions/zzzzzzzz/signal {"signal": "NOPE"}
POST /api/v1/executions/zzzzzzzz/signal {}
POST /api/process/clean_selected []
"#;

#[tokio::test]
async fn bad_requests_are_problems_that_say_what_is_allowed() {
    let web = RestFixture::new().await;
    let id = web.run("true", json!({})).await;
    let dir = web.bench.directory();
    let mut reply = String::new();
    for line in BAD_REQUESTS.trim().lines() {
        let line = line.replace("{id}", &id).replace("{dir}", &dir);
        let (method, rest) = line.split_once(' ').unwrap();
        let (path, body) = rest.split_once(' ').unwrap_or((rest, ""));
        let method: Method = method.parse().unwrap();
        let (status, problem) = web.raw(method, path, body.to_owned()).await;
        let problem = parsed(&problem);
        let said = format!("{line}\n{status} {problem}\n").replace(&dir, "[directory]");
        reply.push_str(&normalize_text(&said).replace(&id, "[id]"));
    }
    insta::assert_snapshot!(reply);
    let more = json!({"at_most_ms": u64::MAX});
    assert_eq!(
        web.post(&format!("/api/v1/executions/{id}/wait"), more)
            .await
            .0,
        200
    );
    let (status, _) = web.raw(Method::POST, "/api/v1/executions", "{").await;
    assert_eq!(status, 422);
    let huge = vec![b' '; REQUEST_BODY_BYTES + 1];
    assert_eq!(
        web.raw(Method::POST, "/api/v1/executions", huge).await.0,
        413
    );
    assert!(!web.shutdown.is_cancelled());
}

#[tokio::test]
async fn the_session_header_narrows_what_is_seen() {
    let web = RestFixture::new().await;
    let body = json!(StartBody::new(
        ostler_model::Command::Argv {
            program: "true".into(),
            args: Vec::new()
        },
        web.bench.directory(),
    ));
    let start = web.send_from(
        Some("mine"),
        Method::POST,
        "/api/v1/executions",
        body.to_string(),
    );
    let (status, info) = start.await;
    assert_eq!(status, 201);
    let path = format!(
        "/api/v1/executions/{}",
        parsed(&info)["id"].as_str().unwrap()
    );
    let get = async |session| {
        web.send_from(session, Method::GET, &path, Body::empty())
            .await
            .0
    };
    assert_eq!(
        (
            get(Some("mine")).await,
            get(Some("other")).await,
            get(None).await
        ),
        (200, 404, 200)
    );
    assert_eq!(get(Some("not a name")).await, 422);
}

#[tokio::test]
async fn a_connection_without_identity_is_refused() {
    let web = RestFixture::new().await;
    let request = Request::get("/api/v1/health").body(Body::empty()).unwrap();
    let response = web.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 403);
}

#[tokio::test]
async fn huge_waits_and_graces_are_taken_as_long_ones() {
    let web = RestFixture::new().await;
    let id = web.start("exec sleep 300", json!({})).await;
    let path = format!("/api/v1/executions/{id}");
    let (wait, stop) = (format!("{path}/wait"), format!("{path}/stop"));
    let waiting = web.post(&wait, json!({"at_most_ms": u64::MAX}));
    let stopping = web.post(&stop, json!({"grace_ms": u64::MAX}));
    let ((_, waited), (status, _)) = tokio::join!(waiting, stopping);
    assert_eq!((&waited["why"], status), (&json!("exit"), 200), "{waited}");
}

#[tokio::test]
async fn isolation_options_are_strict() {
    let web = RestFixture::new().await;
    let directory = web.bench.directory();
    let mut reply = Vec::new();
    for more in [
        json!({"confine": {"netwrk": "none"}}),
        json!({"confine": {"network": ["full", "a.example"]}}),
        json!({"confine": {"network": "none"}, "isolation": "tall"}),
        json!({"confine": {"allow_degraded": ["moat"]}}),
        json!({"confine": {"overlay": 1}}),
        json!({"confine": {"read": "here"}}),
        json!({"confine": {"overlay": true}}),
        json!({"secrets": ["NOBODY_HAS_IT"]}),
        json!({"secrets": "A"}),
        json!({"limits": {"disk": 1}}),
    ] {
        let mut body = json!({
            "command": {"argv": {"program": "true", "args": []}},
            "cwd": directory
        });
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let (status, problem) = web.post("/api/v1/executions", body).await;
        let message = problem["message"].as_str().unwrap_or_default().to_owned();
        reply.push(format!("{more}\n  {status} {message}"));
    }
    insta::assert_snapshot!(reply.join("\n"));
}
