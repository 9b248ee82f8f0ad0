//! Hosts that the allow list of a command refused.

use hyper::Method;
use ostler_model::Network;
use ostler_server::wire::{DecisionBody, InfoBody, NetworkPageBody};

use super::ids;
use crate::client::{Body, Client};

/// Hosts that are named; more are counted.
const NAMED: usize = 10;
/// Pages of decisions that are looked through.
const PAGES: usize = 20;
/// Decisions of a page.
const PAGE: usize = 1_000;

/// Tells which hosts it was refused, where it had an allow list.
pub(crate) async fn tell(client: &Client, info: &InfoBody) {
    if let Some(hosts) = of(client, info).await {
        crate::tell(&format!("{}: its network refused {hosts}", info.id));
    }
}

/// The hosts it was refused, in the order it asked for them; none where there was none.
pub(crate) async fn of(client: &Client, info: &InfoBody) -> Option<String> {
    let confinement = info.isolation.confinement.as_ref()?;
    let Network::AllowList { .. } = confinement.network.0 else {
        return None;
    };
    let hosts = hosts(client, &info.id).await;
    let named: Vec<&str> = hosts.iter().take(NAMED).map(String::as_str).collect();
    let more = match hosts.len().saturating_sub(named.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!named.is_empty()).then(|| named.join(", ") + &more)
}

async fn hosts(client: &Client, id: &str) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    let mut from = 0;
    for _ in 0..PAGES {
        let path = ids::path(id, &format!("/network?from={from}&limit={PAGE}"));
        // What cannot be read any more is no reason to fail.
        let asked = client.call(Method::GET, &path, Body::None).await;
        let Ok::<NetworkPageBody, _>(page) = asked else {
            break;
        };
        for host in page.decisions.iter().filter(|it| is_refusal(it)).map(told) {
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        from = page.next;
        if !page.more {
            break;
        }
    }
    hosts
}

fn is_refusal(decision: &DecisionBody) -> bool {
    decision.decision == "refused"
}

fn told(decision: &DecisionBody) -> String {
    let port = decision.port.map(|port| format!(":{port}"));
    let reason = decision.reason.as_deref().filter(|it| !it.is_empty());
    let reason = reason.map(|reason| format!(" ({reason})"));
    let (port, reason) = (port.unwrap_or_default(), reason.unwrap_or_default());
    format!("{}{port}{reason}", decision.host)
}
