//! One probe.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ostler_model::ExecutionId;
use ostler_model::service::PROBE_MS;
use ostler_process::Place;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::exec::{self, ExecProbe};
use super::http::{Exchange, Request, exchange};
use super::tls::Tls;
use crate::readiness::{Answered, ProbeOrder};

/// Servers answer 400 to plain HTTP on a port that wants TLS; such an answer is checked.
const BAD_REQUEST: u16 = 400;
/// How long one that may speak something else is listened to before it is spoken to, in
/// milliseconds.
const GREETING_MS: u64 = 100;
/// How long such a one may think about a request, in milliseconds.
const SILENCE_MS: u64 = 5_000;
/// Which part of the limit a server that hung up on plain HTTP may take to shake hands: it was
/// quick before, and one that waits for the end of a line never does.
const HANDSHAKE_PART: u32 = 6;

/// Carries out probes of services.
#[derive(Debug, Clone)]
pub(crate) struct Prober {
    place: Arc<dyn Place>,
    tls: Tls,
    pub(super) limit: Duration,
}

/// A request at an address of a tree.
#[derive(Debug)]
struct Call {
    id: ExecutionId,
    address: SocketAddr,
    host: String,
    request: Request,
    /// Whether it may speak something else.
    unsure: bool,
}

/// How one connection went.
#[derive(Debug)]
enum Attempt {
    /// There was none.
    Unreached(io::Error),
    /// TLS was tried, and is not spoken.
    NoTls,
    /// It was taken.
    Reached(Exchange),
    /// It talked first.
    Greeted,
    /// It said nothing for so many milliseconds.
    Silent(u64),
}

impl Prober {
    /// Through this place.
    pub(crate) fn new(place: Arc<dyn Place>) -> Self {
        Self {
            place,
            tls: Tls::new(),
            limit: Duration::from_millis(PROBE_MS),
        }
    }

    /// The same with no more time for each probe than this.
    pub(crate) fn within(&self, limit: Duration) -> Self {
        let limit = self.limit.min(limit);
        Self {
            limit,
            ..self.clone()
        }
    }

    /// Carries one probe out; ends by itself after
    /// [`PROBE_MS`](ostler_model::service::PROBE_MS) at the latest. Dropped, it stops.
    pub(crate) async fn probe(
        &self,
        id: ExecutionId,
        order: ProbeOrder,
        exec: ExecProbe,
    ) -> Answered {
        match order {
            ProbeOrder::Exec { argv } => exec::run(argv, exec, self.limit).await,
            ProbeOrder::Tcp { address } => self.in_time(self.tcp(id, address)).await,
            ProbeOrder::Http {
                address,
                host,
                path,
                tls,
                unsure,
            } => {
                let call = Call::new((id, address), host, path, unsure);
                Box::pin(self.in_time(self.http(&call, tls))).await
            }
        }
    }

    async fn in_time(&self, answer: impl Future<Output = Answered>) -> Answered {
        timeout(self.limit, answer)
            .await
            .unwrap_or_else(|_| Answered::Failed {
                detail: format!("no answer within {} s", self.limit.as_secs()),
            })
    }

    async fn tcp(&self, id: ExecutionId, address: SocketAddr) -> Answered {
        match self.dial(id, address).await {
            Ok(_closed_at_once) => Answered::Accepted {
                detail: "connection taken".to_owned(),
            },
            Err(error) => failed(&error),
        }
    }

    /// Tries the other of plain and TLS once, where the first did not tell.
    async fn http(&self, call: &Call, tls: bool) -> Answered {
        if !call.request.is_sound() {
            return Answered::Failed {
                detail: "the path cannot be sent".to_owned(),
            };
        }
        let first = self.attempt(call, tls, 1).await;
        if first.tells(tls) {
            return first.answer(tls);
        }
        let second = self.attempt(call, !tls, HANDSHAKE_PART).await;
        match (&first, &second) {
            (_, Attempt::Reached(Exchange::Status { .. })) => second.answer(!tls),
            (Attempt::Reached(Exchange::Status { .. }), _) => first.answer(tls),
            // Gone between the two: what is so now counts.
            (_, Attempt::Unreached(_)) => second.answer(!tls),
            // What was said without TLS is the server's own.
            (Attempt::NoTls, _) => second.answer(!tls),
            (_, Attempt::NoTls) => first.answer(tls),
            (_, Attempt::Reached(_) | Attempt::Greeted | Attempt::Silent(_)) => second.answer(!tls),
        }
    }

    /// Shakes hands within this part of the limit.
    async fn attempt(&self, call: &Call, tls: bool, part: u32) -> Attempt {
        let stream = match self.dial(call.id, call.address).await {
            Ok(stream) => stream,
            Err(error) => return Attempt::Unreached(error),
        };
        if !tls && call.unsure {
            return carefully(stream, &call.request, self.limit).await;
        }
        if !tls {
            return Attempt::Reached(exchange(stream, &call.request).await);
        }
        let handshake = self.tls.connect(&call.host, stream);
        match timeout(self.limit / part, handshake).await {
            Ok(Ok(stream)) => Attempt::Reached(exchange(stream, &call.request).await),
            Ok(Err(_)) | Err(_) => Attempt::NoTls,
        }
    }

    async fn dial(&self, id: ExecutionId, address: SocketAddr) -> io::Result<TcpStream> {
        let (first, second) = reachable(address);
        let socket = match (self.place.dial(id, first).await, second) {
            (Err(_), Some(second)) => self.place.dial(id, second).await?,
            (dialled, _) => dialled?,
        };
        let stream = std::net::TcpStream::from(socket);
        stream.set_nonblocking(true)?;
        TcpStream::from_std(stream)
    }
}

impl Call {
    fn new(
        (id, address): (ExecutionId, SocketAddr),
        host: String,
        path: String,
        unsure: bool,
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
            request: Request { host: header, path },
            unsure,
        }
    }
}

impl Attempt {
    /// Whether the other way need not be tried.
    fn tells(&self, tls: bool) -> bool {
        match self {
            Self::Unreached(_) | Self::Greeted | Self::Silent(_) => true,
            Self::NoTls => false,
            Self::Reached(Exchange::Status { status, .. }) => tls || *status != BAD_REQUEST,
            Self::Reached(Exchange::NoHttp) => true,
            Self::Reached(Exchange::Closed | Exchange::Alert) => false,
        }
    }

    fn answer(self, tls: bool) -> Answered {
        let detail = match self {
            Self::Unreached(error) => return failed(&error),
            Self::Reached(Exchange::Status { status, ms }) => {
                return Answered::Http { status, tls, ms };
            }
            Self::Silent(ms) => return Answered::Silent { ms },
            Self::Greeted => "it talks first",
            Self::Reached(Exchange::Closed) => "closed without an answer",
            Self::NoTls | Self::Reached(Exchange::Alert | Exchange::NoHttp) => "speaks no HTTP",
        };
        Answered::Accepted {
            detail: detail.to_owned(),
        }
    }
}

/// Asks one of which it is not known that it speaks HTTP: only where it does not talk first, as
/// mail, files, shells and databases do, and not for long.
async fn carefully(mut stream: TcpStream, request: &Request, limit: Duration) -> Attempt {
    let greeting = Duration::from_millis(GREETING_MS);
    let mut byte = [0];
    if let Ok(Ok(1..)) = timeout(greeting, stream.peek(&mut byte)).await {
        return Attempt::Greeted;
    }
    let silence = Duration::from_millis(SILENCE_MS);
    if silence >= limit {
        return Attempt::Reached(exchange(&mut stream, request).await);
    }
    match timeout(silence, exchange(&mut stream, request)).await {
        Ok(answer) => Attempt::Reached(answer),
        Err(_) => Attempt::Silent(SILENCE_MS),
    }
}

fn failed(error: &io::Error) -> Answered {
    let gone = error.kind() == io::ErrorKind::NotFound;
    let detail = match gone {
        true => "the service is gone".to_owned(),
        false => error.kind().to_string(),
    };
    Answered::Failed { detail }
}

/// Where a socket bound there is reached, and where else: one bound to every address of IPv6
/// takes IPv4 too, and some hosts have no loopback of IPv6.
fn reachable(address: SocketAddr) -> (SocketAddr, Option<SocketAddr>) {
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
