//! The configuration of a container, from its specification and limits. Pure.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigLogConfig, Mount, MountType,
    RestartPolicy, RestartPolicyNameEnum,
};
use ostler_backend::ContainerError;
use ostler_container_init::protocol::SOCKET_DIR;
use ostler_model::container::{CONTAINER_SECRETS, CONTAINER_WORKSPACE, ContainerHealth};
use ostler_model::{ContainerSpec, Limits};

/// The init in a container.
pub(crate) const INIT_TARGET: &str = "/run/ostler-init/init";
/// The most that is in `/tmp`, in bytes; it counts as memory of the container.
const TMP_BYTES: u64 = 256 * 1024 * 1024;
/// The share of a limit on memory that `/tmp` may take.
const TMP_SHARE: u64 = 2;
/// Everyone may create files, which are their owner's.
const SHARED_MODE: &str = "mode=1777";
/// The most that secrets are, in bytes.
const SECRETS_BYTES: u64 = 1024 * 1024;
/// What is mounted over the state directory, in bytes: nothing can be written to it.
const MASK_BYTES: u64 = 4 * 1024;
/// From SIGTERM to SIGKILL where the engine stops the container, in seconds. The init has no use for
/// SIGTERM, and Podman stops what it removes.
const STOP_TIMEOUT_S: i64 = 0;
/// Hosts that are reached without the proxy.
const NO_PROXY: &str = "localhost,127.0.0.1,::1";
/// What Docker calls a thousandth of a processor.
const NANO_CPUS_PER_MILLI: i64 = 1_000_000;

/// What a container is made of.
#[derive(Debug)]
pub(crate) struct ContainerPlan<'a> {
    /// What was requested.
    pub(crate) spec: &'a ContainerSpec,
    /// Its limits.
    pub(crate) limits: &'a Limits,
    /// The user of the image, where the specification names none.
    pub(crate) image_user: Option<&'a str>,
    /// The init, on the host.
    pub(crate) init: &'a Path,
    /// The directory of the init's socket, on the host.
    pub(crate) socket_dir: &'a Path,
    /// Directories of the container that nothing is shown of.
    pub(crate) masked: &'a [std::path::PathBuf],
    /// Its labels.
    pub(crate) labels: HashMap<String, String>,
    /// Whether the engine gives directories in memory an owner: Podman refuses that option.
    pub(crate) has_tmpfs_owners: bool,
    /// Whether the storage driver limits the container's own layer.
    pub(crate) limits_layer: bool,
}

/// The configuration that the engine is sent.
///
/// # Errors
/// When a path is no text, which the engine's API cannot carry.
pub(crate) fn create_body(
    plan: ContainerPlan<'_>,
) -> Result<Box<ContainerCreateBody>, ContainerError> {
    let host_config = host_config(&plan)?;
    let spec = plan.spec;
    Ok(Box::new(ContainerCreateBody {
        image: Some(spec.image.clone()),
        user: spec.user.clone(),
        entrypoint: Some(vec![INIT_TARGET.to_owned()]),
        cmd: Some(Vec::new()),
        env: Some(proxy_variables(spec.proxy.as_deref())),
        working_dir: Some(CONTAINER_WORKSPACE.to_owned()),
        labels: Some(plan.labels),
        healthcheck: Some(spec.health.as_ref().map_or_else(no_health, health_config)),
        stop_signal: Some("SIGTERM".to_owned()),
        stop_timeout: Some(STOP_TIMEOUT_S),
        attach_stdin: Some(false),
        attach_stdout: Some(false),
        attach_stderr: Some(false),
        open_stdin: Some(false),
        tty: Some(false),
        host_config: Some(host_config),
        ..ContainerCreateBody::default()
    }))
}

/// Limits of each process (`RLIMIT_NOFILE`, `RLIMIT_FSIZE`) are not here: the runner lowers them for the
/// command, and engines need files themselves to start the container.
fn host_config(plan: &ContainerPlan<'_>) -> Result<HostConfig, ContainerError> {
    let ContainerPlan { spec, limits, .. } = plan;
    let memory = limits.memory_bytes.map(saturated);
    let disk = limits.disk_bytes.filter(|_| plan.limits_layer);
    let storage = disk.map(|bytes| HashMap::from([("size".to_owned(), bytes.to_string())]));
    let privileges = spec.no_new_privileges;
    Ok(HostConfig {
        memory,
        // Memory and swap together: no swap.
        memory_swap: memory,
        nano_cpus: limits
            .cpu_millis
            .map(|millis| i64::from(millis) * NANO_CPUS_PER_MILLI),
        pids_limit: limits.pids.map(i64::from),
        storage_opt: storage,
        network_mode: Some(spec.network.clone()),
        dns: Some(spec.dns.clone()),
        readonly_rootfs: Some(spec.read_only_root),
        privileged: Some(false),
        security_opt: privileges.then(|| vec!["no-new-privileges".to_owned()]),
        cap_drop: Some(vec!["ALL".to_owned()]),
        cap_add: Some(spec.cap_add.clone()),
        mounts: Some(mounts(plan)?),
        tmpfs: Some(tmpfs(plan)?),
        init: Some(false),
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::NO),
            maximum_retry_count: None,
        }),
        // Output goes to journals; what the init says is read once, when it is started.
        log_config: Some(HostConfigLogConfig {
            typ: Some("none".to_owned()),
            config: None,
        }),
        ..HostConfig::default()
    })
}

fn saturated(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Mounts of the host, by `Mounts` and not `Binds`: a path may contain a colon, and one that is not
/// there is an error, where `Binds` makes a directory of root's.
fn mounts(plan: &ContainerPlan<'_>) -> Result<Vec<Mount>, ContainerError> {
    let workspace = plan.spec.workspace.as_path();
    let mut mounts = vec![
        bind(workspace, Path::new(CONTAINER_WORKSPACE), true)?,
        bind(plan.init, Path::new(INIT_TARGET), false)?,
        bind(plan.socket_dir, Path::new(SOCKET_DIR), true)?,
    ];
    for volume in &plan.spec.volumes {
        let target = volume.container.as_path();
        mounts.push(bind(volume.host.as_path(), target, volume.write)?);
    }
    Ok(mounts)
}

fn bind(host: &Path, target: &Path, write: bool) -> Result<Mount, ContainerError> {
    Ok(Mount {
        source: Some(text(host)?),
        target: Some(text(target)?),
        typ: Some(MountType::BIND),
        read_only: Some(!write),
        ..Mount::default()
    })
}

fn text(path: &Path) -> Result<String, ContainerError> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        ContainerError::Refused(format!(
            "{} is not valid UTF-8, as paths of its API are",
            path.display()
        ))
    })
}

/// The directories in memory. Programs may be executed from `/tmp`, as builds do.
fn tmpfs(plan: &ContainerPlan<'_>) -> Result<HashMap<String, String>, ContainerError> {
    let memory = plan.limits.memory_bytes;
    let tmp = memory.map_or(TMP_BYTES, |memory| TMP_BYTES.min(memory / TMP_SHARE));
    let user = plan.spec.user.as_deref().or(plan.image_user);
    let owner = Some(user.unwrap_or_default()).filter(|_| plan.has_tmpfs_owners);
    let secrets = format!(
        "rw,nosuid,nodev,noexec,size={SECRETS_BYTES},{}",
        owner.map_or(SHARED_MODE.to_owned(), secrets_owner)
    );
    let mut tmpfs = HashMap::from([
        (
            "/tmp".to_owned(),
            format!("rw,nosuid,nodev,exec,size={tmp},mode=1777"),
        ),
        (CONTAINER_SECRETS.to_owned(), secrets),
    ]);
    for path in plan.masked {
        let options = format!("ro,nosuid,nodev,noexec,size={MASK_BYTES},mode=0");
        tmpfs.insert(text(path)?, options);
    }
    Ok(tmpfs)
}

/// Who may use the directory of secrets: the container's user. What id a name has only the image
/// knows: then everyone may create files, and the files are their owner's.
fn secrets_owner(user: &str) -> String {
    let (user, group) = user.split_once(':').unwrap_or((user, "0"));
    let id = |text: &str| match text {
        "" | "root" => Some(0),
        other => other.parse::<u32>().ok(),
    };
    match (id(user), id(group)) {
        (Some(user), Some(group)) => format!("mode=0700,uid={user},gid={group}"),
        _ => SHARED_MODE.to_owned(),
    }
}

/// The variables by which programs find a proxy, in both spellings that are in use.
fn proxy_variables(proxy: Option<&str>) -> Vec<String> {
    let Some(proxy) = proxy else {
        return Vec::new();
    };
    let values = [("http", proxy), ("https", proxy), ("no", NO_PROXY)];
    let names = values.map(|(name, value)| (format!("{name}_proxy"), value));
    let both = names.iter().flat_map(|(name, value)| {
        [
            format!("{name}={value}"),
            format!("{}={value}", name.to_uppercase()),
        ]
    });
    both.collect()
}

/// No check, not even that of the image: it looks at what the image's entry point serves, which does
/// not run.
fn no_health() -> HealthConfig {
    HealthConfig {
        test: Some(vec!["NONE".to_owned()]),
        ..HealthConfig::default()
    }
}

fn health_config(check: &ContainerHealth) -> HealthConfig {
    let mut test = vec!["CMD".to_owned()];
    test.extend(check.command.iter().cloned());
    HealthConfig {
        test: Some(test),
        interval: Some(nanoseconds(check.interval)),
        timeout: Some(nanoseconds(check.timeout)),
        start_period: Some(nanoseconds(check.start_period)),
        retries: Some(i64::from(check.retries)),
        start_interval: None,
    }
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
