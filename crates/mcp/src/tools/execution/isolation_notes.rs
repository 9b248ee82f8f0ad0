//! Notes in answers about a command's isolation and its overlay.

use ostler_engine::ExecutionInfo;
use ostler_model::{NetworkAccess, OverlayOutcome, OverlayRequest, OverlayResponse};
use ostler_render::isolation;

use crate::tool_call::ToolCall;
use ostler_interface::egress_log;

/// The most changed files in one answer.
const MAX_CHANGES: usize = 20;
/// The most refused hosts in one answer.
const MAX_HOSTS: usize = 5;

/// Notes about a command's isolation: the level in force and its missing parts, limits that were
/// reached, hosts that were refused.
pub(in crate::tools) fn isolation_notes(call: ToolCall<'_>, info: &ExecutionInfo) -> Vec<String> {
    let (policy, state) = (&info.spec.policy, &info.state);
    let container = info.spec.container.as_deref();
    let level = isolation::describe_level(policy, container, &info.isolation_warnings());
    let mut notes: Vec<String> = level.into_iter().collect();
    notes.extend(isolation::describe_limits_hit(
        &state.limits_hit,
        &policy.limits,
        state.ending.as_ref(),
    ));
    notes.extend(isolation::describe_autorun(&state.autorun));
    notes.extend(refused_hosts_note(call, info));
    notes
}

/// Hosts that the allow list refused.
fn refused_hosts_note(call: ToolCall<'_>, info: &ExecutionInfo) -> Option<String> {
    let confinement = info.spec.policy.confinement.as_ref()?;
    if !matches!(confinement.network, NetworkAccess::AllowList { .. }) {
        return None;
    }
    let directory = call
        .engine
        .execution_dir(call.caller, &info.id.short())
        .ok()?;
    let hosts = egress_log::refused_hosts(&directory, MAX_HOSTS);
    let note = || {
        format!(
            "not reached, by the network allow list: {}",
            hosts.join(", ")
        )
    };
    (!hosts.is_empty()).then(note)
}

/// The overlay changes of an ended command, and how to continue; none without an overlay, or once
/// it was committed or discarded.
pub(in crate::tools) async fn overlay_summary(
    call: ToolCall<'_>,
    info: &ExecutionInfo,
) -> Option<String> {
    let has_overlay = info.spec.policy.confinement.as_ref()?.overlay;
    let is_open = info.state.workspace.unwrap_or_default() == OverlayOutcome::Open;
    if !has_overlay || !is_open || !info.state.is_finished() {
        return None;
    }
    let id = info.id.short();
    let request = OverlayRequest::Changes { limit: MAX_CHANGES };
    let response = call.engine.handle_overlay(call.caller, &id, request).await;
    Some(match response {
        Ok(OverlayResponse::Changes(changes)) => {
            let mut change_text = isolation::describe_changes(&changes, MAX_CHANGES);
            if changes.totals == [0; 3] {
                return Some(format!("[overlay: {change_text}]"));
            }
            for line in isolation::describe_host_changes(&changes.changed_on_host, MAX_CHANGES) {
                change_text.push('\n');
                change_text.push_str(&line);
            }
            format!(
                "[overlay: {change_text}\nnothing of it is in the workspace yet: workspace \
                 {{\"action\":\"commit\",\"id\":\"{id}\"}} puts it there; actions diff, discard]"
            )
        }
        Ok(
            OverlayResponse::Diff { .. }
            | OverlayResponse::Committed(_)
            | OverlayResponse::Autorun(_)
            | OverlayResponse::Conflicts(_)
            | OverlayResponse::Discarded,
        ) => return None,
        Err(error) => format!("[overlay: its changes cannot be listed: {error}]"),
    })
}
