//! What became of executions whose daemon is gone (specification 01 §3, the recovery table):
//!
//! | found | means |
//! |---|---|
//! | an exit record of the newest attempt | it ended, as recorded |
//! | `ctl.sock` answers | it runs, and reports here from now on |
//! | neither, members of its tree alive | its shim was killed; they are ended |
//! | another boot of the machine | lost with it |
//! | nothing | nobody can say |

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use ostler_model::{ExecutionId, LostReason};
use rustix::fs::{Mode, OFlags, inotify, openat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::Deserialize;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::connection::{AttemptControl, Connection, Current, REPORTS_MAX, Received};
use super::orphans;
use super::supply::Supply;
use crate::open_files;
use crate::place::{Birth, EXIT_RECORD_VERSION, ExitRecord, Found};
use crate::proto::FromShim;
use crate::shim::{link, record};
use crate::spec_file::{BootStamp, SPEC_FILE, SPEC_FILE_VERSION};
use crate::sys::{proc, reactor};

/// How long a living shim may take to open its control socket, or to say its first words, in
/// milliseconds; one that takes longer is stuck, and is ended with its tree.
const ANSWER_MS: u64 = 2_000;
/// Descriptors that recovery leaves: a daemon that could not listen and answer would be of no
/// use.
const LEFT_TO_SERVE: u64 = 6;
/// How long recovery waits until idle shims have given theirs up, in milliseconds.
const GIVE_UP_MS: u64 = 1_000;
/// Bytes of the largest exit record.
const EXIT_RECORD_BYTES: u64 = 1024 * 1024;
/// Bytes of the largest spec: no more than a plan holds, with room for its envelope.
const SPEC_BYTES: u64 = crate::proto::PLAN_MAX_BYTES + 64 * 1024;

/// What recovery needs of `spec.json`.
#[derive(Debug, Deserialize)]
struct Head {
    version: u8,
    attempt: u32,
    boot: BootStamp,
}

/// A file that recovery reads.
enum Kept<T> {
    /// As it was written.
    Whole(T),
    /// It was never written.
    Absent,
    /// It is there and makes no sense.
    Damaged,
    /// No descriptor was left to read it by.
    NotReached,
}

/// The record of this attempt or a later one, once its shim is gone and its tree ended.
pub(super) async fn after_loss(
    supply: &Arc<Supply>,
    current: &Current,
    sweep: bool,
) -> Option<ExitRecord> {
    let (id, attempt) = (current.id, current.attempt);
    let dir = directory(supply, id).ok()?;
    if sweep {
        let shim = match read_head(dir.as_fd()) {
            Kept::Whole(head) => Some(head.boot),
            Kept::Absent | Kept::Damaged | Kept::NotReached => None,
        };
        let swept = Arc::clone(supply);
        supply
            .blocking(move || orphans::end(swept.executions().as_fd(), id, shim.as_ref()))
            .await;
    }
    match read_exit(dir.as_fd()) {
        Kept::Whole(record) => (record.attempt >= attempt).then_some(record),
        Kept::Absent | Kept::Damaged | Kept::NotReached => None,
    }
}

/// The newest attempt of an execution and the shim that carries it out, as its `spec.json`
/// says; none where that cannot be read.
pub(super) fn shim_of(supply: &Supply, id: ExecutionId) -> Option<(u32, BootStamp)> {
    let dir = directory(supply, id).ok()?;
    match read_head(dir.as_fd()) {
        Kept::Whole(head) => Some((head.attempt, head.boot)),
        Kept::Absent | Kept::Damaged | Kept::NotReached => None,
    }
}

/// The attempt whose exit record is there.
pub(super) fn ended_attempt(supply: &Supply, id: ExecutionId) -> Option<u32> {
    let dir = directory(supply, id).ok()?;
    match read_exit(dir.as_fd()) {
        Kept::Whole(record) => Some(record.attempt),
        Kept::Absent | Kept::Damaged | Kept::NotReached => None,
    }
}

/// Finds out. Where descriptors ran out, once more when nobody else is being called.
pub(super) async fn find(supply: Arc<Supply>, id: ExecutionId) -> Found {
    // The semaphore is never closed.
    let turn = supply.calls.acquire().await;
    match find_now(&supply, id).await {
        Found::NotReached(_) => {}
        found @ (Found::Running { .. } | Found::Exited(_) | Found::Lost { .. }) => return found,
    }
    drop(turn);
    let all = u32::try_from(supply.calls_at_once).unwrap_or(1);
    let _alone = supply.calls.acquire_many(all).await;
    find_now(&supply, id).await
}

async fn find_now(supply: &Arc<Supply>, id: ExecutionId) -> Found {
    let dir = directory(supply, id);
    if dir
        .as_ref()
        .is_err_and(|errno| open_files::is_exhausted(*errno))
    {
        return Found::NotReached(supply.no_open_files());
    }
    let head = dir
        .as_ref()
        .map_or(Kept::Damaged, |dir| read_head(dir.as_fd()));
    let (dir, head) = match (dir, head) {
        (Ok(dir), Kept::Whole(head)) => (dir, head),
        (_, Kept::NotReached) => return Found::NotReached(supply.no_open_files()),
        (_, Kept::Absent) => return lost(supply, id, None, LostReason::NoRecord).await,
        (_, Kept::Whole(_) | Kept::Damaged) => {
            return lost(supply, id, None, LostReason::FilesDamaged).await;
        }
    };
    if let Some(found) = ended(supply, id, dir.as_fd(), &head).await {
        return found;
    }
    if head.boot.id != proc::boot_id() {
        return Found::Lost {
            reason: LostReason::Reboot,
            attempt: head.attempt,
            swept: 0,
        };
    }
    if let Some(found) = call(supply, id, dir.as_fd(), &head.boot).await {
        return found;
    }
    // It may have ended while it was being called.
    if let Some(found) = ended(supply, id, dir.as_fd(), &head).await {
        return found;
    }
    end_shim(&head.boot);
    lost(supply, id, Some(head), LostReason::NoRecord).await
}

/// The directory of an execution; what is known of one must not depend on how many others run.
fn directory(supply: &Supply, id: ExecutionId) -> Result<OwnedFd, Errno> {
    let open = || record::open_directory(supply.executions().as_fd(), id);
    open_files::with_held(open, |errno| open_files::is_exhausted(*errno))
}

async fn ended(
    supply: &Arc<Supply>,
    id: ExecutionId,
    dir: BorrowedFd<'_>,
    head: &Head,
) -> Option<Found> {
    match read_exit(dir) {
        Kept::Whole(record) if record.attempt >= head.attempt => Some(Found::Exited(record)),
        Kept::Whole(_) | Kept::Absent => None,
        Kept::NotReached => Some(Found::NotReached(supply.no_open_files())),
        Kept::Damaged => Some(lost(supply, id, None, LostReason::FilesDamaged).await),
    }
}

/// Ends what is left of it; members that were found say more than `reason`.
async fn lost(
    supply: &Arc<Supply>,
    id: ExecutionId,
    head: Option<Head>,
    reason: LostReason,
) -> Found {
    let attempt = head.as_ref().map_or(0, |head| head.attempt);
    let boot = head.map(|head| head.boot);
    let in_process = boot.as_ref().is_some_and(|boot| boot.in_process);
    let place = Arc::clone(supply);
    let swept = supply
        .blocking(move || orphans::end(place.executions().as_fd(), id, boot.as_ref()))
        .await;
    let reason = match reason {
        LostReason::NoRecord if in_process => LostReason::EngineKilled,
        LostReason::NoRecord if swept > 0 => LostReason::ShimKilled,
        LostReason::NoRecord
        | LostReason::Reboot
        | LostReason::ShimKilled
        | LostReason::FilesDamaged
        | LostReason::EngineKilled => reason,
    };
    Found::Lost {
        reason,
        attempt,
        swept,
    }
}

fn read_head(dir: BorrowedFd<'_>) -> Kept<Head> {
    let kept = read_json::<Head>(dir, SPEC_FILE, SPEC_BYTES);
    match kept {
        Kept::Whole(head) if head.version > SPEC_FILE_VERSION => Kept::Damaged,
        Kept::Whole(_) | Kept::Absent | Kept::Damaged | Kept::NotReached => kept,
    }
}

fn read_exit(dir: BorrowedFd<'_>) -> Kept<ExitRecord> {
    let kept = read_json::<ExitRecord>(dir, record::EXIT_FILE, EXIT_RECORD_BYTES);
    match kept {
        Kept::Whole(record) if record.version > EXIT_RECORD_VERSION => Kept::Damaged,
        Kept::Whole(_) | Kept::Absent | Kept::Damaged | Kept::NotReached => kept,
    }
}

fn read_json<T: serde::de::DeserializeOwned>(
    dir: BorrowedFd<'_>,
    name: &str,
    limit: u64,
) -> Kept<T> {
    let open = || openat(dir, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let file = match open_files::with_held(open, |errno| open_files::is_exhausted(*errno)) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Kept::Absent,
        Err(errno) if open_files::is_exhausted(errno) => return Kept::NotReached,
        Err(_) => return Kept::Damaged,
    };
    let mut bytes = Vec::new();
    if file.take(limit).read_to_end(&mut bytes).is_err() {
        return Kept::Damaged;
    }
    serde_json::from_slice(&bytes).map_or(Kept::Damaged, Kept::Whole)
}

/// What a shim may do while it is being called.
struct Signs {
    /// Its directory changes: the control socket or the exit record appears.
    directory: AsyncFd<OwnedFd>,
    /// It ends.
    shim: AsyncFd<OwnedFd>,
}

impl Signs {
    fn of(dir: BorrowedFd<'_>, pid: i32) -> Result<Self, std::io::Error> {
        let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        let path = format!("/proc/self/fd/{}", dir.as_raw_fd());
        inotify::add_watch(&watch, path, inotify::WatchFlags::MOVED_TO)?;
        let pid = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
        let shim = pidfd_open(pid, PidfdFlags::empty())?;
        Ok(Self {
            directory: reactor::register(watch, Interest::READABLE)?,
            shim: reactor::register(shim, Interest::READABLE)?,
        })
    }

    /// Waits for the next sign; false when none can follow.
    async fn next(&self, deadline: Instant) -> bool {
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
            () = sleep_until(deadline) => false,
        }
    }
}

/// Calls the shim, as long as it lives and has not answered. None when it does not.
async fn call(
    supply: &Arc<Supply>,
    id: ExecutionId,
    dir: BorrowedFd<'_>,
    boot: &BootStamp,
) -> Option<Found> {
    let pid = i32::try_from(boot.shim_pid).ok()?;
    let deadline = Instant::now() + Duration::from_millis(ANSWER_MS);
    let not_reached = || Some(Found::NotReached(supply.no_open_files()));
    // Most have opened it by now, and need not be watched.
    if let Ok(socket) = knock(dir) {
        if !leaves_room(supply).await {
            return not_reached();
        }
        if let Some(found) = greet(supply, id, socket).await {
            return Some(found);
        }
    }
    let signs = match Signs::of(dir, pid) {
        Ok(signs) => signs,
        Err(error) if open_files::is_none_left(&error) => return not_reached(),
        Err(_) => return None,
    };
    loop {
        // The descriptor was opened by pid: whose it is shows the start time, now.
        match proc::is_same_now(pid, boot.shim_start) {
            Ok(true) => {}
            Ok(false) => return None,
            Err(_) => return not_reached(),
        }
        match knock(dir) {
            Ok(_) if !leaves_room(supply).await => return not_reached(),
            Ok(socket) => return greet(supply, id, socket).await,
            Err(errno) if open_files::is_exhausted(errno) => return not_reached(),
            Err(_) if matches!(read_exit(dir), Kept::Whole(_)) => return None,
            Err(_) => {}
        }
        if !signs.next(deadline).await {
            return None;
        }
    }
}

/// Whether the daemon can still serve with one more shim connected.
async fn leaves_room(supply: &Supply) -> bool {
    let enough = || (open_files::available(LEFT_TO_SERVE) >= LEFT_TO_SERVE).then_some(());
    if enough().is_some() {
        return true;
    }
    supply.give_up_idle();
    let limit = Duration::from_millis(GIVE_UP_MS);
    timeout(limit, open_files::wait_for(enough)).await.is_ok()
}

fn knock(dir: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    connect(
        &socket,
        &link::control_address(dir, record::CONTROL_SOCKET)?,
    )?;
    if link::is_same_user(socket.as_fd()) {
        Ok(socket)
    } else {
        Err(Errno::PERM)
    }
}

async fn greet(supply: &Arc<Supply>, id: ExecutionId, socket: OwnedFd) -> Option<Found> {
    let connection = Arc::new(Connection::new(socket, None).ok()?);
    let limit = Duration::from_millis(ANSWER_MS);
    let Ok(Received::Hello(hello)) = timeout(limit, connection.receive()).await else {
        return None;
    };
    let FromShim::Hello {
        id: theirs,
        attempt,
        pid,
        started_at,
    } = *hello
    else {
        return None;
    };
    if theirs != id {
        return None;
    }
    let (sender, reports) = mpsc::channel(REPORTS_MAX);
    connection.begin(Current {
        id,
        attempt,
        reports: Some(sender),
    });
    supply.adopt(&connection);
    let control = Arc::new(AttemptControl {
        connection,
        id,
        attempt,
        takes_input: true,
        has_terminal: true,
    });
    Some(Found::Running {
        attempt,
        pid,
        started_at,
        birth: Birth { control, reports },
    })
}

/// A shim that lives but does not answer is stuck. One that was a thread of an engine has
/// that engine's pid, and is left alone.
fn end_shim(boot: &BootStamp) {
    let Ok(pid) = i32::try_from(boot.shim_pid) else {
        return;
    };
    let pidfd = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    if let Some(pidfd) = pidfd
        && !boot.in_process
        && proc::is_same(pid, boot.shim_start)
    {
        let signal = rustix::process::Signal::KILL;
        let _gone = rustix::process::pidfd_send_signal(&pidfd, signal);
    }
}
