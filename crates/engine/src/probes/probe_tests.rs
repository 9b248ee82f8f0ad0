//! Probes against small local servers.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use ostler_backend::{
    Backend, BoxFuture, LaunchPlan, RecoveryOutcome, SnapshotError, SpawnError, SpawnHandle,
};
use ostler_model::{BackendName, ByteString, ExecutionId, SnapshotRequest};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

use super::{ExecContext, Prober};
use crate::readiness::{ProbeOutcome, ProbeRequest};

/// A place of which only the network is used.
#[derive(Debug)]
struct Host;

impl Backend for Host {
    fn name(&self) -> BackendName {
        BackendName::local()
    }

    fn capabilities(&self) -> ostler_model::CapabilitySet {
        unreachable!("probes ask for none")
    }

    fn spawn(&self, _plan: LaunchPlan) -> BoxFuture<'_, Result<SpawnHandle, SpawnError>> {
        unreachable!("probes start none")
    }

    fn recover(&self, _id: ExecutionId) -> BoxFuture<'_, RecoveryOutcome> {
        unreachable!("probes look for none")
    }

    fn snapshot(
        &self,
        id: ExecutionId,
        _request: SnapshotRequest,
    ) -> BoxFuture<'_, Result<ostler_model::TreeSnapshot, SnapshotError>> {
        Box::pin(std::future::ready(Err(SnapshotError::Unknown(id))))
    }

    fn connect(
        &self,
        _id: ExecutionId,
        address: SocketAddr,
    ) -> BoxFuture<'_, std::io::Result<OwnedFd>> {
        Box::pin(async move { Ok(TcpStream::connect(address).await?.into_std()?.into()) })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

pub(super) fn prober() -> Prober {
    Prober::new(Arc::new(Host))
}

pub(super) fn impatient() -> Prober {
    let mut prober = prober();
    prober.limit = Duration::from_secs(1);
    prober
}

pub(super) fn bare() -> ExecContext {
    ExecContext {
        cwd: ByteString::from("/"),
        env: vec![(ByteString::from("PATH"), ByteString::from("/usr/bin:/bin"))],
        secrets: Arc::default(),
    }
}

pub(super) fn get(address: SocketAddr) -> ProbeRequest {
    ProbeRequest::Http {
        address,
        host: "localhost".to_owned(),
        path: "/".to_owned(),
        tls: false,
        unsure: false,
    }
}

/// Probes a server that handles every connection in the same way; panics on a timeout.
pub(super) async fn answer_of(serve: impl AsyncFn(TcpStream)) -> ProbeOutcome {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let order = get(listener.local_addr().expect("an address"));
    probe_served(&prober(), listener, order, serve).await
}

pub(super) async fn probe_served(
    prober: &Prober,
    listener: TcpListener,
    order: ProbeRequest,
    serve: impl AsyncFn(TcpStream),
) -> ProbeOutcome {
    let serving = async {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            Box::pin(serve(stream)).await;
        }
    };
    let probing = prober.probe(ExecutionId::mint(), order, bare());
    let ended = timeout(Duration::from_secs(20), async {
        tokio::select! {
            answer = probing => answer,
            () = serving => unreachable!("it serves for ever"),
        }
    });
    ended.await.expect("the probe ends")
}

/// Reads a request to its empty line.
pub(super) async fn request(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// Answers one request with these bytes.
pub(super) async fn say(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &[u8]) {
    let _request = request(&mut stream).await;
    let _sent = stream.write_all(answer).await;
    let _ended = stream.shutdown().await;
}

pub(super) fn is_plain(answered: &ProbeOutcome, wanted: u16) -> bool {
    matches!(answered, ProbeOutcome::Http { status, tls: false, .. } if *status == wanted)
}

pub(super) fn accepted(detail: &str) -> ProbeOutcome {
    ProbeOutcome::Accepted {
        detail: detail.to_owned(),
    }
}

pub(super) fn failed(detail: &str) -> ProbeOutcome {
    ProbeOutcome::Failed {
        detail: detail.to_owned(),
    }
}

#[tokio::test]
async fn statuses_are_answers_whatever_they_are() {
    for (answer, status) in [
        (&b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"[..], 200),
        (b"HTTP/1.0 200 OK\r\n\r\nhi", 200),
        (
            b"HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\n\r\n",
            302,
        ),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", 404),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", 503),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            200,
        ),
        (
            b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
            204,
        ),
    ] {
        let answered = answer_of(|stream| say(stream, answer)).await;
        assert!(is_plain(&answered, status), "{answered:?}");
    }
}

#[tokio::test]
async fn a_huge_header_is_an_answer() {
    let huge = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\nhi", "x".repeat(1 << 20));
    let answered = answer_of(|stream| say(stream, huge.as_bytes())).await;
    assert!(is_plain(&answered, 200), "{answered:?}");
}

#[tokio::test]
async fn a_probe_is_one_plain_request() {
    let requested = parking_lot::Mutex::new(String::new());
    let listener = TcpListener::bind("[::1]:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let order = ProbeRequest::Http {
        address: SocketAddr::new("::".parse().expect("an address"), address.port()),
        host: "::1".to_owned(),
        path: "/health?a=b".to_owned(),
        tls: false,
        unsure: false,
    };
    let answered = probe_served(&prober(), listener, order, async |mut stream| {
        let head = request(&mut stream).await;
        *requested.lock() = head;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\n\r\n")
            .await
            .expect("accepted");
    })
    .await;
    assert!(is_plain(&answered, 200), "{answered:?}");
    let wanted = format!(
        "GET /health?a=b HTTP/1.1\r\nHost: [::1]:{}\r\nUser-Agent: ostler\r\nAccept: */*\r\n\
         Connection: close\r\n\r\n",
        address.port()
    );
    assert_eq!(*requested.lock(), wanted);
}

#[tokio::test]
async fn one_bound_to_ipv4_behind_a_wildcard_of_ipv6_is_reached() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let order = get(SocketAddr::new("::".parse().expect("an address"), port));
    let serve = |stream| say(stream, b"HTTP/1.1 200 OK\r\n\r\n");
    let answered = probe_served(&prober(), listener, order, serve).await;
    assert!(is_plain(&answered, 200), "{answered:?}");
}

#[tokio::test]
async fn a_slow_first_byte_is_waited_for() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let order = get(listener.local_addr().expect("an address"));
    let answered = probe_served(&prober(), listener, order, async |mut stream| {
        let _request = request(&mut stream).await;
        tokio::time::sleep_until(Instant::now() + Duration::from_millis(1_200)).await;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\n\r\n")
            .await
            .expect("accepted");
    })
    .await;
    let ProbeOutcome::Http {
        status: 200, ms, ..
    } = answered
    else {
        panic!("{answered:?}");
    };
    assert!((1_100..5_000).contains(&ms), "{ms}");
}

#[tokio::test]
async fn a_stream_that_never_ends_is_an_answer() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let order = get(listener.local_addr().expect("an address"));
    let answered = probe_served(&prober(), listener, order, async |mut stream| {
        let _request = request(&mut stream).await;
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
        stream.write_all(head).await.expect("accepted");
        while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
    })
    .await;
    assert!(is_plain(&answered, 200), "{answered:?}");
}

#[tokio::test]
async fn a_port_without_a_listener_is_refused() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    for order in [get(address), ProbeRequest::Tcp { address }] {
        let answered = prober().probe(ExecutionId::mint(), order, bare()).await;
        assert_eq!(answered, failed("connection refused"));
    }
}

#[tokio::test]
async fn silence_is_no_answer() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let order = get(listener.local_addr().expect("an address"));
    // Never accepted: the kernel completes the connection.
    let probing = impatient();
    let answered = probing.probe(ExecutionId::mint(), order, bare()).await;
    assert_eq!(answered, failed("no answer within 1 s"));
    drop(listener);
}

#[tokio::test]
async fn servers_of_other_protocols_are_recognized_at_once() {
    for banner in [
        &b"SSH-2.0-OpenSSH_9.2p1\r\n"[..],
        b"220 mail.example ESMTP\r\n",
        b"J\0\0\0\x0a8.0.36\0",
        b"-ERR wrong number of arguments for 'get' command\r\n",
        b"<html>as in 1991</html>",
        b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\x01",
    ] {
        let answered = answer_of(async |mut stream| {
            stream.write_all(banner).await.expect("accepted");
            // Kept open: the probe is not to wait for its end.
            let _closed_by_the_probe = stream.read_to_end(&mut Vec::new()).await;
        })
        .await;
        assert_eq!(answered, accepted("speaks no HTTP"), "{banner:?}");
    }
}

#[tokio::test]
async fn closed_at_once_is_accepted() {
    let answered = answer_of(async |stream| drop(stream)).await;
    assert_eq!(answered, accepted("closed without an answer"));
    // It waits for the end of a line, which a handshake does not have.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let order = get(listener.local_addr().expect("an address"));
    let answered = probe_served(&impatient(), listener, order, async |mut stream| {
        request(&mut stream).await;
    })
    .await;
    assert_eq!(answered, accepted("closed without an answer"));
}

#[tokio::test]
async fn a_connection_is_enough_for_tcp() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let address = SocketAddr::from((
        Ipv4Addr::UNSPECIFIED,
        listener.local_addr().expect("an address").port(),
    ));
    let order = ProbeRequest::Tcp { address };
    let answered = prober().probe(ExecutionId::mint(), order, bare()).await;
    assert_eq!(answered, accepted("connection taken"));
}

#[tokio::test]
async fn a_path_that_would_be_two_requests_is_not_sent() {
    let order = ProbeRequest::Http {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
        host: "localhost".to_owned(),
        path: "/ HTTP/1.1\r\n\r\nDELETE /".to_owned(),
        tls: false,
        unsure: false,
    };
    let answered = prober().probe(ExecutionId::mint(), order, bare()).await;
    assert_eq!(answered, failed("the path cannot be sent"));
}

fn carefully(address: SocketAddr) -> ProbeRequest {
    ProbeRequest::Http {
        address,
        host: "localhost".to_owned(),
        path: "/".to_owned(),
        tls: false,
        unsure: true,
    }
}

#[tokio::test]
async fn who_talks_first_is_not_spoken_to() {
    let said = parking_lot::Mutex::new(Vec::new());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.expect("a port");
    let order = carefully(listener.local_addr().expect("an address"));
    let answered = probe_served(&prober(), listener, order, async |mut stream| {
        let greeted = stream.write_all(b"220 mail.example ESMTP\r\n").await;
        greeted.expect("accepted");
        let mut rest = Vec::new();
        let _ended = stream.read_to_end(&mut rest).await;
        said.lock().extend(rest);
    })
    .await;
    assert_eq!(answered, accepted("it talks first"));
    assert_eq!(*said.lock(), b"");
}

#[tokio::test]
async fn a_server_without_a_reply_is_silent() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.expect("a port");
    let order = carefully(listener.local_addr().expect("an address"));
    let answered = probe_served(&prober(), listener, order, async |mut stream| {
        let mut rest = Vec::new();
        let _ended = stream.read_to_end(&mut rest).await;
    })
    .await;
    assert_eq!(answered, ProbeOutcome::Silent { ms: 5_000 });
}

#[tokio::test]
async fn a_site_is_found_carefully_too() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.expect("a port");
    let order = carefully(listener.local_addr().expect("an address"));
    let answer = b"HTTP/1.1 200 OK\r\n\r\n";
    let answered = probe_served(&prober(), listener, order, async |stream| {
        say(stream, answer).await;
    })
    .await;
    assert!(is_plain(&answered, 200), "{answered:?}");
}
