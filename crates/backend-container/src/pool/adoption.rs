//! Containers of earlier daemons with the same state directory: those that can be used are, and the
//! others are removed.

use std::collections::{HashMap, HashSet};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use ostler_backend::{ContainerAttachment, execution_dir, stored_files};
use ostler_model::{ByteString, DiskEnforcement, ExecutionId};
use tokio::sync::watch;
use tokio::time::Instant;

use super::driver::{ContainerPool, RunningContainer};
use super::facts::ContainerFacts;
use super::init_socket;
use super::make::engine_name;
use super::state::ContainerTraits;
use crate::engine::{ContainerStatus, EngineConnection, EngineError, ListedContainer};
use crate::identity::{ContainerLabels, ContainerName};
use crate::state_dirs::StateDirs;

/// How many containers are inspected at once.
const INSPECTIONS_AT_ONCE: usize = 8;

/// How long an engine may go on to create a container whose daemon was killed meanwhile, and which it
/// does not list before.
const LATE_CREATION: Duration = Duration::from_secs(10);

/// A container of an earlier daemon.
#[derive(Debug)]
struct FoundContainer {
    name: ContainerName,
    labels: Option<ContainerLabels>,
    status: ContainerStatus,
    /// Whether its init listens.
    listens: bool,
}

/// Removes the records of executions that ended without a daemon, or are gone.
pub(super) fn forget_ended_uses(state_dir: &Path, dirs: &StateDirs) {
    for (id, _container) in dirs.uses() {
        if !is_running(state_dir, id)
            && let Err(error) = dirs.forget_use(id)
        {
            tracing::warn!(execution = %id, %error, "the record of a container's use stays");
        }
    }
}

/// Whether an execution has no record of its end. One that cannot be read may be running.
fn is_running(state_dir: &Path, id: ExecutionId) -> bool {
    let Ok(executions) = std::fs::File::open(state_dir.join("executions")) else {
        return false;
    };
    let Ok(dir) = execution_dir::open_directory(executions.as_fd(), id) else {
        return false;
    };
    let header = stored_files::read_spec_header(dir.as_fd());
    let record = stored_files::read_exit_record(dir.as_fd());
    match (header, record) {
        (Ok(Some(header)), Ok(Some(record))) => record.attempt < header.attempt,
        _ => true,
    }
}

/// Looks through all containers of this state directory.
///
/// # Errors
/// When the engine does not answer; then nothing has changed.
pub(super) async fn adopt(
    pool: &ContainerPool,
    engine: &EngineConnection,
) -> Result<(), EngineError> {
    let listed = engine.list(&pool.identity.filter()).await?;
    let found: Vec<_> = futures_util::stream::iter(listed)
        .map(|container| inspect(pool, engine, container))
        .buffer_unordered(INSPECTIONS_AT_ONCE)
        .collect()
        .await;
    let found: Vec<FoundContainer> = found
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .flatten()
        .collect();
    let names: HashSet<_> = found.iter().map(|it| it.name.clone()).collect();
    let hashes: Vec<String> = found
        .iter()
        .filter_map(|it| Some(it.labels.as_ref()?.init_hash.clone()))
        .collect();
    take_over(pool, engine, found);
    for name in pool.dirs.containers() {
        if names.contains(&name) {
            continue;
        }
        let tables = &mut pool.tables.lock();
        if tables.containers.contains_key(&name) {
            continue;
        }
        if pool.dirs.is_recent(&name, LATE_CREATION) {
            let due = Instant::now() + LATE_CREATION;
            tables.state.adopt_for_removal(name, due);
        } else {
            pool.dirs.remove(&name);
        }
    }
    pool.init.remove_others(pool.dirs.root(), &hashes);
    pool.changed.notify_one();
    Ok(())
}

/// The state of a listed container; none where it is gone meanwhile, or its name is none of ours.
async fn inspect(
    pool: &ContainerPool,
    engine: &EngineConnection,
    container: ListedContainer,
) -> Result<Option<FoundContainer>, EngineError> {
    let Some(name) = ContainerName::parse(&container.name) else {
        tracing::warn!(container = container.name, "has our label and not our name");
        return Ok(None);
    };
    let status = match engine.inspect(name.as_str()).await {
        Ok(status) => status,
        Err(EngineError::NotFound(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let listens = match status.pid.filter(|_| status.running) {
        Some(pid) => init_socket::listens_in(pool, &name, pid).await,
        None => false,
    };
    Ok(Some(FoundContainer {
        listens,
        name,
        labels: ContainerLabels::from_map(&container.labels),
        status,
    }))
}

/// Decides on each.
fn take_over(pool: &ContainerPool, engine: &EngineConnection, found: Vec<FoundContainer>) {
    let mut tables = pool.tables.lock();
    // Under the lock: whoever ends a use removes its record under it.
    let mut uses: HashMap<ContainerName, usize> = HashMap::new();
    for (_execution, name) in pool.dirs.uses() {
        *uses.entry(name).or_default() += 1;
    }
    for container in found {
        let name = container.name.clone();
        if tables.containers.contains_key(&name) {
            continue;
        }
        let count = uses.get(&name).copied().unwrap_or(0);
        let now = Instant::now();
        let usable = is_usable(pool, &container);
        let init_pid = container.status.pid.filter(|_| container.status.running);
        match (container.labels, init_pid) {
            (Some(labels), Some(init_pid)) if usable || count > 0 => {
                tracing::info!(container = %name, executions = count, usable, "found again");
                let traits = ContainerTraits {
                    key: labels.key,
                    idle_timeout: labels.idle_timeout,
                };
                let running = running(pool, engine, &name, &container.status, init_pid);
                let (_sender, receiver) = watch::channel(Some(Ok(running)));
                tables.containers.insert(name.clone(), receiver);
                tables.state.adopt(name.clone(), traits, count, now);
                if !usable {
                    tables.state.retire(&name, now);
                }
            }
            _ => {
                tracing::info!(container = %name, "of an earlier daemon, and of no use");
                tables.state.adopt_for_removal(name, now);
            }
        }
    }
}

/// Whether further starts may use it.
fn is_usable(pool: &ContainerPool, container: &FoundContainer) -> bool {
    let labels = container.labels.as_ref();
    let same_init = labels.is_some_and(|it| it.init_hash == pool.init.hash);
    let shared = labels.is_some_and(|it| it.idle_timeout.is_some());
    same_init && shared && container.listens && !container.status.unhealthy
}

fn running(
    pool: &ContainerPool,
    engine: &EngineConnection,
    name: &ContainerName,
    status: &ContainerStatus,
    init_pid: u32,
) -> RunningContainer {
    RunningContainer {
        facts: Arc::new(ContainerFacts {
            engine: engine_name(engine),
            container_id: status.id.clone(),
            container_name: name.to_string(),
            image_id: status.image_id.clone(),
            disk: if status.limits_layer {
                DiskEnforcement::StorageDriver
            } else {
                DiskEnforcement::Accounting
            },
        }),
        attachment: ContainerAttachment {
            container: status.id.clone(),
            socket: ByteString::from(pool.dirs.socket(name)),
            init_pid,
        },
        socket_inode: pool.dirs.socket_inode(name),
    }
}
