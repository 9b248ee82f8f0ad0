//! Serves a router on a Unix socket, where the kernel identifies the peer and an idle connection
//! causes no wake-ups; or on TCP, where the router authenticates.

mod accept_policy;
mod acceptor;
mod addresses;
mod request_token;
mod shortage;

use std::any::Any;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::Request;
use axum::{Router, middleware};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use ostler_model::owner::{Owner, Principal};
use ostler_model::{Caller, Scope};
use ostler_sys::open_files;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tower::ServiceExt as _;
use tracing::{debug, warn};

pub use self::acceptor::{AcceptedSocket, Acceptor, ConnectionTerms, SingleRequestPermit};
pub use self::addresses::CONNECTIONS_PER_ADDRESS;
use self::addresses::{AddressCounts, AddressGuard, address_block};
pub(crate) use self::request_token::RequestToken;
use self::request_token::request_token;
use self::shortage::SingleRequestOnly;

/// Connections served at once; further ones wait in the kernel's accept queue.
pub const CONNECTIONS: usize = 1_024;
/// The buffers of one connection, in bytes: the longest head of a request, and what waits for a slow
/// client. A thousand of these followers cost 64 MB, with hyper's default 400.
const BUFFER_BYTES: usize = 64 * 1024;
/// How long a TCP peer may take to send the header of its next request, in milliseconds.
pub const HEAD_MS: u64 = 30_000;

/// How long a connection may take to send its first request while others wait for descriptors or
/// permits, in milliseconds.
const FIRST_REQUEST_MS: u64 = 1_000;
/// How long a connection limited to a single request may last, in milliseconds: the request, and
/// the time the client takes to read the response.
const SINGLE_REQUEST_MS: u64 = 30_000;

/// The local address that a TCP peer connected to; an extension of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalAddr(pub IpAddr);

/// The address of a TCP peer, of IPv6 the network of 64 bits; an extension of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PeerAddr(pub(crate) IpAddr);

/// A connection's permit, one of [`CONNECTIONS`]; an extension of its requests. Whatever continues
/// after the response, on an upgraded connection, keeps it.
#[derive(Debug, Clone)]
pub struct ConnectionPermit {
    _guards: Arc<PermitGuards>,
    /// What lives as long as the connection.
    guards: Vec<Arc<dyn Any + Send + Sync>>,
}

impl ConnectionPermit {
    /// The same permit, which also keeps `guard` alive.
    #[must_use]
    pub fn with_guard(mut self, guard: Arc<dyn Any + Send + Sync>) -> Self {
        self.guards.push(guard);
        self
    }
}

#[derive(Debug)]
struct PermitGuards {
    _permit: OwnedSemaphorePermit,
    _tracker: TaskTrackerToken,
    _address_guard: Option<AddressGuard>,
}

/// Serves `router` until `shutdown`; then no new request is accepted, those under way finish, and
/// this returns when none is left. With the same token in the router's
/// [`RestState`](crate::rest::RestState), waits and followers do not delay it.
///
/// # Errors
/// When the socket does not accept any more.
pub async fn listen(
    listener: UnixListener,
    router: Router,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let acceptor = Acceptor::local(listener)?;
    accept_loop(CONNECTIONS, acceptor, UnixTransport, router, shutdown).await
}

/// As [`listen`], on TCP. The router authenticates; a connection whose header takes longer than
/// `head_timeout`, usually [`HEAD_MS`], is closed.
///
/// # Errors
/// As [`listen`].
pub async fn listen_tcp(
    listener: TcpListener,
    head_timeout: Duration,
    router: Router,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let acceptor = Acceptor::network(listener)?;
    let transport = TcpTransport {
        head_timeout,
        addresses: Arc::default(),
    };
    accept_loop(CONNECTIONS, acceptor, transport, router, shutdown).await
}

/// The transport of a listener.
trait ListenerTransport: Send {
    /// The byte stream of a connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Opens the connection with this socket.
    ///
    /// # Errors
    /// A reason for the log, when the peer is not allowed.
    fn open(&self, socket: OwnedFd) -> Result<IncomingStream<Self::Stream>, &'static str>;

    /// How long the header of a request may take; without a timeout there are no timer wake-ups.
    fn head_timeout(&self) -> Option<Duration>;
}

/// An accepted connection.
struct IncomingStream<S> {
    stream: S,
    /// Extensions added to each of its requests.
    extensions: http::Extensions,
    address_guard: Option<AddressGuard>,
}

/// The Unix socket transport.
struct UnixTransport;

impl ListenerTransport for UnixTransport {
    type Stream = UnixStream;

    fn open(&self, socket: OwnedFd) -> Result<IncomingStream<UnixStream>, &'static str> {
        let stream = UnixStream::from_std(socket.into()).map_err(|_| "it cannot be registered")?;
        let mut extensions = http::Extensions::new();
        extensions.insert(peer_caller(&stream)?);
        Ok(IncomingStream {
            stream,
            extensions,
            address_guard: None,
        })
    }

    fn head_timeout(&self) -> Option<Duration> {
        None
    }
}

/// The TCP transport, with its header timeout.
struct TcpTransport {
    head_timeout: Duration,
    addresses: Arc<AddressCounts>,
}

impl ListenerTransport for TcpTransport {
    type Stream = TcpStream;

    fn open(&self, socket: OwnedFd) -> Result<IncomingStream<TcpStream>, &'static str> {
        let gone = "the peer is gone";
        let stream = TcpStream::from_std(socket.into()).map_err(|_| gone)?;
        stream.set_nodelay(true).map_err(|_| gone)?;
        let local = stream.local_addr().map_err(|_| gone)?;
        let peer = stream.peer_addr().map_err(|_| gone)?;
        let address_guard = self.addresses.acquire(peer.ip());
        let address_guard =
            address_guard.ok_or("its address has all connections that one may have")?;
        let mut extensions = http::Extensions::new();
        extensions.insert(LocalAddr(local.ip().to_canonical()));
        extensions.insert(PeerAddr(address_block(peer.ip().to_canonical())));
        Ok(IncomingStream {
            stream,
            extensions,
            address_guard: Some(address_guard),
        })
    }

    fn head_timeout(&self) -> Option<Duration> {
        Some(self.head_timeout)
    }
}

async fn accept_loop(
    limit: usize,
    acceptor: Acceptor,
    transport: impl ListenerTransport,
    router: Router,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let router = router.layer(middleware::from_fn(shortage::limit_requests));
    let connections = TaskTracker::new();
    let permits = Arc::new(Semaphore::new(limit));
    let at_capacity = watch::Sender::new(false);
    let next = async || {
        let permit = match permits.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                at_capacity.send_replace(true);
                let permit = permits.clone().acquire_owned().await;
                at_capacity.send_replace(false);
                permit.map_err(io::Error::other)?
            }
        };
        Ok((permit, acceptor.accept().await?))
    };
    let result = loop {
        let (permit, AcceptedSocket { socket, terms }) =
            match shutdown.run_until_cancelled(next()).await {
                None => break Ok(()),
                Some(Ok(accepted)) => accepted,
                Some(Err(error)) => break Err(error),
            };
        match transport.open(socket) {
            Ok(opened) => {
                let IncomingStream {
                    stream,
                    mut extensions,
                    address_guard,
                } = opened;
                extensions.insert(ConnectionPermit {
                    _guards: Arc::new(PermitGuards {
                        _permit: permit,
                        _tracker: connections.token(),
                        _address_guard: address_guard,
                    }),
                    guards: Vec::new(),
                });
                let context = ConnectionContext {
                    extensions,
                    head_timeout: transport.head_timeout(),
                    at_capacity: at_capacity.subscribe(),
                };
                let connection = serve(stream, terms, router.clone(), context, shutdown.clone());
                connections.spawn(connection);
            }
            Err(reason) => warn!(reason, "connection refused"),
        }
    };
    // Closes the listening socket, so that peers in the accept queue are refused at once.
    drop(acceptor);
    connections.close();
    connections.wait().await;
    result
}

/// The caller at the other end, which must be this process's own user or root.
///
/// # Errors
/// A reason for the log when it is another user or cannot be determined.
pub fn peer_caller(stream: &UnixStream) -> Result<Caller, &'static str> {
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
            channel: ostler_model::RequestChannel::Local,
        },
        scope: Scope::Principal,
        projects: ostler_model::ProjectView::default(),
    })
}

/// Parameters of a connection.
struct ConnectionContext {
    /// Extensions added to each of its requests.
    extensions: http::Extensions,
    /// How long the header of a request may take.
    head_timeout: Option<Duration>,
    /// Whether others wait for a permit.
    at_capacity: watch::Receiver<bool>,
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    terms: ConnectionTerms,
    router: Router,
    mut context: ConnectionContext,
    shutdown: CancellationToken,
) {
    let single_request = matches!(&terms, ConnectionTerms::SingleRequest(_));
    let _dropped_last = terms;
    if !single_request {
        return serve_http1(stream, router, context, shutdown).await;
    }
    context.extensions.insert(SingleRequestOnly);
    let first_request = Duration::from_millis(FIRST_REQUEST_MS);
    context.head_timeout = Some(
        context
            .head_timeout
            .map_or(first_request, |head| head.min(first_request)),
    );
    let serving = serve_http1(stream, router, context, shutdown);
    let limit = Duration::from_millis(SINGLE_REQUEST_MS);
    if timeout(limit, serving).await.is_err() {
        debug!("a connection took longer than its turn");
    }
}

async fn serve_http1(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    context: ConnectionContext,
    shutdown: CancellationToken,
) {
    let ConnectionContext {
        mut extensions,
        head_timeout,
        at_capacity,
    } = context;
    let (request_token, connection_token) = request_token();
    extensions.insert(request_token);
    let has_request = Arc::new(AtomicBool::new(false));
    let close_requested = until_room_is_needed(&has_request, at_capacity);
    let request_flag = Arc::clone(&has_request);
    let service = router.map_request(move |mut request: Request<Incoming>| {
        request_flag.store(true, Ordering::Relaxed);
        request.extensions_mut().extend(extensions.clone());
        request.map(axum::body::Body::new)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(head_timeout)
        .max_buf_size(BUFFER_BYTES);
    let connection = http
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let serving = async {
        tokio::select! {
            result = connection.as_mut() => result,
            () = shutdown.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            () = close_requested => {
                connection.as_mut().graceful_shutdown();
                let first_request = Duration::from_millis(FIRST_REQUEST_MS);
                match timeout(first_request, connection.as_mut()).await {
                    Ok(result) => result,
                    Err(_) if has_request.load(Ordering::Relaxed) => connection.await,
                    Err(_) => {
                        debug!("a connection asked nothing while others waited");
                        Ok(())
                    }
                }
            }
        }
    };
    tokio::select! {
        result = serving => if let Err(error) = result {
            debug!(%error, "connection broke off");
        },
        end = connection_token.outlasted() => {
            debug!(reason = end.as_str(), "a response was not read, and its connection ends");
        }
    }
}

/// Waits until others need the descriptor or the permit of a connection that is idle, or will be
/// once the present response is sent; a new connection has some time for its first request.
async fn until_room_is_needed(has_request: &AtomicBool, mut at_capacity: watch::Receiver<bool>) {
    let first_deadline = Instant::now() + Duration::from_millis(FIRST_REQUEST_MS);
    tokio::select! {
        () = open_files::wait_for_waiter() => {}
        // Once the listener is closed, no connection waits for a permit.
        Ok(_) = at_capacity.wait_for(|crowded| *crowded) => {}
    }
    if !has_request.load(Ordering::Relaxed) {
        sleep_until(first_deadline).await;
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
    async fn beyond_the_limit_a_connection_waits_for_a_slot() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let answers = Arc::new(Semaphore::new(0));
        let handler = {
            let answers = Arc::clone(&answers);
            move || async move {
                answers
                    .acquire()
                    .await
                    .map(|permit| permit.forget())
                    .is_ok()
            }
        };
        let router = Router::new().route("/", get(|| async move { handler().await.to_string() }));
        let shutdown = CancellationToken::new();
        let mut server = JoinSet::new();
        let acceptor = Acceptor::local(listener).unwrap();
        server.spawn(accept_loop(
            2,
            acceptor,
            UnixTransport,
            router,
            shutdown.clone(),
        ));
        let (mut first, mut second) = (ask(&socket).await, ask(&socket).await);
        let mut third = ask(&socket).await;
        answers.add_permits(2);
        assert!(is_answered(&mut first, PATIENCE).await);
        assert!(is_answered(&mut second, PATIENCE).await);
        // These connections are idle now: one gives way.
        answers.add_permits(1);
        assert!(is_answered(&mut third, PATIENCE).await);
        drop((first, second, third));
        shutdown.cancel();
        let ended = timeout(PATIENCE, server.join_next()).await.unwrap();
        ended.unwrap().unwrap().unwrap();
    }

    /// Three connections: one without a request, one with half a header, one with a complete
    /// header.
    #[tokio::test]
    async fn silent_connections_lock_no_other_out() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let router = Router::new().route("/", get(|| async { "hi" }));
        let shutdown = CancellationToken::new();
        let mut server = JoinSet::new();
        let acceptor = Acceptor::local(listener).unwrap();
        server.spawn(accept_loop(
            2,
            acceptor,
            UnixTransport,
            router,
            shutdown.clone(),
        ));
        let mut silent = UnixStream::connect(&socket).await.unwrap();
        let mut half = UnixStream::connect(&socket).await.unwrap();
        half.write_all(&REQUEST[..10]).await.unwrap();
        let mut third = ask(&socket).await;
        assert!(is_answered(&mut third, PATIENCE).await);
        for cut in [&mut silent, &mut half] {
            let end = timeout(PATIENCE, cut.read_u8()).await.unwrap();
            assert!(end.is_err(), "closed without an answer");
        }
        drop(third);
        shutdown.cancel();
        let ended = timeout(PATIENCE, server.join_next()).await.unwrap();
        ended.unwrap().unwrap().unwrap();
    }

    #[tokio::test]
    async fn the_kernel_says_who_asks() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let caller = peer_caller(&ours).unwrap();
        let own = rustix::process::geteuid().as_raw();
        assert_eq!(caller.owner.principal, Principal::unix(own));
        assert_eq!(caller.scope, Scope::Principal);
    }
}
