//! Runs one probe.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ostler_backend::Backend;
use ostler_model::service::PROBE_TIMEOUT_MS;
use ostler_model::{ExecutionId, SnapshotRequest};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::exec::{self, ExecContext};
use super::greeting;
use super::http::{Exchange, HttpRequest, exchange};
use super::tls::TlsClient;
use crate::readiness::{ProbeOutcome, ProbeRequest};

/// Servers respond 400 to plain HTTP on a TLS port; such a response is checked.
const BAD_REQUEST: u16 = 400;
/// How long such a one may think about a request, in milliseconds.
const RESPONSE_TIMEOUT_MS: u64 = 5_000;
/// Which part of the limit a server that hung up on plain HTTP may take to shake hands: it was
/// quick before, and one that waits for the end of a line never does.
const HANDSHAKE_DIVISOR: u32 = 6;

/// Runs probes of services.
#[derive(Debug, Clone)]
pub(crate) struct Prober {
    backend: Arc<dyn Backend>,
    tls: TlsClient,
    pub(super) limit: Duration,
}

/// A request at an address of a tree.
#[derive(Debug)]
struct HttpProbe {
    id: ExecutionId,
    address: SocketAddr,
    host: String,
    request: HttpRequest,
    /// Whether it may speak another protocol.
    is_protocol_unknown: bool,
}

/// The result of one connection.
#[derive(Debug)]
enum HttpAttempt {
    /// There was none.
    ConnectFailed(io::Error),
    /// TLS was tried, and is not spoken.
    NoTls,
    /// It was taken.
    Reached(Exchange),
    /// It talked first.
    BannerSent,
    /// No reply within this many milliseconds.
    Silent(u64),
}

impl Prober {
    /// A prober that connects through this backend.
    pub(crate) fn new(backend: Arc<dyn Backend>) -> Self {
        Self {
            backend,
            tls: TlsClient::new(),
            limit: Duration::from_millis(PROBE_TIMEOUT_MS),
        }
    }

    /// The same with a shorter limit for each probe.
    pub(crate) fn with_limit(&self, limit: Duration) -> Self {
        let limit = self.limit.min(limit);
        Self {
            limit,
            ..self.clone()
        }
    }

    /// Carries one probe out; ends by itself after
    /// [`PROBE_TIMEOUT_MS`](ostler_model::service::PROBE_TIMEOUT_MS) at the latest. Dropped, it stops.
    pub(crate) async fn probe(
        &self,
        id: ExecutionId,
        request: ProbeRequest,
        exec: ExecContext,
    ) -> ProbeOutcome {
        match exec.secrets.reveal(request) {
            ProbeRequest::Exec { argv } => exec::run(argv, exec, self.limit).await,
            ProbeRequest::Tcp { address } => self.with_timeout(self.tcp(id, address)).await,
            ProbeRequest::Http {
                address,
                host,
                path,
                tls,
                unsure,
            } => {
                let probe = HttpProbe::new(id, address, host, path, unsure);
                Box::pin(self.with_timeout(self.http(&probe, tls))).await
            }
        }
    }

    async fn with_timeout(&self, answer: impl Future<Output = ProbeOutcome>) -> ProbeOutcome {
        timeout(self.limit, answer)
            .await
            .unwrap_or_else(|_| ProbeOutcome::Failed {
                detail: format!("no answer within {} s", self.limit.as_secs()),
            })
    }

    async fn tcp(&self, id: ExecutionId, address: SocketAddr) -> ProbeOutcome {
        match self.dial(id, address).await {
            Ok(_closed_at_once) => ProbeOutcome::Accepted {
                detail: "connection taken".to_owned(),
            },
            Err(error) => failed(&error),
        }
    }

    /// Tries the other of plain and TLS once, where the first was inconclusive.
    async fn http(&self, probe: &HttpProbe, tls: bool) -> ProbeOutcome {
        if !probe.request.is_valid() {
            return ProbeOutcome::Failed {
                detail: "the path cannot be sent".to_owned(),
            };
        }
        let first = self.attempt(probe, tls, 1).await;
        if first.is_conclusive(tls) {
            return first.into_result(tls);
        }
        let second = self.attempt(probe, !tls, HANDSHAKE_DIVISOR).await;
        match (&first, &second) {
            (_, HttpAttempt::Reached(Exchange::Status { .. })) => second.into_result(!tls),
            (HttpAttempt::Reached(Exchange::Status { .. }), _) => first.into_result(tls),
            // The listener closed between the two attempts: the second result counts.
            (_, HttpAttempt::ConnectFailed(_)) => second.into_result(!tls),
            // The response without TLS is the server's own.
            (HttpAttempt::NoTls, _) => second.into_result(!tls),
            (_, HttpAttempt::NoTls) => first.into_result(tls),
            (_, HttpAttempt::Reached(_) | HttpAttempt::BannerSent | HttpAttempt::Silent(_)) => {
                second.into_result(!tls)
            }
        }
    }

    /// Shakes hands within this part of the limit.
    async fn attempt(&self, probe: &HttpProbe, tls: bool, divisor: u32) -> HttpAttempt {
        let stream = match self.dial(probe.id, probe.address).await {
            Ok(stream) => stream,
            Err(error) => return HttpAttempt::ConnectFailed(error),
        };
        if !tls && probe.is_protocol_unknown {
            return self.probe_unknown_protocol(stream, probe).await;
        }
        if !tls {
            return HttpAttempt::Reached(exchange(stream, &probe.request).await);
        }
        let handshake = self.tls.connect(&probe.host, stream);
        match timeout(self.limit / divisor, handshake).await {
            Ok(Ok(stream)) => HttpAttempt::Reached(exchange(stream, &probe.request).await),
            Ok(Err(_)) | Err(_) => HttpAttempt::NoTls,
        }
    }

    /// Asks one of which it is not known that it speaks HTTP: only where it does not send a
    /// greeting, and not for long.
    async fn probe_unknown_protocol(
        &self,
        mut stream: TcpStream,
        probe: &HttpProbe,
    ) -> HttpAttempt {
        if greeting::is_sent(&stream, self.is_accepted(probe)).await {
            return HttpAttempt::BannerSent;
        }
        let silence = Duration::from_millis(RESPONSE_TIMEOUT_MS);
        if silence >= self.limit {
            return HttpAttempt::Reached(exchange(&mut stream, &probe.request).await);
        }
        match timeout(silence, exchange(&mut stream, &probe.request)).await {
            Ok(answer) => HttpAttempt::Reached(answer),
            Err(_) => HttpAttempt::Silent(RESPONSE_TIMEOUT_MS),
        }
    }

    /// Whether no connection waits in the accept queue of this port.
    async fn is_accepted(&self, probe: &HttpProbe) -> bool {
        let request = SnapshotRequest {
            listeners: true,
            ..SnapshotRequest::default()
        };
        let Ok(tree) = self.backend.snapshot(probe.id, request).await else {
            return false;
        };
        let port = probe.address.port();
        let sockets = tree.listeners.iter();
        let queues: Vec<u32> = sockets
            .filter(|socket| socket.address.port() == port)
            .map(|socket| socket.waiting)
            .collect();
        !queues.is_empty() && queues.iter().all(|waiting| *waiting == 0)
    }

    async fn dial(&self, id: ExecutionId, address: SocketAddr) -> io::Result<TcpStream> {
        let (first, second) = dial_addresses(address);
        let socket = match (self.backend.connect(id, first).await, second) {
            (Err(_), Some(second)) => self.backend.connect(id, second).await?,
            (dialled, _) => dialled?,
        };
        let stream = std::net::TcpStream::from(socket);
        stream.set_nonblocking(true)?;
        TcpStream::from_std(stream)
    }
}

impl HttpProbe {
    fn new(
        id: ExecutionId,
        address: SocketAddr,
        host: String,
        path: String,
        is_protocol_unknown: bool,
    ) -> Self {
        let port = address.port();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let header = match bare.parse() {
            Ok(IpAddr::V6(ip)) => format!("[{ip}]:{port}"),
            Ok(IpAddr::V4(_)) | Err(_) => format!("{bare}:{port}"),
        };
        Self {
            id,
            address,
            host: bare.to_owned(),
            request: HttpRequest { host: header, path },
            is_protocol_unknown,
        }
    }
}

impl HttpAttempt {
    /// Whether the other way need not be tried.
    fn is_conclusive(&self, tls: bool) -> bool {
        match self {
            Self::ConnectFailed(_) | Self::BannerSent | Self::Silent(_) => true,
            Self::NoTls => false,
            Self::Reached(Exchange::Status { status, .. }) => tls || *status != BAD_REQUEST,
            Self::Reached(Exchange::NoHttp) => true,
            Self::Reached(Exchange::Closed | Exchange::TlsAlert) => false,
        }
    }

    fn into_result(self, tls: bool) -> ProbeOutcome {
        let detail = match self {
            Self::ConnectFailed(error) => return failed(&error),
            Self::Reached(Exchange::Status { status, ms }) => {
                return ProbeOutcome::Http { status, tls, ms };
            }
            Self::Silent(ms) => return ProbeOutcome::Silent { ms },
            Self::BannerSent => "it talks first",
            Self::Reached(Exchange::Closed) => "closed without an answer",
            Self::NoTls | Self::Reached(Exchange::TlsAlert | Exchange::NoHttp) => "speaks no HTTP",
        };
        ProbeOutcome::Accepted {
            detail: detail.to_owned(),
        }
    }
}

fn failed(error: &io::Error) -> ProbeOutcome {
    let gone = error.kind() == io::ErrorKind::NotFound;
    let detail = match gone {
        true => "the service is gone".to_owned(),
        false => error.kind().to_string(),
    };
    ProbeOutcome::Failed { detail }
}

/// Where a socket bound there is reached, and where else: one bound to every address of IPv6
/// takes IPv4 too, and some hosts have no loopback of IPv6.
fn dial_addresses(address: SocketAddr) -> (SocketAddr, Option<SocketAddr>) {
    let at = |ip: IpAddr| SocketAddr::new(ip, address.port());
    let four = at(Ipv4Addr::LOCALHOST.into());
    match address.ip().to_canonical() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => (four, None),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => (at(Ipv6Addr::LOCALHOST.into()), Some(four)),
        IpAddr::V4(ip) => (at(ip.into()), None),
        // With its scope, without which link-local addresses lead nowhere.
        IpAddr::V6(_) => (address, None),
    }
}
