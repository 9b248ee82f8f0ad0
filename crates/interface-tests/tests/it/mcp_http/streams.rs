//! Streams of answers: closed, lost, resumed.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;

#[tokio::test]
async fn a_stream_closed_early_stops_its_command_and_nothing_else() {
    let web =
        HttpFixture::with(|change| change.mcp_options.resume = Duration::from_millis(100)).await;
    let agent = web.agent(&web.token);
    let other = PidPipe::new(web.bench.work.path(), "other");
    start_script(&agent, &other.script()).await;
    let other = other.process().await;
    for handshake in [false, true] {
        let tell = PidPipe::new(web.bench.work.path(), &format!("{handshake}"));
        let mut arguments = agent.script(&tell.script());
        arguments["timeout"] = 1000.into();
        let params = json!({"name": "command_execute", "arguments": arguments});
        let agent = if handshake {
            agent.initialize().await
        } else {
            agent.clone()
        };
        let asking = async {
            if handshake {
                let answer = agent.request("tools/call", params).await;
                assert_eq!(answer.status, 200);
                std::future::pending::<()>().await;
            } else {
                agent.modern("tools/call", params).await;
            }
        };
        // Dropped with its connection as soon as the command runs.
        let process = tokio::select! {
            () = asking => panic!("the command does not end"),
            process = tell.process() => process,
        };
        process.wait_exit().await;
        assert!(other.is_alive());
    }
    web.close().await;
}

#[tokio::test]
async fn a_lost_stream_of_the_handshake_era_can_be_taken_up_again() {
    let web = HttpFixture::new().await;
    let agent = web.agent(&web.token).initialize().await;
    let gate = PidPipe::new(web.bench.work.path(), "gate");
    let wait = format!(
        "read line < {}; echo got $line",
        web.bench.work.path().join("gate").display()
    );
    let arguments = agent.script(&wait);
    let params = json!({"name": "command_execute", "arguments": arguments});
    let mut answer = agent.request("tools/call", params).await;
    let first = answer.event().await.unwrap();
    let id = first
        .lines()
        .find_map(|line| line.strip_prefix("id:"))
        .unwrap()
        .trim()
        .to_owned();
    drop(answer);
    let mut again = agent.with("last-event-id", &id).get().await;
    assert_eq!(again.status, 200);
    let path = web.bench.work.path().join("gate");
    tokio::task::spawn_blocking(move || std::fs::write(path, "it\n"))
        .await
        .unwrap()
        .unwrap();
    let result = again.result().await;
    assert!(text(&result).contains("got it"), "{result}");
    drop(gate);
    web.close().await;
}

#[tokio::test]
async fn a_shutdown_closes_streams_at_once() {
    let web = HttpFixture::new().await;
    let agent = web.agent(&web.token).initialize().await;
    let mut idle = agent.get().await;
    let params = json!({"name": "command_execute", "arguments": agent.script("sleep 120")});
    let mut busy = agent.request("tools/call", params).await;
    web.shutdown.cancel();
    while idle.event().await.is_some() {}
    while busy.event().await.is_some() {}
    web.close().await;
}

#[tokio::test]
async fn who_does_not_finish_a_head_is_cut_off() {
    let web = HttpFixture::with(|change| *change.head = Duration::from_millis(200)).await;
    let mut stream = TcpStream::connect(web.address).await.unwrap();
    stream
        .write_all(b"GET /mcp HTTP/1.1\r\nhost: ")
        .await
        .unwrap();
    let mut rest = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
    drop(read.expect("the connection ends"));
    assert_eq!(
        web.agent(&web.token)
            .at("/api/v1/health")
            .get()
            .await
            .status,
        200
    );
    web.close().await;
}

#[tokio::test]
async fn a_token_with_all_its_requests_in_flight_locks_no_other_out() {
    // Both ends of each connection are here.
    let hard = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: hard,
        maximum: hard,
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    let web = HttpFixture::new().await;
    let agent = web.agent(&web.token).with("ostler-session", "a");
    let id = start_script(&agent, "sleep 600").await;
    let follow = agent.at(&format!("/api/v1/executions/{id}/raw?follow=true"));
    let mut streams = Vec::new();
    for _ in 0..REQUESTS_PER_PRINCIPAL {
        let stream = follow.get().await;
        assert_eq!(stream.status, 200);
        streams.push(stream);
    }
    let refused = follow.get().await;
    assert_eq!(refused.status, 429);
    let text = refused.text().await;
    assert!(text.contains("requests of this token"), "{text}");
    let other = web.agent(&web.secret("two", "token:two", &[]));
    assert_eq!(other.at("/api/v1/health").get().await.status, 200);
    // The end of an answer is the end of its request, sooner or later.
    streams.clear();
    let again = async {
        while agent.at("/api/v1/health").get().await.status != 200 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, again).await.expect("room again");
    web.close().await;
}
