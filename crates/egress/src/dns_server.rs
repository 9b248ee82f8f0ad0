//! The name server: answers queries for allowed names with their fake addresses, over UDP and TCP.

use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};

use crate::decision_log::{DecisionEntry, EgressDecision};
use crate::dns::{self, DnsQuery, DnsReply, QUERY_BYTES, RecordKind};
use crate::proxy::EgressProxy;
use crate::relay::reset;

/// How long a TCP connection may stay silent, in milliseconds.
const TCP_IDLE_MS: u64 = 10_000;

/// Answers datagrams until the proxy ends.
pub(crate) async fn serve_udp(proxy: Rc<EgressProxy>, socket: UdpSocket) {
    let mut buffer = [0; QUERY_BYTES];
    loop {
        // An error concerns a reply sent before (its port was closed), not this query.
        let Ok((length, peer)) = socket.recv_from(&mut buffer).await else {
            continue;
        };
        if let Some(response) = handle_query(&proxy, &buffer[..length]) {
            // A client whose receive buffer is full gets no reply.
            let _sent = socket.try_send_to(&response, peer);
        }
    }
}

/// Answers one connection's questions, one after another.
pub(crate) async fn serve_tcp(proxy: Rc<EgressProxy>, mut stream: TcpStream) {
    let idle = Duration::from_millis(TCP_IDLE_MS);
    let mut buffer = [0; QUERY_BYTES];
    loop {
        let query = tokio::time::timeout(idle, serve_tcp_query(&proxy, &mut stream, &mut buffer));
        if !matches!(query.await, Ok(Some(()))) {
            return reset(&stream);
        }
    }
}

/// Answers one query; none at the end of the connection or after the idle timeout.
async fn serve_tcp_query(
    proxy: &EgressProxy,
    stream: &mut TcpStream,
    buffer: &mut [u8],
) -> Option<()> {
    let length = usize::from(stream.read_u16().await.ok()?);
    let query = buffer.get_mut(..length)?;
    stream.read_exact(query).await.ok()?;
    let mut message = vec![0; 2];
    message.extend(handle_query(proxy, query)?);
    let length = u16::try_from(message.len() - 2).ok()?;
    message[..2].copy_from_slice(&length.to_be_bytes());
    stream.write_all(&message).await.ok()
}

fn handle_query(proxy: &EgressProxy, bytes: &[u8]) -> Option<Vec<u8>> {
    match DnsQuery::parse(bytes) {
        Ok(query) => Some(query.response(decide(proxy, &query))),
        Err(unreadable) => {
            proxy.log.count(|counts| counts.names_refused += 1);
            dns::error_response(unreadable)
        }
    }
}

fn decide(proxy: &EgressProxy, query: &DnsQuery) -> DnsReply {
    let refuse = |reason| {
        proxy.log.record(&DecisionEntry {
            host: &query.name,
            port: None,
            address: None,
            decision: EgressDecision::Refused,
            reason,
        });
        DnsReply::Prohibited
    };
    let Ok(name) = ostler_model::host_pattern::canonical_name(&query.name) else {
        return refuse("not a host name");
    };
    let local = name == "localhost" || name.ends_with(".localhost");
    if !local && !proxy.rules.allows_name(&name) {
        return refuse("not in the allow list");
    }
    match query.record_kind() {
        RecordKind::Other => DnsReply::Empty,
        RecordKind::Address if local => DnsReply::Address(std::net::Ipv4Addr::LOCALHOST),
        RecordKind::Address => match proxy.fake_ips.borrow_mut().assign(&name, Instant::now()) {
            Ok(address) => {
                proxy.log.count(|counts| counts.names_allowed += 1);
                DnsReply::Address(address)
            }
            Err(crate::fake_ip::FakeIpPoolFull) => {
                proxy.log.record(&DecisionEntry {
                    host: &name,
                    port: None,
                    address: None,
                    decision: EgressDecision::Failed,
                    reason: "too many names at a time",
                });
                DnsReply::Failed
            }
        },
    }
}
