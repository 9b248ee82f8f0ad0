//! What a running tree uses.

use ostler_api::ResourcesBody;
use ostler_api::resources::TreeMemberBody;
use ostler_engine::ExecutionInfo;
use ostler_model::TreeSnapshot;

/// A snapshot of a process tree, with data of its execution.
pub fn resources_body(snapshot: TreeSnapshot, info: &ExecutionInfo) -> ResourcesBody {
    let ticks = snapshot.usage.cpu_ticks as f64;
    let page = rustix::param::page_size() as u64;
    ResourcesBody {
        cpu_seconds: ticks / rustix::param::clock_ticks_per_second() as f64,
        memory_bytes: snapshot.usage.resident_pages.saturating_mul(page),
        disk_bytes: snapshot.disk_bytes,
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
