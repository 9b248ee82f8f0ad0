//! Stops that are verified, restarts, and why.

use ostler_model::RestartPolicy;

use super::fixture::{ServiceFixture, free_port, named, service_error};

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_is_over_when_the_port_is_free() {
    let fixture = ServiceFixture::new().await;
    let port = free_port();
    let info = fixture.ready(fixture.server("web", port)).await;
    assert_eq!(
        info.state.url.as_deref(),
        Some(&*format!("http://localhost:{port}/"))
    );
    let stopped = fixture.stop("web").await;
    assert_eq!(
        (stopped.released, stopped.still_held.len()),
        (vec![port], 0)
    );
    assert_eq!(stopped.service.status(), "stopped");
    std::net::TcpListener::bind(("127.0.0.1", port)).expect("it is free");
    let again = fixture.stop("web").await;
    assert!(again.released.is_empty());
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_the_id_of_one_that_lives_and_starts_what_ended_anew() {
    let fixture = ServiceFixture::new().await;
    let port = free_port();
    let info = fixture.ready(fixture.server("web", port)).await;
    let again = fixture.restart("web").await.expect("again");
    let execution = again.execution.expect("it lives");
    assert_eq!(execution.id, info.id);
    let now = fixture.until_ready(info.id).await;
    assert_eq!(now.state.attempt, 2);
    fixture.stop("web").await;
    let anew = fixture.restart("web").await.expect("anew");
    let anew = anew.execution.expect("it lives").id;
    assert_ne!(anew, info.id);
    fixture.until_ready(anew).await;
    let fixture = fixture.reopen().await;
    // Without a zygote it ended with its engine; its spec is enough to start it again.
    fixture
        .wait_until("its end", |fixture| !fixture.service("web").is_living())
        .await;
    let third = fixture.restart("web").await.expect("anew");
    fixture
        .until_ready(third.execution.expect("it lives").id)
        .await;
    service_error(fixture.restart("nobody").await);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn why_says_what_happened() {
    let fixture = ServiceFixture::new().await;
    let port = free_port();
    fixture.ready(fixture.server("web", port)).await;
    let why = fixture.why("web").await.expect("known");
    assert_eq!(why.status, "ready");
    assert!(why.cause.starts_with("it is ready for "), "{}", why.cause);
    assert!(
        why.evidence
            .iter()
            .any(|it| it.contains(&format!("127.0.0.1:{port}"))),
        "{why:?}"
    );
    // A second one on the same port fails; the holder is named.
    let guard = fixture.start(fixture.server("two", port)).await;
    guard.expect("it starts").detach().expect("open");
    fixture
        .wait_until("its end", |fixture| !fixture.service("two").is_living())
        .await;
    let why = fixture.why("two").await.expect("known");
    assert_eq!(why.status, "failed");
    assert!(
        why.cause
            .contains("it ended before it was ready: exit code 1"),
        "{}",
        why.cause
    );
    let stranger = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let held = stranger.local_addr().expect("bound").port();
    let script = format!("echo Error: listen EADDRINUSE: address already in use :::{held}; exit 1");
    let mut loops = named("loops", fixture.sh(&script));
    loops.restart = RestartPolicy::OnFailure { max: 1 };
    let guard = fixture.start(loops).await;
    guard.expect("it starts").detach().expect("open");
    fixture
        .wait_until("its end", |fixture| {
            fixture.service("loops").status() == "crash_looping"
        })
        .await;
    let why = fixture.why("loops").await.expect("known");
    assert!(why.cause.starts_with("it ended 2 times, and its restart policy allows no more; the last time: exit code 1; it said: Error: listen EADDRINUSE"), "{}", why.cause);
    assert!(
        why.cause
            .contains(&format!("; port {held}, which it wants, is held by ")),
        "{}",
        why.cause
    );
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn why_tells_who_shares_its_port() {
    let fixture = ServiceFixture::new().await;
    let port = free_port();
    let script = r#"
import http.server, socket, sys
class Server(http.server.HTTPServer):
    def server_bind(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()
Server(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler).serve_forever()
"#;
    fixture.write("shared.py", script);
    let words = ["python3", "shared.py", &port.to_string()];
    let request = |name: &str| {
        let start = ostler_engine::StartRequest::argv(words, fixture.dir());
        named(name, ostler_engine::ServiceRequest::new(start))
    };
    fixture.ready(request("one")).await;
    fixture.ready(request("two")).await;
    let why = fixture.why("two").await.expect("it is known");
    let actual = why
        .evidence
        .iter()
        .any(|it| it.contains(&format!("port {port} is shared with your service 'one'")));
    assert!(actual, "{why:?}");
    fixture.close().await;
}
