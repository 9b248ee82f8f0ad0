//! Hosts that the egress proxy refused because they are not on the allow list of the command.

use hyper::Method;
use ostler_api::{EgressDecisionBody, EgressPageBody, ExecutionBody};
use ostler_model::NetworkAccess;

use super::ids;
use crate::client::{DaemonClient, RequestBody};

/// The most hosts that are listed; further ones are counted.
const MAX_SHOWN: usize = 10;
/// The most pages of decisions that are read.
const MAX_PAGES: usize = 20;
/// The number of decisions on a page.
const PAGE_LIMIT: usize = 1_000;

/// Reports the hosts it was refused, if it had an allow list.
pub(crate) async fn report(client: &DaemonClient, info: &ExecutionBody) {
    if let Some(hosts) = describe(client, info).await {
        crate::print_note(&format!("{}: its network refused {hosts}", info.id));
    }
}

/// The refused hosts, in the order of the requests; none where there was no refusal.
pub(crate) async fn describe(client: &DaemonClient, info: &ExecutionBody) -> Option<String> {
    let confinement = info.isolation.confinement.as_ref()?;
    let NetworkAccess::AllowList { .. } = confinement.network.0 else {
        return None;
    };
    let hosts = fetch_hosts(client, &info.id).await;
    let shown: Vec<&str> = hosts.iter().take(MAX_SHOWN).map(String::as_str).collect();
    let more = match hosts.len().saturating_sub(shown.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!shown.is_empty()).then(|| shown.join(", ") + &more)
}

async fn fetch_hosts(client: &DaemonClient, id: &str) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    let mut from = 0;
    for _ in 0..MAX_PAGES {
        let path = ids::path(id, &format!("/network?from={from}&limit={PAGE_LIMIT}"));
        // A page that cannot be read any more is not an error of the verb.
        let result = client.call(Method::GET, &path, RequestBody::None).await;
        let Ok::<EgressPageBody, _>(page) = result else {
            break;
        };
        for host in page
            .decisions
            .iter()
            .filter(|it| is_refusal(it))
            .map(describe_decision)
        {
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

fn is_refusal(decision: &EgressDecisionBody) -> bool {
    decision.decision == "refused"
}

fn describe_decision(decision: &EgressDecisionBody) -> String {
    let port = decision.port.map(|port| format!(":{port}"));
    let reason = decision.reason.as_deref().filter(|it| !it.is_empty());
    let reason = reason.map(|reason| format!(" ({reason})"));
    let (port, reason) = (port.unwrap_or_default(), reason.unwrap_or_default());
    format!("{}{port}{reason}", decision.host)
}
