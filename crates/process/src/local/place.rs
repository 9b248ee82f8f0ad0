//! [`LocalPlace`].

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_model::{
    Abilities, Ability, Confinement, Degraded, Evidence, ExecutionId, Holder, Observation,
    PlaceName, WorkspaceAnswer, WorkspaceOrder,
};
use ostler_sandbox::cgroup::SlotOwner;
use ostler_sandbox::survey::Survey;
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

use super::connection::{AttemptControl, Current, REPORTS_MAX};
use super::disk;
use super::observe;
use super::recovery;
use super::sockets;
use super::supply::{Source, Supply, begin_keeper};
use super::workspace;
use crate::place::{
    Birth, BoxFuture, Found, LaunchIo, LaunchPlan, ObserveError, Place, SpawnError, WorkspaceError,
};
use crate::proto::{INLINE_PLAN_BYTES, PLAN_MAX_BYTES, ToShim, WirePlan, encode};
use crate::shim::PREPARED_PREFIX;
use crate::sys::memory;

/// How a directory is called that is being removed.
const GONE_PREFIX: &str = ".gone-";
/// Shims that are tried for one plan; one may have been killed while it was idle.
const SHIMS_TRIED: usize = 8;

/// Who does the work of births.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keeper {
    /// This executable, started with the single argument `__keeper`; executions outlive us.
    Executable(PathBuf),
    /// Threads of this process. Executions end with it, and the abilities say so.
    None,
}

/// This machine.
pub struct LocalPlace {
    supply: Arc<Supply>,
    abilities: Abilities,
    /// What file systems can do, asked once each.
    survey: Arc<Survey>,
    _stop: DropGuard,
}

/// A place that could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The state directory cannot be made or opened.
    #[error("the state directory {path} cannot be used: {source}")]
    StateDirectory {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The keeper cannot be started.
    #[error("the keeper {path} cannot be started: {source}")]
    Keeper {
        /// Which executable.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl fmt::Debug for LocalPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalPlace")
            .field("abilities", &self.abilities)
            .finish_non_exhaustive()
    }
}

impl LocalPlace {
    /// Opens this machine with `state_dir/executions` as the place of journals; the directory
    /// is made with mode 0700 where it is missing. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the directory cannot be used or the keeper not be started.
    pub async fn open(state_dir: &Path, keeper: Keeper) -> Result<Self, OpenError> {
        let unusable = |source| OpenError::StateDirectory {
            path: state_dir.to_owned(),
            source,
        };
        let path = state_dir.join("executions");
        let executions = open_executions(&path).map_err(unusable)?;
        let (source, abilities) = match keeper {
            Keeper::None => {
                let (subtree, abilities) = ostler_sandbox::probe(false);
                let owner = SlotOwner::of(executions.as_fd());
                let owner = owner.map_err(|errno| unusable(errno.into()))?;
                (
                    Source::threads(subtree.owned_by(owner)),
                    not_durable(abilities),
                )
            }
            Keeper::Executable(path) => {
                let begun = begin_keeper(&path, &executions).await;
                let failed = |source| OpenError::Keeper {
                    path: path.clone(),
                    source,
                };
                let (link, abilities) = begun.map_err(failed)?;
                (Source::keeper(path, link), durable(abilities))
            }
        };
        let supply = Supply::new(executions, source);
        supply.warm_up().await;
        Ok(Self {
            _stop: supply.stopping().drop_guard(),
            supply,
            abilities,
            survey: Arc::new(Survey::new(path)),
        })
    }

    async fn start(&self, plan: LaunchPlan) -> Result<Birth, SpawnError> {
        let (id, attempt) = (plan.id, plan.attempt);
        if let Some(workspace) = disk::Workspace::of(&plan) {
            self.take_down(id, workspace).await?;
        }
        let takes_input = matches!(plan.io, LaunchIo::Open | LaunchIo::Pty(_));
        let has_terminal = matches!(plan.io, LaunchIo::Pty(_));
        let (message, file) = start_message(plan)?;
        for _ in 0..SHIMS_TRIED {
            let connection = self.supply.acquire().await?;
            let (sender, reports) = mpsc::channel(REPORTS_MAX);
            connection.begin(Current {
                id,
                attempt,
                reports: Some(sender),
            });
            let file = file.as_ref().map(AsFd::as_fd);
            if connection.send(&message, file).await.is_ok() {
                let control = Arc::new(AttemptControl {
                    connection,
                    id,
                    attempt,
                    takes_input,
                    has_terminal,
                });
                return Ok(Birth { control, reports });
            }
            self.supply.give_up(&connection);
        }
        let why = "shims end before they take a plan";
        Err(SpawnError::Keeper(why.to_owned()))
    }
}

impl LocalPlace {
    /// What a workspace holds whose growth is limited; without that the limit cannot be kept.
    async fn take_down(
        &self,
        id: ExecutionId,
        workspace: disk::Workspace,
    ) -> Result<(), SpawnError> {
        let execution = self.supply.execution(id);
        let taken = self
            .supply
            .blocking(move || {
                disk::begin(&execution, &workspace)
                    .err()
                    .map(|it| it.to_string())
            })
            .await;
        match taken {
            None => Ok(()),
            Some(why) => Err(SpawnError::Storage(format!(
                "the growth of the workspace cannot be limited: {why}"
            ))),
        }
    }
}

fn open_executions(path: &Path) -> io::Result<OwnedFd> {
    crate::private_dir::make(path)?;
    let executions = std::fs::File::open(path)?.into();
    remove_prepared(path);
    Ok(executions)
}

/// Removes directories that shims of an earlier daemon prepared and did not come to use. Where
/// such a shim lives, it makes another one. Renamed first: half of one is never renamed to an
/// execution.
fn remove_prepared(executions: &Path) {
    for entry in std::fs::read_dir(executions)
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name();
        let Some(rest) = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREPARED_PREFIX))
        else {
            continue;
        };
        let gone = executions.join(format!("{GONE_PREFIX}{rest}"));
        let removed =
            std::fs::rename(entry.path(), &gone).and_then(|()| std::fs::remove_dir_all(&gone));
        if let Err(error) = removed {
            tracing::debug!(path = %gone.display(), %error, "stays until the next start");
        }
    }
}

/// What a keeper adds: what outlives the daemon, commands and gates.
fn durable(mut abilities: Abilities) -> Abilities {
    abilities.present.push(Ability::Durable);
    let network = |it: &&Degraded| it.ability == Ability::NetworkNamespace;
    let lack = abilities.missing.iter().find(network).map(|it| Degraded {
        ability: Ability::Gate,
        reason: it.reason.clone(),
    });
    abilities.present.retain(|it| *it != Ability::Gate);
    abilities.missing.retain(|it| it.ability != Ability::Gate);
    match lack {
        Some(lack) => abilities.missing.push(lack),
        None => abilities.present.push(Ability::Gate),
    }
    abilities
}

fn not_durable(mut abilities: Abilities) -> Abilities {
    abilities.present.retain(|it| *it != Ability::Gate);
    abilities.missing.retain(|it| it.ability != Ability::Gate);
    for (ability, reason) in [
        (
            Ability::Durable,
            "the engine runs without a keeper: commands end with its process",
        ),
        (
            Ability::Gate,
            "the engine runs without a keeper, and only its executable can become a gate",
        ),
    ] {
        abilities.missing.push(Degraded {
            ability,
            reason: reason.to_owned(),
        });
    }
    abilities
}

type StartMessage = (Vec<u8>, Option<OwnedFd>);

/// The plan as one packet, or as a memory file where it is larger.
fn start_message(plan: LaunchPlan) -> Result<StartMessage, SpawnError> {
    let failed = |error: &dyn fmt::Display| SpawnError::Keeper(error.to_string());
    let message = ToShim::Start(Box::new(WirePlan::from(plan)));
    let bytes = encode(&message).map_err(|error| failed(&error))?;
    if bytes.len() <= INLINE_PLAN_BYTES {
        return Ok((bytes, None));
    }
    if bytes.len() as u64 > PLAN_MAX_BYTES {
        return Err(SpawnError::PlanTooLarge {
            bytes: bytes.len() as u64,
            limit: PLAN_MAX_BYTES,
        });
    }
    let file = memory::file_with("ostler-plan", &bytes).map_err(|error| failed(&error))?;
    let notice = encode(&ToShim::StartInMemory).map_err(|error| failed(&error))?;
    Ok((notice, Some(file)))
}

impl Place for LocalPlace {
    fn name(&self) -> PlaceName {
        PlaceName::local()
    }

    fn abilities(&self) -> Abilities {
        self.abilities.clone()
    }

    fn spawn(&self, plan: LaunchPlan) -> BoxFuture<'_, Result<Birth, SpawnError>> {
        Box::pin(self.start(plan))
    }

    /// Not for executions that this place gave birth to itself.
    fn find(&self, id: ExecutionId) -> BoxFuture<'_, Found> {
        Box::pin(recovery::find(Arc::clone(&self.supply), id))
    }

    fn observe(
        &self,
        id: ExecutionId,
        what: Observation,
    ) -> BoxFuture<'_, Result<Evidence, ObserveError>> {
        Box::pin(observe::look(Arc::clone(&self.supply), id, what))
    }

    fn dial(&self, id: ExecutionId, address: SocketAddr) -> BoxFuture<'_, io::Result<OwnedFd>> {
        Box::pin(sockets::dial(Arc::clone(&self.supply), id, address))
    }

    fn holders<'a>(&'a self, ports: &'a [u16]) -> BoxFuture<'a, Vec<Holder>> {
        let (supply, ports) = (Arc::clone(&self.supply), ports.to_vec());
        Box::pin(async move {
            let asked = Arc::clone(&supply);
            let found = supply.blocking(move || sockets::holders(&asked, &ports));
            found.await
        })
    }

    fn survey<'a>(&'a self, wanted: &'a Confinement) -> BoxFuture<'a, Vec<Degraded>> {
        let (survey, wanted) = (Arc::clone(&self.survey), wanted.clone());
        Box::pin(async move {
            let seen = self.supply.blocking(move || Some(survey.look(&wanted)));
            // Cut short, it has shown nothing.
            seen.await.unwrap_or_else(|| {
                vec![Degraded {
                    ability: Ability::OwnRoot,
                    reason: "what the file systems can do could not be found out".to_owned(),
                }]
            })
        })
    }

    fn workspace(
        &self,
        id: ExecutionId,
        order: WorkspaceOrder,
    ) -> BoxFuture<'_, Result<WorkspaceAnswer, WorkspaceError>> {
        Box::pin(workspace::carry_out(Arc::clone(&self.supply), id, order))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.supply.close())
    }
}
