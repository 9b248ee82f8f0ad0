//! Recovers executions whose daemon has ended:
//!
//! | found | outcome |
//! |---|---|
//! | an exit record of the newest attempt | it ended, as recorded |
//! | `ctl.sock` answers | it runs, and reports here from now on |
//! | neither, members of its tree alive | its shim was killed; they are killed |
//! | another boot of the machine | lost with it |
//! | nothing | lost, how it ended is unknown |

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use ostler_backend::spec_file::ShimIdentity;
use ostler_backend::stored_files::SpecHeader;
use ostler_backend::{BoxFuture, ExitRecord, ProcessEvent, RecoveryOutcome, SpawnHandle};
use ostler_model::{ExecutionId, LostReason};
use ostler_sys::{async_fd, open_files, pidfd};
use rustix::fs::inotify;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::connection::{
    ActiveAttempt, AttemptControl, EVENTS_MAX, ReceiveOutcome, ShimConnection,
};
use super::execution_files::{StoredFile, open_directory, read_exit_record, read_spec_header};
use super::response_timeout::response_of;
use super::shim_manager::ShimManager;
use super::stopped_shim::continue_if_stopped;
use super::sweep;
use crate::shim::daemon_connection::{self, CONTROL_SOCKET};
use crate::sys::proc;

/// How long a stopped shim is waited for; then it is killed with its tree.
const SHIM_STOPPED: Duration = Duration::from_secs(2);
/// Descriptors that recovery leaves free: a daemon that could not accept connections would be of no
/// use.
const SERVE_FDS_MIN: u64 = 6;
/// How long recovery waits until idle shims have released their descriptors, in milliseconds.
const RELEASE_TIMEOUT_MS: u64 = 1_000;

/// The record of this attempt or a later one, once its shim has exited and its tree ended.
pub(super) async fn recover_exit_record(
    shims: &Arc<ShimManager>,
    attempt_info: &ActiveAttempt,
    sweep: bool,
) -> Option<ExitRecord> {
    let (id, attempt) = (attempt_info.id, attempt_info.attempt);
    let dir = open_directory(shims.executions().as_fd(), id).ok()?;
    if sweep {
        let shim = match read_spec_header(dir.as_fd()) {
            StoredFile::Complete(head) => Some(head.boot),
            StoredFile::Missing | StoredFile::Damaged | StoredFile::NoDescriptor => None,
        };
        let shared = Arc::clone(shims);
        shims
            .blocking(move || sweep::kill_members(shared.executions().as_fd(), id, shim.as_ref()))
            .await;
    }
    match read_exit_record(dir.as_fd()) {
        StoredFile::Complete(record) => (record.attempt >= attempt).then_some(record),
        StoredFile::Missing | StoredFile::Damaged | StoredFile::NoDescriptor => None,
    }
}

/// Recovers an execution. Where no descriptor was left, retries once when no other recovery runs.
pub(super) async fn recover(shims: Arc<ShimManager>, id: ExecutionId) -> RecoveryOutcome {
    // The semaphore is never closed.
    let permit = shims.reconnect_permits.acquire().await;
    match recover_once(&shims, id).await {
        RecoveryOutcome::Unreachable(_) => {}
        outcome @ (RecoveryOutcome::Running { .. }
        | RecoveryOutcome::Exited(_)
        | RecoveryOutcome::Lost { .. }) => return outcome,
    }
    drop(permit);
    let permits = u32::try_from(shims.reconnects_max).unwrap_or(1);
    let _all_permits = shims.reconnect_permits.acquire_many(permits).await;
    recover_once(&shims, id).await
}

async fn recover_once(shims: &Arc<ShimManager>, id: ExecutionId) -> RecoveryOutcome {
    let dir = open_directory(shims.executions().as_fd(), id);
    if dir
        .as_ref()
        .is_err_and(|errno| open_files::is_exhausted(*errno))
    {
        return RecoveryOutcome::Unreachable(shims.no_open_files());
    }
    let header = dir
        .as_ref()
        .map_or(StoredFile::Damaged, |dir| read_spec_header(dir.as_fd()));
    let (dir, header) = match (dir, header) {
        (Ok(dir), StoredFile::Complete(head)) => (dir, head),
        (_, StoredFile::NoDescriptor) => {
            return RecoveryOutcome::Unreachable(shims.no_open_files());
        }
        (_, StoredFile::Missing) => return sweep_lost(shims, id, None, LostReason::NoRecord).await,
        (_, StoredFile::Complete(_) | StoredFile::Damaged) => {
            return sweep_lost(shims, id, None, LostReason::FilesDamaged).await;
        }
    };
    if let Some(outcome) = recorded_exit(shims, id, dir.as_fd(), &header).await {
        return outcome;
    }
    if header.boot.id != proc::boot_id() {
        return RecoveryOutcome::Lost {
            reason: LostReason::Reboot,
            attempt: header.attempt,
            swept: 0,
        };
    }
    if let Some(outcome) = reconnect(shims, id, dir.as_fd(), &header.boot).await {
        return outcome;
    }
    // It may have ended while we connected.
    if let Some(outcome) = recorded_exit(shims, id, dir.as_fd(), &header).await {
        return outcome;
    }
    kill_stuck_shim(&header.boot);
    sweep_lost(shims, id, Some(header), LostReason::NoRecord).await
}

async fn recorded_exit(
    shims: &Arc<ShimManager>,
    id: ExecutionId,
    dir: BorrowedFd<'_>,
    header: &SpecHeader,
) -> Option<RecoveryOutcome> {
    match read_exit_record(dir) {
        StoredFile::Complete(record) if record.attempt >= header.attempt => {
            Some(RecoveryOutcome::Exited(Box::new(record)))
        }
        StoredFile::Complete(_) | StoredFile::Missing => None,
        StoredFile::NoDescriptor => Some(RecoveryOutcome::Unreachable(shims.no_open_files())),
        StoredFile::Damaged => Some(sweep_lost(shims, id, None, LostReason::FilesDamaged).await),
    }
}

/// Kills what is left of a lost execution; members that were found are a better reason than
/// `reason`.
async fn sweep_lost(
    shims: &Arc<ShimManager>,
    id: ExecutionId,
    header: Option<SpecHeader>,
    reason: LostReason,
) -> RecoveryOutcome {
    let attempt = header.as_ref().map_or(0, |head| head.attempt);
    let boot = header.map(|head| head.boot);
    let in_process = boot.as_ref().is_some_and(|boot| boot.in_process);
    let shared = Arc::clone(shims);
    let swept = shims
        .blocking(move || sweep::kill_members(shared.executions().as_fd(), id, boot.as_ref()))
        .await;
    let reason = match reason {
        LostReason::NoRecord if in_process => LostReason::EngineKilled,
        LostReason::NoRecord if swept > 0 => LostReason::ShimKilled,
        LostReason::NoRecord
        | LostReason::Reboot
        | LostReason::ShimKilled
        | LostReason::ContainerGone
        | LostReason::FilesDamaged
        | LostReason::EngineKilled => reason,
    };
    RecoveryOutcome::Lost {
        reason,
        attempt,
        swept,
    }
}

/// Watches a shim while we connect to it.
struct ShimWatch {
    /// Readable when its directory changes: the control socket or the exit record appears.
    directory: AsyncFd<OwnedFd>,
    /// Readable when it ends.
    shim: AsyncFd<OwnedFd>,
}

impl ShimWatch {
    fn new(dir: BorrowedFd<'_>, pid: i32) -> Result<Self, std::io::Error> {
        let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        let path = format!("/proc/self/fd/{}", dir.as_raw_fd());
        inotify::add_watch(&watch, path, inotify::WatchFlags::MOVED_TO)?;
        let pid = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
        let shim = pidfd_open(pid, PidfdFlags::empty())?;
        Ok(Self {
            directory: async_fd::register(watch, Interest::READABLE)?,
            shim: async_fd::register(shim, Interest::READABLE)?,
        })
    }

    /// Waits for the next change; false when none can follow.
    async fn changed(&self) -> bool {
        tokio::select! {
            changed = self.directory.readable() => {
                let mut buffer = [0; 4096];
                while rustix::io::read(self.directory.get_ref(), &mut buffer).is_ok() {}
                if let Ok(mut guard) = changed {
                    guard.clear_ready();
                }
                true
            }
            _ = self.shim.readable() => false,
        }
    }
}

/// Connects to the shim, retrying as long as it runs and has not answered. None when it has exited
/// or is stuck.
async fn reconnect(
    shims: &Arc<ShimManager>,
    id: ExecutionId,
    dir: BorrowedFd<'_>,
    boot: &ShimIdentity,
) -> Option<RecoveryOutcome> {
    let pid = i32::try_from(boot.shim_pid).ok()?;
    let not_reached = || Some(RecoveryOutcome::Unreachable(shims.no_open_files()));
    if !boot.in_process {
        continue_if_stopped(boot.shim_pid);
    }
    // Most have opened the socket by now, and need not be watched.
    if let Ok(socket) = connect_control(dir) {
        if !ensure_descriptors(shims).await {
            return not_reached();
        }
        if let Some(outcome) = handshake(shims, id, pid, socket).await {
            return Some(outcome);
        }
    }
    let watch = match ShimWatch::new(dir, pid) {
        Ok(signs) => signs,
        Err(error) if open_files::is_exhausted_io(&error) => return not_reached(),
        Err(_) => return None,
    };
    let reached = reconnect_watched(shims, id, dir, boot, &watch);
    shim_response(pid, Box::pin(reached)).await.flatten()
}

/// Connects to the shim whenever its directory changes. None when it has exited.
async fn reconnect_watched(
    shims: &Arc<ShimManager>,
    id: ExecutionId,
    dir: BorrowedFd<'_>,
    boot: &ShimIdentity,
    watch: &ShimWatch,
) -> Option<RecoveryOutcome> {
    let pid = i32::try_from(boot.shim_pid).ok()?;
    let not_reached = || Some(RecoveryOutcome::Unreachable(shims.no_open_files()));
    loop {
        // The pidfd was opened by pid: the start time now tells whether it is the same process.
        match proc::try_is_same(pid, boot.shim_start) {
            Ok(true) => {}
            Ok(false) => return None,
            Err(_) => return not_reached(),
        }
        match connect_control(dir) {
            Ok(_) if !ensure_descriptors(shims).await => return not_reached(),
            Ok(socket) => return handshake(shims, id, pid, socket).await,
            Err(errno) if open_files::is_exhausted(errno) => return not_reached(),
            Err(_) if matches!(read_exit_record(dir), StoredFile::Complete(_)) => return None,
            Err(_) => {}
        }
        if !watch.changed().await {
            return None;
        }
    }
}

/// Whether the daemon can still serve with one more shim connected.
async fn ensure_descriptors(shims: &ShimManager) -> bool {
    let enough = || (open_files::available(SERVE_FDS_MIN) >= SERVE_FDS_MIN).then_some(());
    if enough().is_some() {
        return true;
    }
    shims.shut_idle();
    let limit = Duration::from_millis(RELEASE_TIMEOUT_MS);
    timeout(limit, open_files::wait_for(enough)).await.is_ok()
}

fn connect_control(dir: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    connect(
        &socket,
        &daemon_connection::control_address(dir, CONTROL_SOCKET)?,
    )?;
    if daemon_connection::is_same_user(socket.as_fd()) {
        Ok(socket)
    } else {
        Err(Errno::PERM)
    }
}

/// The response of a shim that has not sent anything yet; none where it is stuck.
async fn shim_response<T>(pid: i32, response: BoxFuture<'_, T>) -> Option<T> {
    response_of(pid, SHIM_STOPPED, || Duration::MAX, response).await
}

async fn handshake(
    shims: &Arc<ShimManager>,
    id: ExecutionId,
    shim_pid: i32,
    socket: OwnedFd,
) -> Option<RecoveryOutcome> {
    let connection = Arc::new(ShimConnection::new(socket, None).ok()?);
    let ReceiveOutcome::Hello(hello) =
        shim_response(shim_pid, Box::pin(connection.receive())).await?
    else {
        return None;
    };
    let ProcessEvent::Hello {
        id: hello_id,
        attempt,
        pid,
        started_at,
    } = *hello
    else {
        return None;
    };
    if hello_id != id {
        return None;
    }
    let (sender, reports) = mpsc::channel(EVENTS_MAX);
    connection.start_attempt(ActiveAttempt {
        id,
        attempt,
        events: Some(sender),
    });
    shims.adopt(&connection);
    let control = Arc::new(AttemptControl {
        connection,
        id,
        attempt,
        shim_pid: u32::try_from(shim_pid).ok(),
        has_input: true,
        has_terminal: true,
    });
    Some(RecoveryOutcome::Running {
        attempt,
        pid,
        started_at,
        handle: SpawnHandle {
            control,
            events: reports,
        },
    })
}

/// Kills a shim that runs but does not answer. One that was a thread of an engine has that engine's
/// pid, and is not killed.
fn kill_stuck_shim(boot: &ShimIdentity) {
    let Ok(pid) = i32::try_from(boot.shim_pid) else {
        return;
    };
    if let Ok(pidfd) = pidfd::open(boot.shim_pid)
        && !boot.in_process
        && proc::is_same(pid, boot.shim_start)
    {
        let signal = rustix::process::Signal::KILL;
        let _gone = rustix::process::pidfd_send_signal(&pidfd, signal);
    }
}
