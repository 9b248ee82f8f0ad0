//! The container of a request: merges its options with the settings. Reads the file system to
//! resolve links; changes nothing.

use std::path::Path;
use std::time::Duration;

use ostler_backend::ContainerLaunch;
use ostler_model::container::{CONTAINER_IDLE_MS, CONTAINER_STOP_GRACE_MS, CONTAINER_WORKSPACE};
use ostler_model::service::READY_TIMEOUT_CONTAINER_MS;
use ostler_model::{
    ByteString, Command, ContainerOptions, ContainerSpec, IsolationLevel, Lifetime, Owner, Spec,
    VolumeMount,
};

use super::container_bounds::{ContainerBounds, check_options};
use super::container_paths::HostPaths;
use super::isolation_level::effective_level;
use super::sandbox_bounds::{invalid, require_level_high};
use super::working_dir;
use crate::error::{ArgumentError, Error};
use crate::request::{ClientKind, StartRequest};
use crate::settings::Settings;
use crate::shell_script_dir::script_dir;

/// The network of a container that nobody names one for.
const NETWORK: &str = "bridge";
/// The network with the loopback interface only.
const NO_NETWORK: &str = "none";
/// The shell that takes the place of bash where an image has none.
const FALLBACK_SHELL: &str = "sh";

/// The container of a request at level container; none at other levels.
///
/// # Errors
/// For options that only a container can grant, options that are malformed or loosen the settings,
/// and paths that no container may have.
pub(crate) fn resolve(
    settings: &Settings,
    request: &StartRequest,
) -> Result<Option<ContainerSpec>, Error> {
    let level = effective_level(&settings.isolation, request)?;
    let requested: &ContainerOptions = &request.options.container;
    if level != IsolationLevel::Container {
        require_level_container(level, requested)?;
        return Ok(None);
    }
    require_level_high(level, &request.options.sandbox)?;
    // Of the command line it is the default for commands of a person.
    if request.options.inherit_env == Some(true) && request.client_kind != ClientKind::Cli {
        let problem = "a container gets the variables of its request only";
        return Err(invalid("request for", "inherit_env", problem));
    }
    check_options(requested)?;
    let bounds = ContainerBounds::of(settings);
    bounds.check(requested)?;
    working_dir::check(&request.cwd)?;
    let paths = HostPaths::of(settings);
    let mut volumes = paths.defaults(&settings.container.defaults.volumes)?;
    volumes.extend(paths.requested(&requested.volumes)?);
    paths.check_targets(&volumes)?;
    volumes.extend(shell_scripts(settings, request));
    let options = requested.clone().over(settings.container.defaults.clone());
    let workspace = paths.workspace(settings, request, options.workspace.as_ref())?;
    Ok(Some(ContainerSpec {
        image: options.image.ok_or_else(no_image)?,
        workspace,
        network: options
            .network
            .unwrap_or_else(|| bounds.default_network(NETWORK, NO_NETWORK)),
        dns: options.dns,
        proxy: options.proxy,
        read_only_root: options.read_only_root.unwrap_or(true),
        no_new_privileges: options.no_new_privileges.unwrap_or(true),
        user: options.user,
        cap_add: capabilities(options.cap_add),
        volumes,
        secret_files: options.secret_files.unwrap_or(false),
        health: options.health,
        idle_timeout: options
            .idle_timeout
            .unwrap_or(Duration::from_millis(CONTAINER_IDLE_MS)),
        reuse: options.reuse.unwrap_or(true),
        disk: None,
    }))
}

fn no_image() -> Error {
    ArgumentError::Invalid {
        what: "the image".to_owned(),
        problem: "a container needs one; name it in the request, or in the setting container.image",
    }
    .into()
}

/// Options that have no effect outside of a container must not be accepted silently.
fn require_level_container(level: IsolationLevel, options: &ContainerOptions) -> Result<(), Error> {
    if *options == ContainerOptions::default() {
        return Ok(());
    }
    let problem = format!("its options hold at isolation level container only, not at {level}");
    Err(invalid("request for", "container", &problem))
}

/// The names in their one form, each once.
fn capabilities(requested: Vec<String>) -> Vec<String> {
    let mut names: Vec<String> = requested
        .iter()
        .map(|name| super::container_bounds::capability_name(name))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The integration scripts of a requested shell, at the path that its command line names.
fn shell_scripts(settings: &Settings, request: &StartRequest) -> Option<VolumeMount> {
    let session = request.shell.as_ref()?;
    let directory = script_dir(&settings.state_dir, session.kind).ok()?;
    Some(VolumeMount {
        host: directory.clone(),
        container: directory,
        write: false,
    })
}

/// The options that this container results from, whatever the settings are.
pub(crate) fn options_of(container: &ContainerSpec) -> ContainerOptions {
    ContainerOptions {
        image: Some(container.image.clone()),
        workspace: Some(container.workspace.clone()),
        network: Some(container.network.clone()),
        dns: container.dns.clone(),
        proxy: container.proxy.clone(),
        read_only_root: Some(container.read_only_root),
        no_new_privileges: Some(container.no_new_privileges),
        user: container.user.clone(),
        cap_add: container.cap_add.clone(),
        volumes: container.volumes.clone(),
        secret_files: Some(container.secret_files),
        health: container.health.clone(),
        stop_grace: None,
        idle_timeout: Some(container.idle_timeout),
        reuse: Some(container.reuse),
    }
}

/// The working directory as the command sees it: below the workspace's mount point.
pub(super) fn inner_cwd(cwd: &ByteString, container: &ContainerSpec) -> ByteString {
    let real = std::fs::canonicalize(cwd.as_path());
    let real = real.as_deref().unwrap_or_else(|_| cwd.as_path());
    let below = real.strip_prefix(container.workspace.as_path());
    match below {
        Ok(below) if below != Path::new("") => {
            ByteString::from(Path::new(CONTAINER_WORKSPACE).join(below))
        }
        Ok(_) | Err(_) => ByteString::from(CONTAINER_WORKSPACE),
    }
}

/// The container as a launch plan has it.
pub(super) fn launch(container: &ContainerSpec, owner: &Owner) -> Box<ContainerLaunch> {
    Box::new(ContainerLaunch {
        spec: container.clone(),
        principal: owner.principal.to_string(),
        project: owner.project.clone().unwrap_or_default(),
    })
}

/// A service may take longer to be ready in a container, unless its request says how long.
pub(super) fn allow_for_start(lifetime: &mut Lifetime) {
    if let Lifetime::Service { plan, .. } = lifetime {
        let usual = Duration::from_millis(READY_TIMEOUT_CONTAINER_MS);
        plan.ready.timeout.get_or_insert(usual);
    }
}

/// What runs a script where its shell, bash, is not in the image.
pub(super) fn program_fallback(command: &Command) -> Option<ByteString> {
    let Command::Shell { shell, .. } = command else {
        return None;
    };
    let name = shell.as_path().file_name()?;
    (name == "bash").then(|| ByteString::from(FALLBACK_SHELL))
}

/// From SIGTERM to SIGKILL for an execution, unless a stop says otherwise.
pub(crate) fn stop_grace(settings: &Settings, spec: &Spec) -> Duration {
    let request = spec.request.as_ref();
    let requested = request.and_then(|it| it.options.container.stop_grace);
    grace(settings, spec.container.is_some(), requested)
}

/// The same, where the request asks for `requested`.
pub(super) fn grace(
    settings: &Settings,
    in_container: bool,
    requested: Option<Duration>,
) -> Duration {
    if !in_container {
        return settings.grace;
    }
    requested
        .or(settings.container.defaults.stop_grace)
        .unwrap_or(Duration::from_millis(CONTAINER_STOP_GRACE_MS))
}
