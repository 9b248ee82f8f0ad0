//! Sessions that end with their front, when the front goes away while no daemon lives.
//!
//! A front's session is named after its process. A new daemon ends those whose process is
//! gone, and watches the others: their fronts come back when their client speaks.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;

use ostler_engine::{Engine, ListFilter};
use ostler_model::{Caller, Owner, Principal, Scope, SessionName};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::hello::FRONT_SESSION;

/// The session name of the front with this pid, as long as that process lives.
pub(crate) fn front_session(pid: u32) -> Option<String> {
    Some(format!("{FRONT_SESSION}{pid}-{}", start_time(pid)?))
}

/// Whether a name is kept for sessions of fronts.
pub(crate) fn is_front_session(name: &str) -> bool {
    name.starts_with(FRONT_SESSION)
}

/// A caller that sees one session.
pub(crate) fn caller(session: &str) -> Caller {
    Caller {
        owner: Owner {
            session: Some(SessionName(session.to_owned())),
            ..owner()
        },
        scope: Scope::Session,
    }
}

fn owner() -> Owner {
    Owner {
        principal: Principal::unix(rustix::process::geteuid().as_raw()),
        project: None,
        session: None,
        task: None,
    }
}

/// Ends the sessions of earlier fronts, each when its front is gone.
pub(crate) fn end_orphans(engine: &Engine, tracker: &TaskTracker, stop: &CancellationToken) {
    for session in earlier(engine) {
        let (engine, stop) = (engine.clone(), stop.clone());
        tracker.spawn(async move {
            let gone = async { front_gone(&session).await };
            if stop.run_until_cancelled(gone).await.is_some() {
                tracing::info!(session, "the front of this session is gone");
                end(&engine, &session).await;
            }
        });
    }
}

/// Ends one session (D3).
pub(crate) async fn end(engine: &Engine, session: &str) {
    if let Err(error) = engine.end_session(&caller(session)).await {
        tracing::warn!(session, %error, "the session did not end cleanly");
    }
}

fn earlier(engine: &Engine) -> BTreeSet<String> {
    let all = Caller {
        owner: owner(),
        scope: Scope::Principal,
    };
    let executions = engine.list(&all, &ListFilter::default());
    let names = executions
        .iter()
        .filter_map(|info| info.owner.session.as_ref());
    names
        .map(|name| name.0.clone())
        .filter(|name| is_front_session(name))
        .collect()
}

async fn front_gone(session: &str) {
    let Some(pidfd) = pidfd_of(session) else {
        return;
    };
    if let Err(error) = ostler_process::ended(pidfd).await {
        tracing::warn!(session, %error, "the front cannot be watched");
    }
}

/// The front's process, where it still is the one the session is named after.
fn pidfd_of(session: &str) -> Option<OwnedFd> {
    let (pid, _) = session.strip_prefix(FRONT_SESSION)?.split_once('-')?;
    let pid: u32 = pid.parse().ok()?;
    let raw = Pid::from_raw(i32::try_from(pid).ok()?)?;
    let pidfd = pidfd_open(raw, PidfdFlags::empty()).ok()?;
    // The name was read after the descriptor was opened, so it belongs to that process.
    (front_session(pid)? == session).then_some(pidfd)
}

/// When a process started, in clock ticks after boot: field 22 of proc(5) stat.
fn start_time(pid: u32) -> Option<u64> {
    const AFTER_NAME: usize = 19;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(AFTER_NAME)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_that_of_a_living_process_and_no_other() {
        let ours = front_session(std::process::id()).unwrap();
        assert!(is_front_session(&ours));
        assert!(pidfd_of(&ours).is_some());
        assert!(pidfd_of(&format!("{ours}1")).is_none());
        assert!(pidfd_of("front-0-0").is_none());
        assert!(pidfd_of("front-nonsense").is_none());
        assert_eq!(front_session(0), None);
    }
}
