//! Sessions that end with their stdio proxy, if the proxy exits while no daemon runs.
//!
//! The session of a proxy is named after its process. A new daemon ends those whose process has
//! exited, and watches the others: their proxies reconnect when their client sends a request.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::{fs, io};

use ostler_engine::{Engine, ListFilter};
use ostler_model::{Caller, Owner, Principal, ProjectView, Scope, SessionName};
use ostler_sys::open_files;
use ostler_sys::process_stat::ProcessStat;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::stdio_protocol::STDIO_SESSION_PREFIX;

/// The session name of the proxy with this pid, as long as that process lives.
pub(crate) fn stdio_session(pid: u32) -> Option<String> {
    session_of_pid(pid).ok().flatten()
}

/// Whether a name is reserved for sessions of proxies.
pub(crate) fn is_stdio_session(name: &str) -> bool {
    name.starts_with(STDIO_SESSION_PREFIX)
}

/// A caller that sees one session.
pub(crate) fn caller(session: &str) -> Caller {
    Caller {
        owner: Owner {
            session: Some(SessionName(session.to_owned())),
            ..owner()
        },
        scope: Scope::Session,
        projects: ProjectView::default(),
    }
}

/// A caller that sees one session, and executions that were passed to its project.
pub(crate) fn caller_in_project(session: &str, project: String) -> Caller {
    let mut caller = caller(session);
    caller.owner.project = Some(project);
    caller
}

fn owner() -> Owner {
    Owner {
        principal: Principal::unix(rustix::process::geteuid().as_raw()),
        project: None,
        session: None,
        task: None,
        channel: ostler_model::RequestChannel::Local,
    }
}

/// Ends the sessions of earlier proxies, each when its proxy exits.
pub(crate) fn end_orphans(engine: &Engine, tracker: &TaskTracker, stop: &CancellationToken) {
    for session in earlier_sessions(engine) {
        let (engine, stop) = (engine.clone(), stop.clone());
        tracker.spawn(async move {
            let client_exited = async { wait_client_exit(&session).await };
            if stop.run_until_cancelled(client_exited).await.is_some() {
                tracing::info!(session, "the front of this session is gone");
                end(&engine, &session).await;
            }
        });
    }
}

pub(crate) async fn end(engine: &Engine, session: &str) {
    if let Err(error) = engine.end_session(&caller(session)).await {
        tracing::warn!(session, %error, "the session did not end cleanly");
    }
}

fn earlier_sessions(engine: &Engine) -> BTreeSet<String> {
    let all = Caller {
        owner: owner(),
        scope: Scope::Principal,
        projects: ProjectView::default(),
    };
    let executions = engine.list(&all, &ListFilter::default());
    let names = executions
        .iter()
        .filter_map(|info| info.owner.session.as_ref());
    names
        .map(|name| name.0.clone())
        .filter(|name| is_stdio_session(name))
        .collect()
}

async fn wait_client_exit(session: &str) {
    // A failure to get a descriptor does not mean that the proxy has exited.
    let Some(pidfd) = open_files::wait_passively(|| pidfd_of(session).ok()).await else {
        return;
    };
    if let Err(error) = ostler_sys::pidfd::wait(pidfd).await {
        tracing::warn!(session, %error, "the front cannot be watched");
    }
}

/// Opens a pidfd of the proxy; none if it exited, or the pid was reused.
///
/// # Errors
/// When there is no free descriptor, or none that requests could do without.
fn pidfd_of(session: &str) -> io::Result<Option<OwnedFd>> {
    let Some(pid) = pid_of(session) else {
        return Ok(None);
    };
    if open_files::is_scarce() {
        return Err(Errno::MFILE.into());
    }
    let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        Err(errno) if open_files::is_exhausted(errno) => return Err(errno.into()),
        Err(_) => return Ok(None),
    };
    // The name was read after the descriptor was opened, so it belongs to that process.
    let pid = pid.as_raw_nonzero().get().unsigned_abs();
    let is_same_process = session_of_pid(pid)?.as_deref() == Some(session);
    Ok(is_same_process.then_some(pidfd))
}

/// The pid in the name of a proxy's session.
fn pid_of(session: &str) -> Option<Pid> {
    let (pid, _) = session
        .strip_prefix(STDIO_SESSION_PREFIX)?
        .split_once('-')?;
    Pid::from_raw(pid.parse().ok()?)
}

/// As [`stdio_session`].
///
/// # Errors
/// When no descriptor is free.
fn session_of_pid(pid: u32) -> io::Result<Option<String>> {
    let stat = match fs::read(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat,
        Err(error) if open_files::is_exhausted_io(&error) => return Err(error),
        Err(_) => return Ok(None),
    };
    let stat = ProcessStat::parse(&stat);
    Ok(stat.map(|stat| format!("{STDIO_SESSION_PREFIX}{pid}-{}", stat.start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_that_of_a_living_process_and_no_other() {
        let ours = stdio_session(std::process::id()).unwrap();
        assert!(is_stdio_session(&ours));
        assert!(pidfd_of(&ours).unwrap().is_some());
        for other in [&format!("{ours}1"), "front-0-0", "front-nonsense"] {
            assert!(pidfd_of(other).unwrap().is_none(), "{other}");
        }
        assert_eq!(stdio_session(0), None);
    }
}
