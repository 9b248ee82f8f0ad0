//! The end of a session: finite executions stop and are cleaned, the others pass to the project.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::join_all;
use ostler_model::{Caller, Lifetime, Owner, StopReason};
use serde::{Deserialize, Serialize};

use crate::admission::environment;
use crate::admission::quota::QuotaKey;
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::execution::ExecutionHandle;
use crate::json_file;
use crate::project::project_of;
use crate::{overlay, retention, stop};

/// The file that holds the owner of an execution that was passed on.
const OWNER_FILE: &str = "owner.json";
const OWNER_VERSION: u8 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct OwnerFile {
    version: u8,
    owner: Owner,
}

/// Ends the caller's session, or the part of it that is in the projects that the caller is limited
/// to; a caller without one has nothing to end.
pub(crate) async fn end(core: &Arc<EngineInner>, caller: &Caller) -> Result<(), Error> {
    let Some(session) = &caller.owner.session else {
        return Ok(());
    };
    let quota_key = QuotaKey::Finite(caller.owner.principal.clone(), session.clone());
    core.registry.drop_waiters(caller, &quota_key);
    let is_theirs =
        |owner: &Owner| owner.session == caller.owner.session && caller.can_access(owner);
    let candidates = core.registry.all_with(|summary| is_theirs(&summary.owner));
    let theirs = candidates
        .filter(|entry| is_theirs(&entry.owner()))
        // Restores each into the registry's full entries, because some pass to the project.
        .filter_map(|entry| core.registry.get(entry.id));
    let (ending, passing): (Vec<_>, Vec<_>) = theirs.partition(|entry| ends_with_session(entry));
    // A full disk must not prevent executions from ending.
    let passed = passing.iter().map(|entry| pass_to_project(core, entry));
    let passed: Vec<Result<(), Error>> = passed.collect();
    core.notify(|observer| observer.session_ended(caller));
    let ended = join_all(ending.iter().map(|entry| stop_and_remove(core, entry))).await;
    passed.into_iter().chain(ended).collect()
}

fn ends_with_session(entry: &ExecutionHandle) -> bool {
    matches!(entry.spec.lifetime, Lifetime::Finite { .. }) && !entry.spec.keep
}

async fn stop_and_remove(
    core: &Arc<EngineInner>,
    entry: &Arc<ExecutionHandle>,
) -> Result<(), Error> {
    let grace = core.grace_of(&entry.spec);
    stop::stop_and_wait(core, entry, StopReason::SessionEnded, grace).await?;
    // Changes that wait for a decision are not lost with a session.
    if overlay::undecided_changes(core, entry).await.is_some() {
        return pass_to_project(core, entry);
    }
    let outcome = retention::remove(core, entry.id, None).await;
    tracing::debug!(id = %entry.id, ?outcome, "cleaned with its session");
    Ok(())
}

fn pass_to_project(core: &EngineInner, entry: &ExecutionHandle) -> Result<(), Error> {
    let mut owner = Owner::clone(&entry.owner());
    owner.session = None;
    if owner.project.is_none() {
        let home = environment::value(&core.settings.base_env, b"HOME");
        let home = home.as_ref().map(|home| home.as_path());
        owner.project = Some(project_of(entry.spec.cwd.as_path(), home));
    }
    core.registry
        .move_to_quota(entry.id, QuotaKey::of(&entry.spec, &owner));
    core.notify(|observer| observer.owner_changed(entry.id, &owner));
    entry.set_owner(owner.clone());
    // If this write fails, the next engine, which has no such session, passes it on again.
    write_owner(&entry.dir, &owner)
}

fn write_owner(dir: &Path, owner: &Owner) -> Result<(), Error> {
    let file = OwnerFile {
        version: OWNER_VERSION,
        owner: owner.clone(),
    };
    json_file::replace(dir, OWNER_FILE, &file)
}

/// The owner since it was passed on; none if it never was.
pub(crate) fn read_owner(dir: &Path) -> Option<Owner> {
    let bytes = json_file::read(&dir.join(OWNER_FILE)).ok()?;
    let file: OwnerFile = serde_json::from_slice(&bytes).ok()?;
    (file.version <= OWNER_VERSION).then_some(file.owner)
}
