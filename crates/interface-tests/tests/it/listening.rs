//! The Unix socket.

use std::path::Path;

use crate::common::{PATIENCE, ServerFixture};
use ostler_http::listen::listen;
use ostler_http::rest::{RestState, router};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

async fn get(socket: &Path, path: &str) -> BufReader<UnixStream> {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: local\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    BufReader::new(stream)
}

#[tokio::test]
async fn requests_are_answered_and_connections_drained() {
    let bench = ServerFixture::new().await;
    let socket = bench.work.path().join("daemon.sock");
    let shutdown = CancellationToken::new();
    let listener = UnixListener::bind(&socket).unwrap();
    let routes = router(RestState::new(bench.engine.clone(), shutdown.clone()));
    let mut server = JoinSet::new();
    server.spawn(listen(listener, routes, shutdown.clone()));

    let mut idle = get(&socket, "/api/v1/health").await;
    let mut line = String::new();
    idle.read_line(&mut line).await.unwrap();
    assert_eq!(line, "HTTP/1.1 200 OK\r\n");

    shutdown.cancel();
    let ended = timeout(PATIENCE, server.join_next())
        .await
        .expect("a drained server");
    ended.unwrap().unwrap().unwrap();
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).await.unwrap();
    assert!(String::from_utf8_lossy(&rest).contains("\"running\":0"));
}

#[tokio::test]
async fn a_client_that_stops_reading_stalls_only_itself() {
    let bench = ServerFixture::new().await;
    let socket = bench.work.path().join("daemon.sock");
    let shutdown = CancellationToken::new();
    let listener = UnixListener::bind(&socket).unwrap();
    let routes = router(RestState::new(bench.engine.clone(), shutdown.clone()));
    let mut server = JoinSet::new();
    server.spawn(listen(listener, routes, shutdown.clone()));

    let mut client = bench.client("s").await;
    let pid = client
        .start("seq 1 1000000; touch done", serde_json::json!({}))
        .await;
    let mut slow = get(
        &socket,
        &format!("/api/v1/executions/{pid}/raw?follow=true"),
    )
    .await;
    let mut line = String::new();
    slow.read_line(&mut line).await.unwrap();
    client.wait_end(&pid).await;
    assert!(bench.work.path().join("done").exists());

    let mut rest = Vec::new();
    shutdown.cancel();
    let reading = timeout(PATIENCE, slow.read_to_end(&mut rest)).await;
    reading.expect("the rest in time").unwrap();
    let rest = String::from_utf8_lossy(&rest);
    assert!(
        rest.contains("1000000\\n") && rest.contains("\"end\":"),
        "the stream was cut"
    );
}
