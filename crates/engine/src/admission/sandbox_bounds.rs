//! The bounds of what a request may ask of its sandbox: its level and the settings.

use ostler_model::{IsolationLevel, NetworkAccess, SandboxOptions};

use crate::error::Error;
use crate::request::StartRequest;
use crate::settings::IsolationSettings;

/// Options that have no effect below level high must not be accepted silently.
pub(super) fn require_level_high(
    level: IsolationLevel,
    options: &SandboxOptions,
) -> Result<(), Error> {
    let SandboxOptions {
        workspace,
        overlay,
        network,
        read,
        write,
        forwards,
        allow_degraded,
    } = options;
    // Lower levels reach the whole network and allow missing capabilities anyway.
    let _granted = allow_degraded;
    let high_only = [
        (workspace.is_some(), "workspace"),
        (*overlay, "overlay"),
        (
            network
                .as_ref()
                .is_some_and(|it| *it != NetworkAccess::Full),
            "network",
        ),
        (!read.is_empty(), "read"),
        (!write.is_empty(), "write"),
        (!forwards.is_empty(), "forward"),
    ];
    match high_only.iter().find(|(is, _)| *is) {
        Some((_, what)) => Err(invalid(
            "request for",
            what,
            &format!("it is enforced only at isolation level high, not at {level}"),
        )),
        None => Ok(()),
    }
}

/// Where level high is the minimum, requests expose and reach nothing beyond the settings.
pub(super) fn check_within_settings(
    settings: &IsolationSettings,
    options: &SandboxOptions,
) -> Result<(), Error> {
    let problem = "the settings hold requests to level high as they define it";
    if let Some(path) = options.read.iter().chain(&options.write).next() {
        return Err(invalid("path", &path.to_string(), problem));
    }
    if let Some(forward) = options
        .forwards
        .iter()
        .find(|it| !settings.forwards.contains(it))
    {
        return Err(invalid("forward", &forward.to_string(), problem));
    }
    if let Some(ability) = options
        .allow_degraded
        .iter()
        .find(|it| !settings.allow_degraded.contains(it))
    {
        return Err(invalid("allow_degraded", ability.as_str(), problem));
    }
    match &options.network {
        Some(network) if !is_network_within(network, &settings.network) => {
            Err(invalid("network", "beyond the setting", problem))
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether one network access reaches nothing that the other does not.
fn is_network_within(requested: &NetworkAccess, allowed: &NetworkAccess) -> bool {
    match (requested, allowed) {
        (NetworkAccess::None, _) | (_, NetworkAccess::Full) => true,
        (NetworkAccess::AllowList { hosts }, NetworkAccess::AllowList { hosts: allowed }) => {
            hosts.iter().all(|host| allowed.contains(host))
        }
        (NetworkAccess::Full | NetworkAccess::AllowList { .. }, NetworkAccess::None)
        | (NetworkAccess::Full, NetworkAccess::AllowList { .. }) => false,
    }
}

pub(super) fn host_count(network: Option<&NetworkAccess>) -> usize {
    match network {
        Some(NetworkAccess::AllowList { hosts }) => hosts.len(),
        Some(NetworkAccess::None | NetworkAccess::Full) | None => 0,
    }
}

pub(super) fn check_count(what: &'static str, count: usize, limit: usize) -> Result<(), Error> {
    if count <= limit {
        return Ok(());
    }
    let problem = format!("at most {limit} are allowed");
    Err(invalid(what, &count.to_string(), &problem))
}

/// The files that setting up level high holds open at once, under the command's own limit.
const OPEN_FILES_HIGH: u32 = 21;

/// Refuses a limit on open files that keeps the restrictions of level high from being set up.
pub(super) fn check_open_files(request: &StartRequest, level: IsolationLevel) -> Result<(), Error> {
    match request.options.limits.open_files {
        Some(limit) if level == IsolationLevel::High && limit < OPEN_FILES_HIGH => {
            let problem = format!("at level high at least {OPEN_FILES_HIGH} are needed");
            Err(invalid("files", &limit.to_string(), &problem))
        }
        Some(_) | None => Ok(()),
    }
}

pub(super) fn invalid(what: &'static str, given: &str, problem: &str) -> Error {
    Error::InvalidSandbox {
        what,
        given: given.to_owned(),
        problem: problem.to_owned(),
    }
}
