//! The host's network: resolving names and dialling addresses.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The most concurrent name resolutions; each occupies a thread.
pub(crate) const RESOLVING_MAX: usize = 8;
/// How long a name may take, in milliseconds.
pub(crate) const RESOLVE_MS: u64 = 10_000;
/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;
/// How long a connection attempt may take over all addresses, in milliseconds.
const DIAL_TIMEOUT_MS: u64 = 10_000;
/// How long one address is tried alone before the next is tried concurrently (RFC 8305), in
/// milliseconds.
const STAGGER_MS: u64 = 250;

/// The future of a name resolution.
pub type ResolveFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>>>>;

/// Resolves names outside the jail.
pub trait Resolve: fmt::Debug {
    /// The addresses of a name, which is in lower case and has no final dot.
    fn resolve(&self, name: &str) -> ResolveFuture;
}

/// The resolver and the address policy of the proxy. Constructed by the role's entry point and by
/// nothing else: no request and no configuration reaches it.
#[derive(Debug)]
pub struct Upstream {
    /// How names are resolved.
    pub resolver: Box<dyn Resolve>,
    /// Addresses that may be dialled although they are special. Always false in production; tests,
    /// which only connect to their own machine, allow a part of the loopback.
    pub allow_special: fn(IpAddr) -> bool,
}

impl Upstream {
    /// The host's resolver, and no exceptions.
    #[must_use]
    pub fn host() -> Self {
        Self {
            resolver: Box::new(HostResolver::default()),
            allow_special: |_| false,
        }
    }
}

/// getaddrinfo(3): what the host itself would use, its hosts file and name services included.
#[derive(Debug, Clone)]
struct HostResolver {
    permits: Arc<Semaphore>,
}

impl Default for HostResolver {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(RESOLVING_MAX)),
        }
    }
}

impl Resolve for HostResolver {
    fn resolve(&self, name: &str) -> ResolveFuture {
        let (permits, name) = (Arc::clone(&self.permits), name.to_owned());
        Box::pin(async move {
            let permit = permits.acquire_owned().await.map_err(io::Error::other)?;
            let task = tokio::task::spawn_blocking(move || {
                // Owned by the thread: a caller that stops waiting does not release it.
                let _permit = permit;
                let resolved = (name.as_str(), 0).to_socket_addrs()?;
                Ok(resolved.map(|address| address.ip()).collect())
            });
            task.await.map_err(io::Error::other)?
        })
    }
}

/// Whether an address is one of this machine's own, whatever range it is in: the kernel then
/// takes it for the source, too.
pub(crate) fn is_own_address(address: IpAddr) -> bool {
    const ANY_PORT: u16 = 9;
    let any: IpAddr = match address {
        IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        // Sends nothing: connecting a datagram socket only looks up the route.
        socket.connect((address, ANY_PORT))?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip() == address)
}

/// Connects to the first of these addresses that answers, one family after the other in turn.
pub(crate) async fn dial(addresses: &[IpAddr], port: u16) -> io::Result<(TcpStream, IpAddr)> {
    let limit = Duration::from_millis(DIAL_TIMEOUT_MS);
    let dialled = tokio::time::timeout(limit, dial_all(interleave_families(addresses), port)).await;
    dialled.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn dial_all(addresses: Vec<IpAddr>, port: u16) -> io::Result<(TcpStream, IpAddr)> {
    let mut failed: io::Error = io::ErrorKind::AddrNotAvailable.into();
    let mut remaining = addresses.into_iter();
    let mut attempts = JoinSet::new();
    let mut next = Instant::now();
    loop {
        if let Some(address) = remaining.as_slice().first().copied()
            && (attempts.is_empty() || next <= Instant::now())
        {
            remaining.next();
            next = Instant::now() + Duration::from_millis(STAGGER_MS);
            attempts.spawn(async move {
                let stream = TcpStream::connect(SocketAddr::new(address, port)).await?;
                io::Result::Ok((stream, address))
            });
        }
        let has_more = !remaining.as_slice().is_empty();
        tokio::select! {
            attempt = attempts.join_next() => match attempt {
                Some(Ok(Ok(connected))) => return Ok(connected),
                Some(Ok(Err(error))) => failed = error,
                Some(Err(error)) => failed = io::Error::other(error),
                None if has_more => {}
                None => return Err(failed),
            },
            () = tokio::time::sleep_until(next), if has_more => {}
        }
    }
}

/// Addresses with alternating families, beginning with the family the resolver put first.
fn interleave_families(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let leads = |address: &&IpAddr| {
        addresses
            .first()
            .is_some_and(|first| first.is_ipv4() == address.is_ipv4())
    };
    let mut one = addresses.iter().filter(leads);
    let mut other = addresses.iter().filter(|address| !leads(address));
    let mut interleaved = Vec::with_capacity(ADDRESSES_MAX);
    loop {
        let before = interleaved.len();
        interleaved.extend(one.next());
        interleaved.extend(other.next());
        if interleaved.len() == before || interleaved.len() >= ADDRESSES_MAX {
            interleaved.truncate(ADDRESSES_MAX);
            return interleaved;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns_and_there_is_an_end() {
        let (four, six) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([0_u16; 8]));
        assert_eq!(interleave_families(&[six, six, four]), [six, four, six]);
        assert_eq!(interleave_families(&[four, four]), [four, four]);
        assert_eq!(interleave_families(&[]), [] as [IpAddr; 0]);
        assert_eq!(interleave_families(&[four; 100]).len(), ADDRESSES_MAX);
    }

    #[test]
    fn this_machines_addresses_are_its_own() {
        assert!(is_own_address([127, 0, 0, 1].into()));
        assert!(!is_own_address([192, 0, 2, 1].into()));
    }

    #[tokio::test]
    async fn an_address_that_refuses_does_not_stand_in_the_way() {
        let listener = tokio::net::TcpListener::bind("127.77.0.2:0").await;
        let listener = listener.expect("loopback");
        let port = listener.local_addr().expect("bound").port();
        let addresses = [[127, 77, 0, 1].into(), [127, 77, 0, 2].into()];
        let (_, address) = dial(&addresses, port).await.expect("the second answers");
        assert_eq!(address, addresses[1]);
        let error = dial(&addresses[..1], port).await.expect_err("nobody there");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
