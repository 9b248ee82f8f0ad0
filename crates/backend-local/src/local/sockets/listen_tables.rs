//! Listening sockets of a network namespace, cached where several services are inspected at the
//! same time.

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::io::Errno;

use super::diag::{self, SockDiag, TcpRow, UnixRow};
use crate::sys::netns::{self, SocketKind};

/// How old a shared result may be, in milliseconds: less than the 5 ms between the output of a service
/// and the scan for the port that it announces.
const FRESH_MS: u64 = 4;
/// The greatest such age where reading is slow, in milliseconds: at most a tenth of the time is
/// spent reading.
const FRESH_MAX_MS: u64 = 250;
/// How many times longer a result is shared than its reading took.
const FRESH_TIMES: u32 = 10;
/// How many namespaces of one execution are cached; others are entered each time.
const NETNS_MAX: usize = 8;
/// State `TCP_LISTEN` in `/proc/<pid>/net/tcp`.
const LISTENING: &str = "0A";

/// The listening sockets of our own network namespace, shared by all readers.
#[derive(Debug, Default)]
pub(in crate::local) struct ListenTables(Mutex<SharedTable>);

#[derive(Debug, Default)]
struct SharedTable {
    diag: Option<SockDiag>,
    /// The rows and the time until which they are shared.
    tcp: Option<(Instant, Arc<[TcpRow]>)>,
}

/// Sock_diag sockets of the foreign network namespaces of one execution. Each keeps its namespace
/// alive: they are dropped with the information on the execution.
#[derive(Debug, Default)]
pub(in crate::local) struct NetnsDiagCache(Mutex<HashMap<u64, Arc<SockDiag>>>);

/// A network namespace, by its inode and a process that is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NetworkNamespace {
    pub(super) inode: u64,
    pub(super) pid: i32,
}

impl NetworkNamespace {
    /// The namespace of a process.
    pub(super) fn of(pid: i32) -> Option<Self> {
        let inode = netns::netns_of(pid)?;
        Some(Self { inode, pid })
    }

    /// Whether it is our own.
    pub(super) fn is_own(self) -> bool {
        netns::own_netns() == Some(self.inode)
    }
}

impl ListenTables {
    /// TCP listeners of a network namespace; from proc(5) where sock_diag is not available.
    pub(super) fn tcp(
        &self,
        network: NetworkNamespace,
        netns_diags: &NetnsDiagCache,
    ) -> Arc<[TcpRow]> {
        let rows = if network.is_own() {
            self.own_tcp()
        } else {
            netns_diags.query(network, SockDiag::tcp).map(Arc::from)
        };
        rows.unwrap_or_else(|_refused| rows_from_proc(&network.pid.to_string()).into())
    }

    /// Listeners on named unix sockets there; nothing where sock_diag is not available.
    pub(super) fn unix(
        &self,
        network: NetworkNamespace,
        netns_diags: &NetnsDiagCache,
    ) -> Vec<UnixRow> {
        let rows = if network.is_own() {
            SockDiag::open().and_then(|diag| diag.unix())
        } else {
            netns_diags.query(network, SockDiag::unix)
        };
        rows.unwrap_or_default()
    }

    /// TCP listeners of our own namespace, read now.
    pub(super) fn own_tcp_uncached(&self) -> Arc<[TcpRow]> {
        self.0.lock().tcp = None;
        self.own_tcp()
            .unwrap_or_else(|_refused| rows_from_proc("self").into())
    }

    /// The shared rows of the same, or why sock_diag is not available.
    pub(super) fn own_tcp(&self) -> Result<Arc<[TcpRow]>, Errno> {
        // Held while reading: a concurrent caller waits for this result and shares it.
        let mut shared = self.0.lock();
        if let Some((until, rows)) = &shared.tcp
            && Instant::now() < *until
        {
            return Ok(Arc::clone(rows));
        }
        shared.tcp = None;
        let diag = shared.diag.take().map_or_else(SockDiag::open, Ok)?;
        let requested_at = Instant::now();
        let rows: Arc<[TcpRow]> = diag.tcp()?.into();
        // Only a socket whose reply was complete is used again.
        shared.diag = Some(diag);
        let fresh = (requested_at.elapsed() * FRESH_TIMES).clamp(
            Duration::from_millis(FRESH_MS),
            Duration::from_millis(FRESH_MAX_MS),
        );
        shared.tcp = Some((requested_at + fresh, Arc::clone(&rows)));
        Ok(rows)
    }
}

impl NetnsDiagCache {
    fn query<T>(
        &self,
        network: NetworkNamespace,
        request: impl Fn(&SockDiag) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let diag = self.diag_for(network)?;
        let result = request(&diag);
        if result.is_err() {
            self.0.lock().remove(&network.inode);
        }
        result
    }

    fn diag_for(&self, network: NetworkNamespace) -> Result<Arc<SockDiag>, Errno> {
        if let Some(existing) = self.0.lock().get(&network.inode) {
            return Ok(Arc::clone(existing));
        }
        let (family, kind, protocol) = diag::socket_params();
        let socket_kind = SocketKind {
            family,
            kind,
            protocol,
        };
        let socket = netns::socket_in_netns(network.pid, &socket_kind)?;
        rustix::io::ioctl_fionbio(&socket, false)?;
        let diag = Arc::new(SockDiag::from_socket(socket));
        let mut diags = self.0.lock();
        if diags.len() < NETNS_MAX {
            diags.insert(network.inode, Arc::clone(&diag));
        }
        Ok(diag)
    }
}

/// TCP listeners in the network namespace of a process, from proc(5).
fn rows_from_proc(pid: &str) -> Vec<TcpRow> {
    let tables = ["tcp", "tcp6"]
        .map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default());
    let rows = tables.iter().flat_map(|text| text.lines().skip(1));
    rows.filter_map(parse_listening_row).collect()
}

/// One row of `/proc/net/tcp*`, if it listens.
fn parse_listening_row(row: &str) -> Option<TcpRow> {
    let mut fields = row.split_ascii_whitespace();
    let local = fields.nth(1)?;
    let state = fields.nth(1)?;
    let (_, accept_queue) = fields.next()?.split_once(':')?;
    let inode = fields.nth(4)?.parse().ok()?;
    (state == LISTENING).then_some(())?;
    let (address, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some(TcpRow {
        inode,
        address: SocketAddr::new(parse_ip(address)?, port),
        accept_queue: u32::from_str_radix(accept_queue, 16).ok()?,
    })
}

/// Words of four bytes, each in the machine's own order.
fn parse_ip(hex: &str) -> Option<IpAddr> {
    let words: Option<Vec<[u8; 4]>> = hex
        .as_bytes()
        .chunks(8)
        .map(|word| {
            let word = std::str::from_utf8(word).ok()?;
            Some(u32::from_str_radix(word, 16).ok()?.to_ne_bytes())
        })
        .collect();
    let bytes = words?.concat();
    match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(four) => Some(IpAddr::V4(Ipv4Addr::from(four))),
        Err(_) => {
            let sixteen = <[u8; 16]>::try_from(bytes.as_slice()).ok()?;
            // As in the replies of sock_diag.
            Some(IpAddr::V6(Ipv6Addr::from(sixteen)).to_canonical())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn rows_of_both_families() {
        let four = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  \
                    0 0 12345 1 0000000000000000 100 0 0 10 0";
        let row = |address, inode| {
            Some(TcpRow {
                inode,
                address,
                accept_queue: 0,
            })
        };
        let expected = SocketAddr::from(([127, 0, 0, 1], 8080));
        assert_eq!(parse_listening_row(four), row(expected, 12345));
        let six = "   1: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 \
                   0A 00000000:00000000 00:00000000 00000000 0 0 77 1 0 100 0 0 10 0";
        let expected = SocketAddr::from((Ipv6Addr::LOCALHOST, 80));
        assert_eq!(parse_listening_row(six), row(expected, 77));
        assert_eq!(parse_listening_row(&four.replace(" 0A ", " 01 ")), None);
        assert_eq!(parse_listening_row("nonsense"), None);
    }

    #[test]
    fn both_ways_tell_the_same() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("bound");
        let of = |rows: &[TcpRow]| rows.iter().find(|it| it.address == address).copied();
        let actual = of(&ListenTables::default().own_tcp_uncached());
        assert!(actual.is_some());
        assert_eq!(actual, of(&rows_from_proc("self")));
    }
}
