//! What every task of the proxy uses: rules, fake addresses, the log, limits on connections.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::decision_log::DecisionLog;
use crate::fake_ip::FakeIpPool;
use crate::relay::OpenSenders;
use crate::rules::EgressRules;
use crate::upstream::Upstream;

/// How many outbound connections are handled at a time; further ones wait in the kernel's queues.
const CONNECTIONS_MAX: usize = 512;
/// How many DNS connections are served at a time; further ones are reset.
const DNS_CONNECTIONS_MAX: usize = 32;
/// Descriptors other than those of connections and listeners: forwards and their connections, the
/// runtime's own.
const OTHER_DESCRIPTORS: usize = 512;
/// The least number of connections with which the proxy starts.
const CONNECTIONS_MIN: usize = 8;
/// How long accepting pauses when the kernel has no descriptor or memory left, in milliseconds.
const ACCEPT_BACKOFF_MS: u64 = 100;

/// State shared by every task of the proxy.
#[derive(Debug)]
pub(crate) struct EgressProxy {
    pub(crate) rules: EgressRules,
    pub(crate) fake_ips: RefCell<FakeIpPool>,
    pub(crate) log: DecisionLog,
    pub(crate) upstream: Upstream,
    pub(crate) tasks: TaskTracker,
    pub(crate) senders: OpenSenders,
    /// For outbound connections.
    pub(crate) permits: Arc<Semaphore>,
    /// For DNS connections.
    pub(crate) dns_permits: Arc<Semaphore>,
}

impl EgressProxy {
    /// The state of a proxy with so many listeners that has no connections yet.
    pub(crate) fn new(
        rules: EgressRules,
        log: DecisionLog,
        upstream: Upstream,
        listeners: usize,
    ) -> Self {
        Self {
            rules,
            fake_ips: RefCell::default(),
            log,
            upstream,
            tasks: TaskTracker::new(),
            senders: OpenSenders::default(),
            permits: Arc::new(Semaphore::new(connection_limit(listeners))),
            dns_permits: Arc::new(Semaphore::new(DNS_CONNECTIONS_MAX)),
        }
    }

    /// The next connection; none after an error, and then not at once.
    pub(crate) async fn accept(&self, listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
        match listener.accept().await {
            Ok(accepted) => Some(accepted),
            Err(_) => {
                let retry_at =
                    tokio::time::Instant::now() + Duration::from_millis(ACCEPT_BACKOFF_MS);
                tokio::time::sleep_until(retry_at).await;
                None
            }
        }
    }
}

/// Raises the soft limit of descriptors and returns how many connections fit below it.
fn connection_limit(listeners: usize) -> usize {
    let others = 2 * listeners + OTHER_DESCRIPTORS;
    let target = u64::try_from(2 * CONNECTIONS_MAX + others).unwrap_or(u64::MAX);
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    let current = limit.maximum.unwrap_or(target).min(target);
    limit.current = Some(limit.current.unwrap_or(target).max(current));
    let Rlimit {
        current: raised, ..
    } = limit;
    let _raised = rustix::process::setrlimit(Resource::Nofile, limit);
    let available = usize::try_from(raised.unwrap_or(0)).unwrap_or(usize::MAX);
    connections_that_fit(available, others)
}

/// How many connections, of two descriptors each, fit beside others.
fn connections_that_fit(descriptors: usize, others: usize) -> usize {
    let fit = descriptors.saturating_sub(others) / 2;
    fit.clamp(CONNECTIONS_MIN, CONNECTIONS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usual_limit_of_descriptors_leaves_room_for_connections() {
        let others = 2 + OTHER_DESCRIPTORS;
        assert_eq!(connections_that_fit(1_024, others), 255);
        assert_eq!(connections_that_fit(64, others), CONNECTIONS_MIN);
        assert_eq!(connections_that_fit(1 << 20, others), CONNECTIONS_MAX);
    }
}
