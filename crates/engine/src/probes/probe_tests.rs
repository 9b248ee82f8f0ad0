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
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, crypto::ring, version};

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
        _id: ExecutionId,
        _what: SnapshotRequest,
    ) -> BoxFuture<'_, Result<ostler_model::TreeSnapshot, SnapshotError>> {
        unreachable!("probes look at none")
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

fn prober() -> Prober {
    Prober::new(Arc::new(Host))
}

fn impatient() -> Prober {
    let mut prober = prober();
    prober.limit = Duration::from_secs(1);
    prober
}

fn bare() -> ExecContext {
    ExecContext {
        cwd: ByteString::from("/"),
        env: vec![(ByteString::from("PATH"), ByteString::from("/usr/bin:/bin"))],
    }
}

fn get(address: SocketAddr) -> ProbeRequest {
    ProbeRequest::Http {
        address,
        host: "localhost".to_owned(),
        path: "/".to_owned(),
        tls: false,
        unsure: false,
    }
}

/// Probes a server that treats every connection alike, and gives up with a clear failure.
async fn answer_of(serve: impl AsyncFn(TcpStream)) -> ProbeOutcome {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let order = get(listener.local_addr().expect("an address"));
    probe_served(&prober(), listener, order, serve).await
}

async fn probe_served(
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
async fn request(stream: &mut (impl AsyncRead + Unpin)) -> String {
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
async fn say(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &[u8]) {
    let _request = request(&mut stream).await;
    let _sent = stream.write_all(answer).await;
    let _ended = stream.shutdown().await;
}

fn is_plain(answered: &ProbeOutcome, wanted: u16) -> bool {
    matches!(answered, ProbeOutcome::Http { status, tls: false, .. } if *status == wanted)
}

fn accepted(detail: &str) -> ProbeOutcome {
    ProbeOutcome::Accepted {
        detail: detail.to_owned(),
    }
}

fn failed(detail: &str) -> ProbeOutcome {
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
async fn what_is_asked_is_one_plain_request() {
    let asked = std::sync::Mutex::new(String::new());
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
        *asked.lock().expect("no test panicked") = head;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\n\r\n")
            .await
            .expect("taken");
    })
    .await;
    assert!(is_plain(&answered, 200), "{answered:?}");
    let wanted = format!(
        "GET /health?a=b HTTP/1.1\r\nHost: [::1]:{}\r\nUser-Agent: ostler\r\nAccept: */*\r\n\
         Connection: close\r\n\r\n",
        address.port()
    );
    assert_eq!(*asked.lock().expect("no test panicked"), wanted);
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
            .expect("taken");
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
        stream.write_all(head).await.expect("taken");
        while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
    })
    .await;
    assert!(is_plain(&answered, 200), "{answered:?}");
}

#[tokio::test]
async fn nobody_there_is_refused() {
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
    // Never accepted: the kernel takes the connection all the same.
    let probing = impatient();
    let answered = probing.probe(ExecutionId::mint(), order, bare()).await;
    assert_eq!(answered, failed("no answer within 1 s"));
    drop(listener);
}

#[tokio::test]
async fn those_that_speak_something_else_are_told_at_once() {
    for banner in [
        &b"SSH-2.0-OpenSSH_9.2p1\r\n"[..],
        b"220 mail.example ESMTP\r\n",
        b"J\0\0\0\x0a8.0.36\0",
        b"-ERR wrong number of arguments for 'get' command\r\n",
        b"<html>as in 1991</html>",
        b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\x01",
    ] {
        let answered = answer_of(async |mut stream| {
            stream.write_all(banner).await.expect("taken");
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

// ---- TLS

fn acceptor(
    versions: &[&'static tokio_rustls::rustls::SupportedProtocolVersion],
    alpn: &[&[u8]],
) -> TlsAcceptor {
    let signed = rcgen::generate_simple_self_signed(vec!["nobody.example".to_owned()]);
    let signed = signed.expect("a certificate");
    let key = PrivateKeyDer::try_from(signed.signing_key.serialize_der()).expect("a key");
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![signed.cert.der().clone()], key)
        .expect("a pair");
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

async fn serve_tls(acceptor: &TlsAcceptor, stream: TcpStream, answer: &[u8]) {
    // A plain request is refused with an alert.
    if let Ok(stream) = acceptor.accept(stream).await {
        say(stream, answer).await;
    }
}

#[tokio::test]
async fn a_port_of_tls_is_asked_again_over_tls() {
    for versions in [&[&version::TLS12], &[&version::TLS13]] {
        let acceptor = acceptor(versions, &[]);
        let answered =
            answer_of(|stream| serve_tls(&acceptor, stream, b"HTTP/1.1 200 OK\r\n\r\n")).await;
        let ProbeOutcome::Http {
            status: 200,
            tls: true,
            ..
        } = answered
        else {
            panic!("{answered:?}");
        };
    }
}

#[tokio::test]
async fn one_that_closes_on_plain_requests_is_asked_again_over_tls() {
    let acceptor = acceptor(&[&version::TLS13], &[b"h2", b"http/1.1"]);
    let answered = answer_of(async |stream| {
        let mut first = [0];
        stream.peek(&mut first).await.expect("a byte");
        if first[0] != b'G' {
            serve_tls(&acceptor, stream, b"HTTP/1.1 503 Not Yet\r\n\r\n").await;
        }
    })
    .await;
    let ProbeOutcome::Http {
        status: 503,
        tls: true,
        ..
    } = answered
    else {
        panic!("{answered:?}");
    };
}

#[tokio::test]
async fn one_that_explains_in_plain_http_is_asked_again_over_tls() {
    let acceptor = acceptor(&[&version::TLS13], &[]);
    let bad = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
    let answered = answer_of(async |stream| {
        let mut first = [0];
        stream.peek(&mut first).await.expect("a byte");
        match first[0] {
            b'G' => say(stream, bad).await,
            _ => serve_tls(&acceptor, stream, b"HTTP/1.1 200 OK\r\n\r\n").await,
        }
    })
    .await;
    let ProbeOutcome::Http {
        status: 200,
        tls: true,
        ..
    } = answered
    else {
        panic!("{answered:?}");
    };
    // And one that means it is believed.
    let answered = answer_of(async |mut stream| {
        let _request = stream.read(&mut [0; 64]).await;
        let _sent = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    })
    .await;
    assert!(is_plain(&answered, 400), "{answered:?}");
}

#[tokio::test]
async fn tls_first_falls_back_to_plain() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let order = ProbeRequest::Http {
        address: listener.local_addr().expect("an address"),
        host: "127.0.0.1".to_owned(),
        path: "/".to_owned(),
        tls: true,
        unsure: false,
    };
    let answered = probe_served(&prober(), listener, order, async |mut stream| {
        let mut first = [0; 3];
        stream.read_exact(&mut first).await.expect("bytes");
        if &first == b"GET" {
            say(stream, b"HTTP/1.1 200 OK\r\n\r\n").await;
        }
    })
    .await;
    assert!(is_plain(&answered, 200), "{answered:?}");
}

#[tokio::test]
async fn one_that_speaks_http2_only_is_accepted() {
    let acceptor = acceptor(&[&version::TLS13], &[b"h2"]);
    let answered = answer_of(|stream| serve_tls(&acceptor, stream, b"")).await;
    assert_eq!(answered, accepted("speaks no HTTP"));
}

// ---- commands

async fn run(prober: &Prober, argv: &[&str]) -> ProbeOutcome {
    let argv = argv.iter().copied().map(ByteString::from).collect();
    let order = ProbeRequest::Exec { argv };
    let probing = prober.probe(ExecutionId::mint(), order, bare());
    let answered = timeout(Duration::from_secs(20), probing).await;
    answered.expect("the probe ends")
}

fn exited(code: i32, output: &str) -> ProbeOutcome {
    ProbeOutcome::Exec {
        code,
        output: output.to_owned(),
    }
}

#[tokio::test]
async fn commands_answer_with_code_and_output() {
    for (script, answer) in [
        ("exit 0", exited(0, "")),
        ("echo no; echo really >&2; exit 3", exited(3, "no\nreally")),
        ("kill -9 $$", exited(137, "")),
        ("pwd; echo $HOME", exited(0, "/")),
        ("exec >&- 2>&-; exit 4", exited(4, "")),
        ("cat; echo end of input", exited(0, "end of input")),
    ] {
        assert_eq!(
            run(&prober(), &["sh", "-c", script]).await,
            answer,
            "{script}"
        );
    }
    let answered = run(&prober(), &["no-such-program"]).await;
    assert_eq!(
        answered,
        failed("cannot run `no-such-program`: entity not found")
    );
    let answered = run(&prober(), &[]).await;
    assert_eq!(answered, failed("cannot run ``: invalid input parameter"));
}

#[tokio::test]
async fn of_much_output_the_end_is_told() {
    let script = "yes äöü | head -n 400000; printf 'the end'";
    let ProbeOutcome::Exec { code: 0, output } = run(&prober(), &["sh", "-c", script]).await else {
        panic!("it exits with 0");
    };
    assert_eq!(output.chars().count(), 200);
    assert!(output.ends_with("the end"), "{output}");
    assert!(!output.contains('\u{fffd}'), "{output}");
}

/// A file that processes hold open, and what tells that the last of them has gone.
struct HeldPort {
    dir: tempfile::TempDir,
    reader: tokio::net::unix::pipe::Receiver,
}

impl HeldPort {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("held");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .expect("a fifo");
        let reader = tokio::net::unix::pipe::OpenOptions::new().open_receiver(&path);
        let reader = reader.expect("it opens");
        Self { dir, reader }
    }

    /// A script that opens the file, says so through it, then goes on with `rest`.
    fn script(&self, rest: &str) -> String {
        let path = self.dir.path().join("held");
        format!("exec 9>{}; echo here >&9; {rest}", path.display())
    }

    async fn taken(&mut self) {
        let mut said = [0; 5];
        let read = timeout(Duration::from_secs(10), self.reader.read_exact(&mut said)).await;
        read.expect("in time").expect("it says so");
    }

    async fn let_go(&mut self) {
        let mut rest = Vec::new();
        let end = timeout(Duration::from_secs(10), self.reader.read_to_end(&mut rest)).await;
        end.expect("every process has gone").expect("the end");
    }
}

#[tokio::test]
async fn one_that_hangs_is_ended_with_its_children() {
    let mut held = HeldPort::new();
    let script = held.script("trap '' TERM; (trap '' TERM; sleep 1000; sleep 1000) & sleep 1000");
    let began = Instant::now();
    let answered = run(&impatient(), &["sh", "-c", &script]).await;
    assert_eq!(answered, failed("no exit within 1 s"));
    assert!(began.elapsed() < Duration::from_secs(5));
    held.taken().await;
    held.let_go().await;
}

#[tokio::test]
async fn what_a_command_leaves_behind_is_ended() {
    let mut held = HeldPort::new();
    let script = held.script("sleep 1000 & echo started; exit 0");
    let answered = run(&prober(), &["sh", "-c", &script]).await;
    assert_eq!(answered, exited(0, "started"));
    held.taken().await;
    held.let_go().await;
}

#[tokio::test]
async fn a_dropped_probe_ends_its_command() {
    let mut held = HeldPort::new();
    let script = held.script("sleep 1000 & sleep 1000");
    let prober = prober();
    {
        let argv = ["sh", "-c", &script];
        let probing = run(&prober, &argv);
        tokio::select! {
            answered = probing => panic!("{answered:?}"),
            () = held.taken() => {}
        }
    }
    held.let_go().await;
}

#[tokio::test]
async fn no_zombie_is_left() {
    for _ in 0..3 {
        assert_eq!(run(&prober(), &["true"]).await, exited(0, ""));
    }
    let answered = run(&impatient(), &["sleep", "1000"]).await;
    assert_eq!(answered, failed("no exit within 1 s"));
    let threads = std::fs::read_dir("/proc/self/task").expect("threads");
    for thread in threads {
        let children = thread.expect("a thread").path().join("children");
        assert_eq!(std::fs::read_to_string(children).unwrap_or_default(), "");
    }
}

// ---- those that may speak something else

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
    let said = std::sync::Mutex::new(Vec::new());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.expect("a port");
    let order = carefully(listener.local_addr().expect("an address"));
    let answered = probe_served(&prober(), listener, order, async |mut stream| {
        let greeted = stream.write_all(b"220 mail.example ESMTP\r\n").await;
        greeted.expect("taken");
        let mut rest = Vec::new();
        let _ended = stream.read_to_end(&mut rest).await;
        said.lock().expect("no test panicked").extend(rest);
    })
    .await;
    assert_eq!(answered, accepted("it talks first"));
    assert_eq!(*said.lock().expect("no test panicked"), b"");
}

#[tokio::test]
async fn who_says_nothing_is_told_as_silent() {
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
