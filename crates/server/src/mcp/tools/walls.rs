//! What level high adds to tools: parameters of starts, and what answers say afterwards.

use ostler_engine::{Info, StartRequest};
use ostler_model::{
    Ability, Fate, Forward, ForwardError, IsolationLevel, Limits, Network, WorkspaceAnswer,
    WorkspaceOrder,
};

use crate::error::Failure;
use crate::mcp::context::Call;
use crate::params::{Arguments, Kind, Parameter};
use crate::reading::network;
use crate::render::walls;

/// The most changed files one answer lists.
const CHANGES_SHOWN: usize = 20;
/// The most refused hosts one answer names.
const HOSTS_SHOWN: usize = 5;

/// Levels that exist; what is not built is not offered.
pub(super) const LEVELS: Kind = Kind::Choice(&["basic", "medium", "high"]);
pub(super) const NETWORK: Parameter =
    Parameter::optional("network", Kind::Hosts, "high: none, full or hosts");
pub(super) const WORKSPACE: Parameter = Parameter::optional(
    "workspace",
    Kind::Choice(&["direct", "overlay"]),
    "overlay: keep writes apart",
);
pub(super) const ALLOW_DEGRADED: Parameter = Parameter::optional("allow_degraded", Kind::List, "");
pub(super) const FORWARD: Parameter = Parameter::optional("forward", Kind::List, "");
pub(super) const SECRETS: Parameter =
    Parameter::optional("secrets", Kind::List, "By name, into env");
pub(super) const APPROVAL: Parameter = Parameter::optional("approval", Kind::Text, "");
pub(super) const LIMITS: Parameter = Parameter::optional(
    "limits",
    Kind::Amounts,
    "memory 512M, cpus 0.5, pids, disk 1G, files",
);

/// Takes what starts may say of isolation off the arguments.
pub(super) fn put_in(request: &mut StartRequest, arguments: &mut Arguments) -> Result<(), Failure> {
    request.level = level(arguments)?.or(request.level);
    if arguments.is_given("network") {
        let words = arguments.list("network");
        let network = Network::of_words(words.iter().map(String::as_str));
        let wrong = |error| Failure::value(format!("parameter 'network': {error}"));
        request.confine.network = Some(network.map_err(wrong)?);
    }
    request.confine.overlay = arguments.text("workspace").as_deref() == Some("overlay");
    for word in arguments.list("allow_degraded") {
        let wall: Result<Ability, ostler_model::evidence::AbilityError> = word.parse();
        let wrong = |error| Failure::value(format!("parameter 'allow_degraded': {error}"));
        request.confine.allow_degraded.push(wall.map_err(wrong)?);
    }
    for word in arguments.list("forward") {
        let wrong = |error| Failure::value(format!("parameter 'forward': {error}"));
        let forward: Result<Forward, ForwardError> = word.parse();
        request.confine.forwards.push(forward.map_err(wrong)?);
    }
    request.secrets = arguments.list("secrets");
    request.approval = arguments.text("approval");
    request.limits = limits(arguments)?;
    Ok(())
}

/// The level asked for; none takes the setting.
pub(super) fn level(arguments: &mut Arguments) -> Result<Option<IsolationLevel>, Failure> {
    let word = arguments.text("isolation").map(|word| word.parse());
    word.transpose()
        .map_err(|error: ostler_model::policy::LevelError| Failure::value(error.to_string()))
}

fn limits(arguments: &mut Arguments) -> Result<Limits, Failure> {
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
        Err(Failure::value(problems.join("; ")))
    }
}

/// Everything that is to be known of a command's walls: the level in force and what is missing
/// of it, limits that were reached, hosts that were refused.
pub(super) fn notes(call: Call<'_>, info: &Info) -> Vec<String> {
    let (policy, state) = (&info.spec.policy, &info.state);
    let mut notes: Vec<String> = walls::level(policy, &info.isolation_warnings())
        .into_iter()
        .collect();
    notes.extend(walls::reached(
        &state.limits_hit,
        &policy.limits,
        state.ending.as_ref(),
    ));
    notes.extend(walls::autorun(&state.autorun));
    notes.extend(refused(call, info));
    notes
}

/// Hosts that an allow list did not let through.
fn refused(call: Call<'_>, info: &Info) -> Option<String> {
    let confinement = info.spec.policy.confinement.as_ref()?;
    if !matches!(confinement.network, Network::AllowList { .. }) {
        return None;
    }
    let directory = call.engine.directory(call.caller, &info.id.short()).ok()?;
    let hosts = network::refused(&directory, HOSTS_SHOWN);
    let told = || {
        format!(
            "not reached, by the network allow list: {}",
            hosts.join(", ")
        )
    };
    (!hosts.is_empty()).then(told)
}

/// What an ended command wrote to its overlay, and how to go on; none without one, or once
/// that is decided.
pub(super) async fn changes(call: Call<'_>, info: &Info) -> Option<String> {
    let has_overlay = info.spec.policy.confinement.as_ref()?.overlay;
    let is_open = info.state.workspace.unwrap_or_default() == Fate::Open;
    if !has_overlay || !is_open || !info.state.is_finished() {
        return None;
    }
    let id = info.id.short();
    let order = WorkspaceOrder::Changes {
        limit: CHANGES_SHOWN,
    };
    let answer = call.engine.workspace(call.caller, &id, order).await;
    Some(match answer {
        Ok(WorkspaceAnswer::Changes(changes)) => {
            let told = walls::changes(&changes, CHANGES_SHOWN);
            if changes.totals == [0; 3] {
                return Some(format!("[overlay: {told}]"));
            }
            format!(
                "[overlay: {told}\nnothing of it is in the workspace yet: workspace \
                 {{\"action\":\"commit\",\"id\":\"{id}\"}} puts it there; actions diff, discard]"
            )
        }
        Ok(
            WorkspaceAnswer::Diff { .. }
            | WorkspaceAnswer::Committed(_)
            | WorkspaceAnswer::Autorun(_)
            | WorkspaceAnswer::Conflicts(_)
            | WorkspaceAnswer::Discarded,
        ) => return None,
        Err(error) => format!("[overlay: its changes cannot be listed: {error}]"),
    })
}
