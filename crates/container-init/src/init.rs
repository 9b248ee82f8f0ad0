//! The container's pid 1: accepts connections of shims, forks a runner for each, reaps what ends and
//! kills what no runner owns.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use ostler_sandbox::spawn::wait::{self, ReapOutcome};
use ostler_sys::process_role::{self, Forked};
use ostler_sys::{peer, proc, seqpacket, signals};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{AtFlags, Mode, OFlags, open, renameat, unlinkat};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use rustix::process::DumpableBehavior;

use crate::protocol::{SOCKET_DIR, SOCKET_NAME};
use crate::{runner, secret_files};

/// How many connections may wait to be accepted.
const BACKLOG: i32 = 1024;
/// The name of the socket before it listens.
const NEW_SOCKET_NAME: &str = "init.sock.new";

/// Listens, with the container's environment, until the container ends. Returns in runners, once
/// they have served their connection.
///
/// # Errors
/// When the socket cannot be made.
pub fn run(environment: &[(OsString, OsString)]) -> io::Result<()> {
    process_role::set_name(c"ostler-init");
    signals::reset_dispositions();
    // Commands of the same user must not trace what controls them.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let children = signals::sigchld_fd()?;
    let listener = listen()?;
    let mut runners = BTreeSet::new();
    loop {
        let mut polled = [
            PollFd::new(&listener, PollFlags::IN),
            PollFd::new(&children, PollFlags::IN),
        ];
        match poll(&mut polled, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [accepts, ended] = polled.map(|it| !it.revents().is_empty());
        if ended {
            signals::drain_signalfd(children.as_fd());
            reap(&mut runners);
        }
        if accepts && let Some(connection) = accept(&listener) {
            match process_role::fork() {
                Ok(Forked::Child) => {
                    drop((listener, children));
                    runner::serve(connection, environment);
                    return Ok(());
                }
                Ok(Forked::Parent(pid)) => {
                    runners.insert(pid);
                }
                Err(error) => runner::refuse(&connection, error),
            }
        }
    }
}

/// Makes the socket that shims connect to. Its user on the host may be another one than here, so
/// that anyone may connect who reaches it: on the host, its directory is private.
fn listen() -> io::Result<OwnedFd> {
    let directory = open(
        SOCKET_DIR,
        OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let _absent = unlinkat(&directory, NEW_SOCKET_NAME, AtFlags::empty());
    rustix::process::umask(Mode::empty());
    let listener = seqpacket::listen(directory.as_fd(), NEW_SOCKET_NAME, BACKLOG)?;
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
    // Under its name it accepts connections.
    renameat(&directory, NEW_SOCKET_NAME, &directory, SOCKET_NAME)?;
    Ok(listener)
}

/// Accepts the connection of a process outside of the container: one that has no pid here.
fn accept(listener: &OwnedFd) -> Option<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let connection = accept_with(listener, flags).ok()?;
    matches!(peer::pid(&connection), Ok(None)).then_some(connection)
}

/// Reaps what has ended. What is left of a runner that was killed has become this process's child,
/// and is killed with all that descends from it.
fn reap(runners: &mut BTreeSet<i32>) {
    while let ReapOutcome::Reaped(ended) = wait::reap(-1) {
        runners.remove(&ended.pid);
    }
    if runners.is_empty() {
        secret_files::remove_all();
    }
    let own = i32::try_from(std::process::id()).unwrap_or(1);
    let orphans = proc::children(own);
    for orphan in orphans.into_iter().filter(|pid| !runners.contains(pid)) {
        for pid in std::iter::once(orphan).chain(proc::descendants(orphan)) {
            let _gone = signals::kill(pid, libc::SIGKILL);
        }
    }
}
