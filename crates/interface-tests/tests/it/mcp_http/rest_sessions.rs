//! Sessions that requests to REST name: use, ends and limits.

use super::*;
use crate::socket::TestWebSocket;
use crate::web::HttpTestResponse;

const SESSION: &str = "ostler-session";
const API: &str = "/api/v1/executions";
/// How long a session is kept without a request.
const IDLE: Duration = Duration::from_secs(1);
/// The most sessions of one principal.
const SESSIONS_PER_PRINCIPAL: usize = 256;

/// A client of REST in a session, as is what it starts.
struct RestSession(HttpTestClient);

impl RestSession {
    fn new(web: &HttpFixture, name: &str) -> Self {
        Self(web.agent(&web.token).at(API).with(SESSION, name))
    }

    /// Uses the session until the stream is dropped.
    async fn hold(&self) -> HttpTestResponse {
        let stream = self.0.at("/api/v1/events").get().await;
        assert_eq!(stream.status, 200);
        stream
    }

    async fn start(&self, script: &str, more: Value) -> String {
        let mut body = json!({
            "command": {"argv": {"program": "sh", "args": ["-c", script]}}, "cwd": self.0.directory,
        });
        let fields = more.as_object().cloned().unwrap_or_default();
        body.as_object_mut().unwrap().extend(fields);
        let answer = self.0.post(&body).await;
        assert_eq!(answer.status, 201);
        answer.json().await["id"].as_str().unwrap().to_owned()
    }
}

/// Begins a session after all others were used, and waits until it ended for idleness.
async fn await_idle_end(web: &HttpFixture, name: &str) {
    let pipe = PidPipe::new(web.bench.work.path(), name);
    let session = RestSession::new(web, name);
    session.start(&pipe.script(), json!({})).await;
    pipe.process().await.wait_exit().await;
}

#[tokio::test]
async fn requests_to_rest_are_uses_of_the_session_that_they_name() {
    let web = HttpFixture::with(|change| change.mcp_options.session_idle = IDLE).await;
    let work = web.bench.work.path();
    let (streamed, attached) = (PidPipe::new(work, "a"), PidPipe::new(work, "b"));
    let (followed, waited) = (PidPipe::new(work, "c"), PidPipe::new(work, "d"));
    // A session of MCP, which afterwards only REST uses.
    let stream = RestSession::new(&web, "stream").hold().await;
    let named = web.agent(&web.token).at("/mcp/s/stream");
    start_script(&named, &streamed.script()).await;
    // The own session of an MCP session lasts as long as that, which REST uses, too.
    let own = web.agent(&web.token).initialize().await;
    let (_, mcp_session) = own
        .headers
        .iter()
        .find(|(name, _)| name == "mcp-session-id")
        .unwrap();
    let follower = RestSession::new(&web, &format!("mcp-{mcp_session}"));
    let follower = follower.hold().await;
    let arguments = own.background(&followed.script());
    own.call_initialized("command_bg_start", arguments).await;
    // A WebSocket.
    let socket = RestSession::new(&web, "socket");
    let held = socket.hold().await;
    let terminal = json!({"pty": {"cols": 80, "rows": 24}});
    let id = socket.start(&attached.script(), terminal).await;
    let bearer = format!("Bearer {}", web.token);
    let headers = [("authorization", bearer.as_str()), (SESSION, "socket")];
    let path = format!("{API}/{id}/terminal");
    let attachment = TestWebSocket::tcp(web.address, &path, &headers).await;
    let mut attachment = attachment.expect("an upgrade");
    attachment.wait_message("hello").await;
    drop(held);
    // A wait.
    let waiter = RestSession::new(&web, "wait");
    let held = waiter.hold().await;
    let id = waiter.start(&waited.script(), json!({})).await;
    let client = waiter.0.at(&format!("{API}/{id}/wait"));
    let mut wait = tokio::task::JoinSet::new();
    wait.spawn(async move { client.post(&json!({"at_most_ms": 40_000})).await.status });

    let processes = [
        streamed.process().await,
        followed.process().await,
        attached.process().await,
        waited.process().await,
    ];
    drop(held);
    await_idle_end(&web, "first").await;
    await_idle_end(&web, "second").await;
    assert!(processes.iter().all(crate::web::PidFd::is_alive));
    assert_eq!(own.request("tools/list", json!({})).await.status, 200);
    drop((stream, follower, wait));
    attachment.close().await;
    for process in processes {
        process.wait_exit().await;
    }
    web.close().await;
}

#[tokio::test]
async fn a_session_that_begins_again_is_in_use_whatever_ends_of_the_earlier_one() {
    let web = HttpFixture::with(|change| change.mcp_options.session_idle = IDLE).await;
    let session = RestSession::new(&web, "again");
    let earlier = session.hold().await;
    let ended = web.agent(&web.token).at("/mcp/s/again").delete().await;
    assert_eq!(ended.status, 204);
    let stream = session.hold().await;
    let pipe = PidPipe::new(web.bench.work.path(), "again");
    session.start(&pipe.script(), json!({})).await;
    let process = pipe.process().await;
    drop(earlier);
    await_idle_end(&web, "first").await;
    await_idle_end(&web, "second").await;
    assert!(process.is_alive());
    drop(stream);
    process.wait_exit().await;
    web.close().await;
}

#[tokio::test]
async fn a_session_of_local_clients_is_not_ended_by_requests_over_http() {
    let web = HttpFixture::with(|change| change.mcp_options.session_idle = IDLE).await;
    let pipe = PidPipe::new(web.bench.work.path(), "local");
    let mut local = web.bench.client("shared").await;
    let pid = local.start(&pipe.script(), json!({})).await;
    let process = pipe.process().await;
    let session = RestSession::new(&web, "shared");
    let listed = session.0.get().await.json().await;
    assert_eq!(listed["executions"][0]["id"], pid, "{listed}");
    await_idle_end(&web, "first").await;
    await_idle_end(&web, "second").await;
    assert!(process.is_alive());
    local.close().await;
    web.close().await;
}

#[tokio::test]
async fn the_next_daemon_knows_and_ends_sessions_of_rest() {
    let bench = ServerFixture::new().await;
    let file = bench.state.path().join("http-sessions.json");
    let web = HttpFixture::with_fixture(bench, |change| {
        change.mcp_options.sessions_file = Some(file.clone());
    })
    .await;
    let pipe = PidPipe::new(web.bench.work.path(), "left");
    let session = RestSession::new(&web, "left");
    // Others that are known already do not delay the record, which a kill must not lose.
    RestSession::new(&web, "earlier").0.get().await;
    session.start(&pipe.script(), json!({})).await;
    let process = pipe.process().await;
    let is_stored = async {
        while !std::fs::read_to_string(&file).is_ok_and(|text| text.contains("\"left\"")) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, is_stored).await.expect("its record");
    let bench = web.close_keeping_state().await;
    assert!(process.is_alive());
    let web = HttpFixture::with_fixture(bench, |change| {
        change.mcp_options.sessions_file = Some(file.clone());
        change.mcp_options.session_idle = IDLE;
    })
    .await;
    process.wait_exit().await;
    web.close().await;
}

#[tokio::test]
async fn a_principal_has_so_many_sessions_by_rest_and_ends_some_for_others() {
    let web = HttpFixture::new().await;
    for number in 0..SESSIONS_PER_PRINCIPAL {
        let session = RestSession::new(&web, &number.to_string());
        assert_eq!(session.0.get().await.status, 200, "{number}");
    }
    let further = RestSession::new(&web, "further");
    let refused = further.0.get().await;
    assert_eq!(refused.status, 429);
    let problem = refused.json().await;
    let rest = (problem["message"].clone(), problem["hint"].clone());
    let mcp = web.agent(&web.token).at("/mcp/s/further");
    let problem = mcp.modern("tools/list", json!({})).await.json().await;
    assert_eq!(rest, (problem["message"].clone(), problem["hint"].clone()));
    assert!(rest.0.to_string().contains("256"), "{rest:?}");
    // Those that are there, requests without a session, and other principals are served.
    assert_eq!(RestSession::new(&web, "0").0.get().await.status, 200);
    let unnamed = web.agent(&web.token).at(API);
    assert_eq!(unnamed.get().await.status, 200);
    let two = web.secret("two", "token:two", &[]);
    let other = web.agent(&two).at(API).with(SESSION, "further");
    assert_eq!(other.get().await.status, 200);
    let ended = web.agent(&web.token).at("/mcp/s/0").delete().await;
    assert_eq!(ended.status, 204);
    assert_eq!(further.0.get().await.status, 200);
    web.close().await;
}

#[tokio::test]
async fn a_request_names_one_session() {
    let web = HttpFixture::new().await;
    let mut twice = web.agent(&web.token).with(SESSION, "a");
    twice.headers.push((SESSION.to_owned(), "b".to_owned()));
    let rest = twice.at(API).get().await;
    let mcp = twice.modern("tools/list", json!({})).await;
    for answer in [rest, mcp] {
        assert_eq!(answer.status, 422);
        let problem = answer.json().await;
        let message = problem["message"].as_str().unwrap();
        assert!(
            message.contains("'ostler-session' is there twice"),
            "{message}"
        );
    }
    web.close().await;
}
