//! Makes one container: creates it, starts it, and waits until its init accepts launches.

use std::sync::Arc;
use std::time::Duration;

use ostler_backend::{ContainerAttachment, ContainerError, ContainerLaunch};
use ostler_model::{ByteString, DiskEnforcement, Limits};
use ostler_sys::file_watch::FileWatch;
use tokio::time::{Instant, sleep_until};

use super::driver::{ContainerPool, RunningContainer};
use super::facts::ContainerFacts;
use crate::container_config::{ContainerPlan, create_body};
use crate::engine::{
    ContainerStatus, EngineConnection, EngineError, EngineKind, InitOutput, LocalImage,
};
use crate::host_paths::{self, MountedInodes};
use crate::identity::{ContainerLabels, ContainerName};
use crate::reference;

/// How long the init may take from the start of the container until its socket is there.
const READY_LIMIT: Duration = Duration::from_secs(20);
/// What engines say of a storage driver that cannot limit a layer's size.
const NO_LAYER_LIMIT: [&str; 3] = ["storage-opt", "storage opt", "pquota"];

/// A container to make.
#[derive(Debug)]
pub(super) struct MakeRequest {
    /// Its name.
    pub(super) name: ContainerName,
    /// What was requested, by whom.
    pub(super) launch: ContainerLaunch,
    /// Its limits.
    pub(super) limits: Limits,
    /// What its workspace and volumes are.
    pub(super) mounted: MountedInodes,
    /// Its image.
    pub(super) image: LocalImage,
    /// Its labels.
    pub(super) labels: ContainerLabels,
}

/// Makes a container.
///
/// # Errors
/// When it does not become usable; then it may exist, and is to be removed.
pub(super) async fn make(
    pool: &ContainerPool,
    engine: &EngineConnection,
    request: &MakeRequest,
) -> Result<RunningContainer, ContainerError> {
    let spec = &request.launch.spec;
    reference::check_own_network(&spec.network)?;
    host_paths::check(spec, engine.socket())?;
    let name = &request.name;
    let storage = |error: std::io::Error| ContainerError::NotStarted(error.to_string());
    pool.init.install().map_err(storage)?;
    let dir = pool.dirs.create(name).map_err(storage)?;
    let socket = pool.dirs.socket(name);
    let mut watch = FileWatch::with_creation(&socket).map_err(storage)?;
    let masked = host_paths::shown_state(spec, pool.state_dir());
    let plan = |limits_layer| ContainerPlan {
        spec,
        limits: &request.limits,
        image_user: request.image.user.as_deref(),
        init: &pool.init.path,
        socket_dir: &dir,
        masked: &masked,
        labels: request.labels.to_map(&pool.identity),
        has_tmpfs_owners: engine.facts().kind == EngineKind::Docker,
        limits_layer,
    };
    let disk = create(engine, request, plan).await?;
    let failed = |error| start_error(error, request, engine);
    let inspect = || async { engine.inspect(name.as_str()).await.map_err(failed) };
    let mut output = InitOutput::attach(engine, name.as_str()).await;
    engine.start(name.as_str()).await.map_err(failed)?;
    let ready = wait_for_socket(&mut watch, &mut output, || socket.exists());
    let inspected = async { inspect().await.map_err(StartFailure::from) };
    let ((), status) = match tokio::try_join!(ready, inspected) {
        Ok(both) => both,
        Err(error) => return Err(with_exit(error, engine, name, &output.text()).await),
    };
    // The engine has mounted what was there meanwhile.
    if MountedInodes::of(spec) != request.mounted {
        let reason = "its workspace or a volume was replaced meanwhile";
        return Err(ContainerError::NotStarted(reason.to_owned()));
    }
    pool.dirs.close(name).map_err(storage)?;
    let ended = |status: &ContainerStatus| exited(status, &output.text());
    let init_pid = status.pid.ok_or_else(|| ended(&status))?;
    Ok(RunningContainer {
        facts: Arc::new(facts(engine, name, &status, request, disk)),
        attachment: ContainerAttachment {
            container: status.id,
            socket: ByteString::from(socket),
            init_pid,
        },
        socket_inode: pool.dirs.socket_inode(name),
    })
}

fn facts(
    engine: &EngineConnection,
    name: &ContainerName,
    status: &ContainerStatus,
    request: &MakeRequest,
    disk: DiskEnforcement,
) -> ContainerFacts {
    ContainerFacts {
        engine: engine_name(engine),
        container_id: status.id.clone(),
        container_name: name.to_string(),
        image_id: request.image.id.clone(),
        disk,
    }
}

/// The engine and its version.
pub(super) fn engine_name(engine: &EngineConnection) -> String {
    let facts = engine.facts();
    format!("{} {}", facts.kind.as_str(), facts.version)
}

/// Creates the container, with a limit on its layer where the storage driver has one.
async fn create<'a>(
    engine: &EngineConnection,
    request: &MakeRequest,
    plan: impl Fn(bool) -> ContainerPlan<'a>,
) -> Result<DiskEnforcement, ContainerError> {
    let name = request.name.as_str();
    let failed = |error| start_error(error, request, engine);
    if request.limits.disk_bytes.is_some() && engine.facts().may_limit_layers() {
        match engine.create(name, create_body(plan(true))?).await {
            Ok(_id) => return Ok(DiskEnforcement::StorageDriver),
            Err(EngineError::Refused(message)) if is_about_layers(&message) => {
                tracing::info!(
                    message,
                    "the storage driver limits no layer: only the workspace"
                );
            }
            Err(error) => return Err(failed(error)),
        }
    }
    let created = engine.create(name, create_body(plan(false))?).await;
    created
        .map(|_id| DiskEnforcement::Accounting)
        .map_err(failed)
}

fn is_about_layers(message: &str) -> bool {
    let lower = message.to_lowercase();
    NO_LAYER_LIMIT.iter().any(|text| lower.contains(text))
}

/// Engines say in words what does not exist.
fn start_error(
    error: EngineError,
    request: &MakeRequest,
    engine: &EngineConnection,
) -> ContainerError {
    let spec = &request.launch.spec;
    if let EngineError::NotFound(message) = &error {
        let message = message.to_lowercase();
        if message.contains("no such image") {
            let image = spec.image.clone();
            return ContainerError::NoImage { image };
        }
        if message.contains("network") {
            let network = spec.network.clone();
            return ContainerError::NoNetwork { network };
        }
    }
    error.into_container_error(engine.socket())
}

/// Why no socket came.
#[derive(Debug)]
enum StartFailure {
    /// The first process has ended, or its output cannot be read any more.
    Ended,
    /// It runs, and made none in time.
    Late,
    /// Anything else.
    Container(ContainerError),
}

impl From<ContainerError> for StartFailure {
    fn from(error: ContainerError) -> Self {
        Self::Container(error)
    }
}

async fn wait_for_socket(
    watch: &mut FileWatch,
    output: &mut InitOutput,
    exists: impl Fn() -> bool,
) -> Result<(), StartFailure> {
    let deadline = Instant::now() + READY_LIMIT;
    while !exists() {
        tokio::select! {
            changed = watch.changed() => if let Err(error) = changed {
                let error = ContainerError::NotStarted(error.to_string());
                return Err(StartFailure::Container(error));
            },
            () = output.ended() => return Err(StartFailure::Ended),
            () = sleep_until(deadline) => return Err(StartFailure::Late),
        }
    }
    Ok(())
}

/// With the exit code of the init and what it said.
async fn with_exit(
    failure: StartFailure,
    engine: &EngineConnection,
    name: &ContainerName,
    said: &str,
) -> ContainerError {
    let status = match failure {
        StartFailure::Container(error) => return error,
        StartFailure::Ended | StartFailure::Late => engine.inspect(name.as_str()).await,
    };
    match status {
        Ok(status) if status.running => ContainerError::NotStarted(format!(
            "its init accepts nothing after {} s{}",
            READY_LIMIT.as_secs(),
            quoted(said)
        )),
        Ok(status) => exited(&status, said),
        Err(error) => error.into_container_error(engine.socket()),
    }
}

fn exited(status: &ContainerStatus, said: &str) -> ContainerError {
    let text = if said.is_empty() { &status.error } else { said };
    ContainerError::NotStarted(format!(
        "its init ended with exit code {}{}",
        status.exit_code,
        quoted(text)
    ))
}

fn quoted(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(": {text}")
    }
}
