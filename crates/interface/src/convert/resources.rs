//! What an execution uses, now and over time.

use ostler_api::resources::TreeMemberBody;
use ostler_api::{ExecutionUsageBody, ResourcesBody, UsageHistoryBody, UsagePointBody};
use ostler_engine::{ExecutionInfo, UsageHistory};
use ostler_model::{NetworkAccess, TreeSnapshot, UsageSample};

use super::service::service_state_body;

/// A snapshot of a process tree and what the monitor knows of it, with data of its execution.
pub fn resources_body(
    snapshot: TreeSnapshot,
    sample: Option<UsageSample>,
    info: &ExecutionInfo,
) -> ResourcesBody {
    let ticks = snapshot.usage.cpu_ticks as f64;
    let page = rustix::param::page_size() as u64;
    ResourcesBody {
        cpu_seconds: ticks / rustix::param::clock_ticks_per_second() as f64,
        memory_bytes: snapshot.usage.resident_pages.saturating_mul(page),
        disk_bytes: snapshot.disk_bytes,
        cpu_percent: sample
            .filter(|_| !info.state.is_finished())
            .and_then(|sample| sample.cpu_percent),
        read_bytes: sample.and_then(|sample| sample.read_bytes),
        written_bytes: sample.and_then(|sample| sample.written_bytes),
        received_bytes: sample.and_then(|sample| sample.received_bytes),
        sent_bytes: sample.and_then(|sample| sample.sent_bytes),
        network_unknown: network_unknown(sample, info),
        processes: snapshot
            .members
            .into_iter()
            .map(TreeMemberBody::from)
            .collect(),
        usage: info.state.usage,
        limits: info.spec.policy.limits,
        limits_hit: info.state.limits_hit.clone(),
    }
}

/// Why no network bytes are known of a running execution.
fn network_unknown(sample: Option<UsageSample>, info: &ExecutionInfo) -> Option<String> {
    if info.state.is_finished() || sample?.received_bytes.is_some() {
        return None;
    }
    let confinement = info.spec.policy.confinement.as_ref();
    let is_shared = confinement.is_none_or(|it| it.network == NetworkAccess::Full);
    let reason = if is_shared {
        "it shares the network of the host, whose traffic is everybody's"
    } else {
        "its network namespace cannot be read"
    };
    Some(reason.to_owned())
}

/// What an execution used over time.
pub fn usage_history_body(history: UsageHistory) -> UsageHistoryBody {
    UsageHistoryBody {
        resolution_s: history.resolution.seconds(),
        next: history.points.last().map(|point| point.at),
        points: history
            .points
            .into_iter()
            .map(UsagePointBody::from)
            .collect(),
        more: history.has_more,
    }
}

/// What a living execution uses.
#[must_use]
pub fn execution_usage_body(
    info: &ExecutionInfo,
    sample: Option<UsageSample>,
) -> ExecutionUsageBody {
    ExecutionUsageBody {
        id: info.id.short(),
        uuid: info.id,
        command: info.spec.command.display(),
        service: service_state_body(info).map(|service| service.name),
        paused: info.state.paused,
        started_at: info.state.started_at,
        usage: sample.map(UsagePointBody::from),
    }
}
