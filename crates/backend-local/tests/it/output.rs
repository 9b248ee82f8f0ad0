//! Output on its way to disk.

use ostler_backend::{Backend, ControlCommand, LeaderOutcome, ProcessEvent, STEP_STORAGE};
use ostler_journal::Journal;
use ostler_model::{ByteString, StreamName};

use crate::support::{
    BackendFixture, FinishedRun, TestCase, argv, output, sh, wait_exit, wait_output,
};

pub(crate) const CASES: &[TestCase] = &[
    ("a_hundred_megabytes_are_complete", hundred_megabytes),
    ("secrets_do_not_reach_the_disk", secrets),
    ("a_secret_printed_in_pieces", secret_in_pieces),
    ("what_is_held_back_is_soon_let_go", held_back),
    ("a_secret_printed_slowly_is_no_secret_told", slow_secret),
    ("marks_come_only_while_watched", marks),
    ("a_full_disk_harms_no_command", full_disk),
    ("a_full_disk_and_no_daemon", full_disk_alone),
    ("a_state_directory_that_cannot_be_written", unwritable),
];

fn hundred_megabytes() {
    let fixture = BackendFixture::new();
    let done = fixture.run(argv(&["/usr/bin/seq", "1", "12500000"]));
    assert_eq!(done.code(), Some(0));
    let expected: u64 = (1..=8)
        .map(|n: u32| (u64::from(n) + 1) * 9 * 10_u64.pow(n - 1))
        .sum::<u64>()
        - (99_999_999 - 12_500_000) * 9;
    assert_eq!(done.record.output_end, expected);
    let stats = Journal::open(&done.dir)
        .expect("a journal")
        .stats()
        .expect("counted");
    let bytes = output(&done.dir, StreamName::Stdout);
    assert_eq!(bytes.len() as u64, expected);
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let in_order = (1..=12_500_000_u32).all(|number| {
        lines
            .next()
            .is_some_and(|line| line == number.to_string().as_bytes())
    });
    assert!(in_order, "{stats:?}");
}

fn secrets() {
    let fixture = BackendFixture::new();
    let mut plan = sh("echo a hunter2 b; echo hunter2 >&2; printf hunt; printf er2; printf hunter");
    plan.redact = vec![ByteString::from("hunter2"), ByteString::from("")];
    let done = fixture.run(plan);
    assert_eq!(done.out(), "a [redacted] b\n[redacted]hunter");
    assert_eq!(done.err(), "[redacted]\n");
    for entry in std::fs::read_dir(&done.dir).expect("a directory").flatten() {
        let bytes = std::fs::read(entry.path()).expect("read");
        let leaked = bytes.windows(7).any(|window| window == b"hunter2");
        assert!(!leaked, "{:?}", entry.path());
    }
}

fn secret_in_pieces() {
    let fixture = BackendFixture::new();
    let secret = "0123456789".repeat(30_000);
    let mut plan = argv(&["/bin/cat"]);
    plan.io = ostler_backend::LaunchIo::Bytes(format!("<{secret}>").into_bytes());
    plan.redact = vec![ByteString::from(secret)];
    assert_eq!(fixture.run(plan).out(), "<[redacted]>");
}

fn held_back() {
    let fixture = BackendFixture::new();
    let mut plan = sh("printf hun; sleep 300");
    plan.redact = vec![ByteString::from("hunter2")];
    let dir = fixture.dir(plan.id);
    fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        wait_output(&mut handle, &dir, "hun").await;
        let grace = std::time::Duration::ZERO;
        handle
            .control
            .send(ControlCommand::Stop { grace })
            .await
            .expect("sent");
        wait_exit(handle).await;
    });
}

fn slow_secret() {
    let fixture = BackendFixture::new();
    let mut plan = sh("printf hunter; sleep 0.2; printf '2 end'; printf ' hunt'");
    plan.redact = vec![ByteString::from("hunter2")];
    let done = fixture.run(plan);
    assert_eq!(done.out(), "[redacted] end hunt");
}

fn marks() {
    let fixture = BackendFixture::new();
    let plan = sh("read a; i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo $i; sleep 0.001; done");
    let plan = ostler_backend::LaunchPlan {
        io: ostler_backend::LaunchIo::Piped,
        ..plan
    };
    fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        let begin = std::time::Instant::now();
        for command in [
            ControlCommand::Watch(true),
            ControlCommand::Input(b"go\n".to_vec()),
        ] {
            handle.control.send(command).await.expect("sent");
        }
        let mut ends = Vec::new();
        let record = loop {
            match handle.events.recv().await.expect("a report").event {
                ProcessEvent::Output { end } => ends.push(end),
                ProcessEvent::Exited { record, .. } => break *record,
                _ => {}
            }
        };
        assert!(ends.is_sorted(), "{ends:?}");
        // One notice every 5 ms, the first two, and four at once after the input.
        let most = begin.elapsed().as_millis() / 5 + 6;
        assert!(ends.len() as u128 <= most, "{} in {most}", ends.len());
        assert!(record.output_end > 0);
    });
}

/// A file system of one megabyte, mounted while it lives.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().expect("a directory");
        let mut mount = std::process::Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", "size=1m,mode=755", "tmpfs"])
            .arg(dir.path());
        let mounted = mount.stderr(std::process::Stdio::null()).status();
        mounted
            .is_ok_and(|status| status.success())
            .then(|| Self(dir))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = std::process::Command::new("umount")
            .arg("-l")
            .arg(self.0.path())
            .status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}

fn full_disk() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let fixture = BackendFixture::new();
    fixture.runtime.block_on(async {
        let opened = ostler_backend_local::LocalBackend::open(
            disk.0.path(),
            crate::support::this_executable(),
        );
        let backend = opened.await.expect("it opens");
        let plan = sh("seq 1 300000; echo done >&2; exit 6");
        let dir = disk.0.path().join("executions").join(plan.id.to_string());
        let mut handle = backend.spawn(plan).await.expect("it spawns");
        let mut memory = None;
        let record = loop {
            let received = handle.events.recv().await.expect("an event");
            match received.event {
                ProcessEvent::JournalFailed { base, .. } => memory = base.zip(received.memory),
                ProcessEvent::Exited { record, .. } => break *record,
                _ => {}
            }
        };
        assert!(record.journal_error.is_some());
        assert!(record.lost_bytes > 0);
        let done = FinishedRun { dir, record };
        assert_eq!(done.code(), Some(6));
        let (base, file) = memory.expect("a memory file");
        assert!(base > 0);
        let newest = Journal::open(&done.dir)
            .expect("a journal")
            .with_memory(file);
        drop(newest);
        backend.close().await;
    });
}

fn full_disk_alone() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let fixture = BackendFixture::new();
    let daemon =
        crate::test_daemon::TestDaemon::start(disk.0.path(), &["sleep 0.3; seq 1 300000; exit 6"]);
    let (id, pid) = daemon.runs[0];
    daemon.kill();
    crate::support::wait_until(|| !crate::support::is_alive(pid));
    fixture.runtime.block_on(async {
        let opened = ostler_backend_local::LocalBackend::open(
            disk.0.path(),
            crate::support::this_executable(),
        );
        let backend = opened.await.expect("it opens");
        let record = match backend.recover(id).await {
            ostler_backend::RecoveryOutcome::Running { handle, .. } => wait_exit(handle).await,
            ostler_backend::RecoveryOutcome::Exited(record) => *record,
            found => panic!("its end is known: {found:?}"),
        };
        assert!(record.lost_bytes > 0);
        let dir = disk.0.path().join("executions").join(id.to_string());
        assert_eq!(FinishedRun { dir, record }.code(), Some(6));
        backend.close().await;
    });
}

fn unwritable() {
    let fixture = BackendFixture::new();
    let executions = fixture.state.path().join("executions");
    // An idle shim may be preparing a directory in it just now.
    crate::support::wait_until(|| {
        drop(std::fs::remove_dir_all(&executions));
        !executions.exists()
    });
    let record = fixture.run(sh("touch /tmp/never")).record;
    let LeaderOutcome::SpawnFailed { step, errno, .. } = record.outcome else {
        panic!("nothing was to be started");
    };
    assert_eq!((step.as_str(), errno), (STEP_STORAGE, Some(libc::ENOENT)));
}
