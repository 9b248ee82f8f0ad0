//! Serves a router on a Unix socket, where the kernel says who is asking and nothing wakes up
//! while nobody does; or on TCP, where the router must find out.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use ostler_model::owner::{Owner, Principal};
use ostler_model::{Caller, Scope};
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tower::ServiceExt as _;
use tracing::{debug, warn};

/// Connections served at once; further ones wait in the kernel's queue.
pub const CONNECTIONS: usize = 1_024;
/// How long a TCP peer may take to send the head of its next request, in milliseconds.
pub const HEAD_MS: u64 = 30_000;

/// The address of ours that a TCP peer reached; among the extensions of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached(pub IpAddr);

/// The place of a connection among [`CONNECTIONS`]; among the extensions of its requests. What
/// goes on after the answer, on an upgraded connection, holds it.
#[derive(Debug, Clone)]
pub struct Seat(#[expect(dead_code, reason = "held, not read")] Arc<Held>);

#[derive(Debug)]
struct Held {
    _place: OwnedSemaphorePermit,
    _connection: TaskTrackerToken,
}

/// Serves `router` until `shutdown`; then no request is begun any more, those under way end,
/// and this returns when none is left. With the same token in the router's
/// [`RestState`](crate::rest::RestState), waits and followers do not hold it up.
///
/// # Errors
/// When the socket does not accept any more.
pub async fn listen(
    listener: UnixListener,
    router: Router,
    shutdown: CancellationToken,
) -> io::Result<()> {
    listen_up_to(CONNECTIONS, listener, router, shutdown).await
}

/// The same on TCP. Who is asking is the router's business; slow heads end the connection
/// after `head`, usually [`HEAD_MS`].
///
/// # Errors
/// As [`listen`].
pub async fn listen_tcp(
    listener: TcpListener,
    head: Duration,
    router: Router,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let listener = Tcp { listener, head };
    listen_up_to(CONNECTIONS, listener, router, shutdown).await
}

/// Where connections come from.
trait Listener: AsFd + Send {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    fn accept(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// What every request of this connection carries among its extensions.
    ///
    /// # Errors
    /// A reason for the log, when nobody may ask here.
    fn introduce(&self, stream: &Self::Stream) -> Result<http::Extensions, &'static str>;

    /// How long the head of a request may take; no timer costs no wake-up.
    fn head(&self) -> Option<Duration>;
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<UnixStream> {
        Self::accept(self).await.map(|(stream, _)| stream)
    }

    fn introduce(&self, stream: &UnixStream) -> Result<http::Extensions, &'static str> {
        let mut extensions = http::Extensions::new();
        extensions.insert(identify(stream)?);
        Ok(extensions)
    }

    fn head(&self) -> Option<Duration> {
        None
    }
}

/// A TCP listener and its patience.
struct Tcp {
    listener: TcpListener,
    head: Duration,
}

impl AsFd for Tcp {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Listener for Tcp {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<TcpStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }

    fn introduce(&self, stream: &TcpStream) -> Result<http::Extensions, &'static str> {
        let gone = "the peer is gone";
        stream.set_nodelay(true).map_err(|_| gone)?;
        let local = stream.local_addr().map_err(|_| gone)?;
        let mut extensions = http::Extensions::new();
        extensions.insert(Reached(local.ip().to_canonical()));
        Ok(extensions)
    }

    fn head(&self) -> Option<Duration> {
        Some(self.head)
    }
}

async fn listen_up_to(
    limit: usize,
    listener: impl Listener,
    router: Router,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let connections = TaskTracker::new();
    let places = Arc::new(Semaphore::new(limit));
    let mut spare = Spare::new(&listener);
    let served = loop {
        let place = tokio::select! {
            () = shutdown.cancelled() => break Ok(()),
            place = places.clone().acquire_owned() => place.map_err(io::Error::other)?,
        };
        let stream = tokio::select! {
            () = shutdown.cancelled() => break Ok(()),
            accepted = listener.accept() => match accepted {
                Ok(stream) => stream,
                Err(error) if is_exhausted(&error) => {
                    warn!(%error, "a connection is turned away");
                    spare.turn_away(&listener).await;
                    continue;
                }
                Err(error) if is_passing(&error) => continue,
                Err(error) => break Err(error),
            },
        };
        match listener.introduce(&stream) {
            Ok(mut extensions) => {
                let head = listener.head();
                extensions.insert(Seat(Arc::new(Held {
                    _place: place,
                    _connection: connections.token(),
                })));
                let serving = serve(stream, router.clone(), extensions, head, shutdown.clone());
                connections.spawn(serving);
            }
            Err(reason) => warn!(reason, "connection refused"),
        }
    };
    // Whoever is still in the kernel's queue is told at once.
    drop(listener);
    connections.close();
    connections.wait().await;
    served
}

/// Whether the peer left before it was accepted.
fn is_passing(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| [Errno::CONNABORTED, Errno::INTR].contains(&errno))
}

/// Whether descriptors ran out.
fn is_exhausted(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| [Errno::MFILE, Errno::NFILE].contains(&errno))
}

/// A descriptor held back for the day there are no more: given up, it lets a waiting peer be
/// accepted and closed, instead of being tried again and again.
struct Spare(Option<OwnedFd>);

impl Spare {
    fn new(listener: &impl Listener) -> Self {
        Self(listener.as_fd().try_clone_to_owned().ok())
    }

    async fn turn_away(&mut self, listener: &impl Listener) {
        drop(self.0.take());
        drop(listener.accept().await);
        *self = Self::new(listener);
    }
}

/// The caller at the other end: this process's own user, or root.
///
/// # Errors
/// A reason for the log when it is somebody else or cannot be told.
pub fn identify(stream: &UnixStream) -> Result<Caller, &'static str> {
    let credential = stream
        .peer_cred()
        .map_err(|_| "the peer's credential cannot be read")?;
    let own = rustix::process::geteuid().as_raw();
    if credential.uid() != own && credential.uid() != 0 {
        return Err("the peer is another user");
    }
    Ok(Caller {
        owner: Owner {
            principal: Principal::unix(credential.uid()),
            project: None,
            session: None,
            task: None,
        },
        scope: Scope::Principal,
    })
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    extensions: http::Extensions,
    head: Option<Duration>,
    shutdown: CancellationToken,
) {
    let service = router.map_request(move |mut request: Request<Incoming>| {
        request.extensions_mut().extend(extensions.clone());
        request.map(axum::body::Body::new)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(head)
        .auto_date_header(false);
    let connection = http
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!(%error, "connection broke off");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::task::JoinSet;
    use tokio::time::timeout;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);
    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: local\r\n\r\n";

    async fn ask(socket: &std::path::Path) -> UnixStream {
        let mut stream = UnixStream::connect(socket).await.unwrap();
        stream.write_all(REQUEST).await.unwrap();
        stream
    }

    async fn is_answered(stream: &mut UnixStream, within: Duration) -> bool {
        timeout(within, stream.read_u8()).await.is_ok()
    }

    #[tokio::test]
    async fn beyond_the_limit_a_connection_waits_for_a_place() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let router = Router::new().route("/", get(|| async { "hi" }));
        let shutdown = CancellationToken::new();
        let mut server = JoinSet::new();
        server.spawn(listen_up_to(2, listener, router, shutdown.clone()));
        let (mut first, mut second) = (ask(&socket).await, ask(&socket).await);
        assert!(is_answered(&mut first, PATIENCE).await);
        assert!(is_answered(&mut second, PATIENCE).await);
        let mut third = ask(&socket).await;
        assert!(!is_answered(&mut third, Duration::from_millis(50)).await);
        drop(first);
        assert!(is_answered(&mut third, PATIENCE).await);
        shutdown.cancel();
        let ended = timeout(PATIENCE, server.join_next()).await.unwrap();
        ended.unwrap().unwrap().unwrap();
    }

    #[tokio::test]
    async fn the_kernel_says_who_asks() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let caller = identify(&ours).unwrap();
        let own = rustix::process::geteuid().as_raw();
        assert_eq!(caller.owner.principal, Principal::unix(own));
        assert_eq!(caller.scope, Scope::Principal);
    }

    #[tokio::test]
    async fn without_descriptors_a_peer_is_turned_away() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let mut spare = Spare::new(&listener);
        let mut peer = UnixStream::connect(&socket).await.unwrap();
        spare.turn_away(&listener).await;
        let end = timeout(PATIENCE, peer.read(&mut [0; 8])).await.unwrap();
        assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
        assert!(spare.0.is_some());
    }
}
