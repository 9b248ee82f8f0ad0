//! What the engine knows of a service, as [`ostler_render::service`] takes it.

use ostler_engine::ExecutionInfo;
use ostler_render::service::{self, ServiceReport};

/// The report of an execution; `id` is its short id.
pub(crate) fn service_report<'a>(id: &'a str, info: &'a ExecutionInfo) -> ServiceReport<'a> {
    let state = &info.state;
    ServiceReport {
        id,
        pid: state.pid,
        status: info.status().service,
        url: state.url.as_deref(),
        ports: state.ports.iter().collect(),
        evidence: state.ready_evidence.as_deref(),
        warnings: &state.warnings,
        waits_for: waits_for(info),
    }
}

/// What a service waits for on its way to ready, as a noun phrase; none once it is there, after
/// its end, and for what is no service.
pub(crate) fn waits_for(info: &ExecutionInfo) -> Option<String> {
    let plan = info.spec.lifetime.plan()?;
    service::waits_for(plan, &info.state, info.waiting_for.as_deref())
}
