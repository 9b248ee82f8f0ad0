//! Isolation in the tools: parameters of starts, and notes in answers.

use ostler_engine::{ExecutionInfo, StartRequest};
use ostler_model::{
    Capability, IsolationLevel, Limits, NetworkAccess, OverlayOutcome, OverlayRequest,
    OverlayResponse, PortForward, PortForwardError,
};
use ostler_render::isolation;

use crate::egress_log;
use crate::error::ApiError;
use crate::mcp::context::ToolCall;
use crate::params::{Arguments, Parameter, ParameterKind};

/// The most changed files in one answer.
const MAX_CHANGES: usize = 20;
/// The most refused hosts in one answer.
const MAX_HOSTS: usize = 5;

/// The levels that are implemented.
pub(super) const LEVELS: ParameterKind = ParameterKind::Choice(&["basic", "medium", "high"]);
pub(super) const NETWORK: Parameter =
    Parameter::optional("network", ParameterKind::Hosts, "high: none, full or hosts");
pub(super) const WORKSPACE: Parameter = Parameter::optional(
    "workspace",
    ParameterKind::Choice(&["direct", "overlay"]),
    "overlay: keep writes apart",
);
pub(super) const ALLOW_DEGRADED: Parameter =
    Parameter::optional("allow_degraded", ParameterKind::List, "");
pub(super) const FORWARD: Parameter = Parameter::optional("forward", ParameterKind::List, "");
pub(super) const SECRETS: Parameter =
    Parameter::optional("secrets", ParameterKind::List, "By name, into env");
pub(super) const APPROVAL: Parameter = Parameter::optional("approval", ParameterKind::Text, "");
pub(super) const LIMITS: Parameter = Parameter::optional(
    "limits",
    ParameterKind::Amounts,
    "memory 512M, cpus 0.5, pids, disk 1G, files",
);

/// Takes the isolation parameters of a start from the arguments.
pub(super) fn apply_isolation(
    request: &mut StartRequest,
    arguments: &mut Arguments,
) -> Result<(), ApiError> {
    request.level = parse_level(arguments)?.or(request.level);
    if arguments.is_given("network") {
        let words = arguments.list("network");
        let network = NetworkAccess::from_words(words.iter().map(String::as_str));
        let wrong = |error| ApiError::value(format!("parameter 'network': {error}"));
        request.sandbox.network = Some(network.map_err(wrong)?);
    }
    request.sandbox.overlay = arguments.text("workspace").as_deref() == Some("overlay");
    for word in arguments.list("allow_degraded") {
        let capability: Result<Capability, ostler_model::snapshot::CapabilityError> = word.parse();
        let wrong = |error| ApiError::value(format!("parameter 'allow_degraded': {error}"));
        request
            .sandbox
            .allow_degraded
            .push(capability.map_err(wrong)?);
    }
    for word in arguments.list("forward") {
        let wrong = |error| ApiError::value(format!("parameter 'forward': {error}"));
        let forward: Result<PortForward, PortForwardError> = word.parse();
        request.sandbox.forwards.push(forward.map_err(wrong)?);
    }
    request.secrets = arguments.list("secrets");
    request.approval = arguments.text("approval");
    request.limits = parse_limits(arguments)?;
    Ok(())
}

/// The requested level; none means the setting.
pub(super) fn parse_level(arguments: &mut Arguments) -> Result<Option<IsolationLevel>, ApiError> {
    let word = arguments.text("isolation").map(|word| word.parse());
    word.transpose()
        .map_err(|error: ostler_model::isolation::IsolationLevelError| {
            ApiError::value(error.to_string())
        })
}

fn parse_limits(arguments: &mut Arguments) -> Result<Limits, ApiError> {
    let mut limits = Limits::default();
    let mut problems = Vec::new();
    for (name, given) in arguments.map("limits") {
        if let Err(error) = limits.set(&name, &given) {
            problems.push(format!("parameter 'limits': {error}"));
        }
    }
    if problems.is_empty() {
        Ok(limits)
    } else {
        Err(ApiError::value(problems.join("; ")))
    }
}

/// Notes about a command's isolation: the level in force and what is missing of it, limits that
/// were reached, hosts that were refused.
pub(super) fn isolation_notes(call: ToolCall<'_>, info: &ExecutionInfo) -> Vec<String> {
    let (policy, state) = (&info.spec.policy, &info.state);
    let mut notes: Vec<String> = isolation::describe_level(policy, &info.isolation_warnings())
        .into_iter()
        .collect();
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
pub(super) async fn overlay_summary(call: ToolCall<'_>, info: &ExecutionInfo) -> Option<String> {
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
            let change_text = isolation::describe_changes(&changes, MAX_CHANGES);
            if changes.totals == [0; 3] {
                return Some(format!("[overlay: {change_text}]"));
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
