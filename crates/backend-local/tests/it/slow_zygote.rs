//! A zygote that a busy machine lets run only now and then: it is waited for, not replaced.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ostler_backend::Backend;
use ostler_backend_local::{ZYGOTE_ARGUMENT, ZygoteConfig};
use ostler_sys::seqpacket::{self, ReceiveMode};

use crate::support::{BackendFixture, FinishedRun, TestCase, sh, wait_exit};

/// The name under which this program runs as the slow zygote.
const SLOW_ZYGOTE: &str = "slow-zygote";
/// How long it computes before it passes a request on: longer than a stopped zygote is waited for.
const DELAY: Duration = Duration::from_millis(400);

pub(crate) const CASES: &[TestCase] = &[(
    "a_busy_zygote_is_waited_for_and_not_replaced",
    busy_zygote_kept,
)];

/// Whether this process was started under that name.
pub(crate) fn is_requested() -> bool {
    std::env::args()
        .next()
        .is_some_and(|program| program.ends_with(SLOW_ZYGOTE))
}

/// A zygote between the daemon and the real one, which delays each request.
pub(crate) fn run() -> ExitCode {
    match relay() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(u8::try_from(error.raw_os_error().unwrap_or(1)).unwrap_or(1)),
    }
}

fn relay() -> io::Result<()> {
    let daemon = io::stdin().as_fd().try_clone_to_owned()?;
    let executions = io::stdout().as_fd().try_clone_to_owned()?;
    let (zygote, theirs) = seqpacket::pair()?;
    let mut child = Command::new("/proc/self/exe")
        .arg(ZYGOTE_ARGUMENT)
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::from(executions))
        .spawn()?;
    // The daemon counts on its end alone to be non-blocking.
    rustix::io::ioctl_fionbio(&zygote, false)?;
    let (events_from, events_to) = (zygote.try_clone()?, daemon.try_clone()?);
    let events = thread::spawn(move || forward(&events_from, &events_to, Duration::ZERO));
    let requests = forward(&daemon, &zygote, DELAY);
    rustix::net::shutdown(&zygote, rustix::net::Shutdown::Both)?;
    child.wait()?;
    events.join().unwrap_or(Ok(()))?;
    requests
}

/// Passes packets on until their sender has ended.
fn forward(from: &OwnedFd, to: &OwnedFd, delay: Duration) -> io::Result<()> {
    let mut buffer = vec![0; 8 * 1024];
    loop {
        let packet = seqpacket::receive(from, &mut buffer, ReceiveMode::Wait)?;
        if packet.len == 0 {
            return Ok(());
        }
        let received = Instant::now();
        while received.elapsed() < delay {
            std::hint::spin_loop();
        }
        let descriptor = packet.descriptor.as_ref().map(AsFd::as_fd);
        send(to.as_fd(), &buffer[..packet.len], descriptor)?;
    }
}

fn send(to: BorrowedFd<'_>, bytes: &[u8], descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
    Ok(seqpacket::send(to, bytes, descriptor)?)
}

fn busy_zygote_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    let program = dir.path().join(SLOW_ZYGOTE);
    symlink(
        std::env::current_exe().expect("tests have a path"),
        &program,
    )
    .expect("a link");
    let fixture = BackendFixture::with(ZygoteConfig::Executable(program));
    // More than are kept ready, so that some wait for the zygote.
    fixture.runtime.block_on(async {
        let mut handles = Vec::new();
        for _ in 0..8 {
            let plan = sh("exit 3");
            handles.push((
                plan.id,
                fixture.backend.spawn(plan).await.expect("it spawns"),
            ));
        }
        for (id, handle) in handles {
            let record = wait_exit(handle).await;
            let run = FinishedRun {
                dir: fixture.dir(id),
                record,
            };
            assert_eq!(run.code(), Some(3));
        }
    });
}
