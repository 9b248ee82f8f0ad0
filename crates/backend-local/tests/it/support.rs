//! Common fixtures: a state directory, a backend in it, plans, and their ends.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ostler_backend::{
    Backend, ExitRecord, LaunchIo, LaunchPlan, LeaderOutcome, ProcessEvent, SpawnHandle, Timeouts,
};
use ostler_backend_local::{LocalBackend, ZygoteConfig};
use ostler_journal::{ByteQuery, Journal};
use ostler_model::termination::WaitStatus;
use ostler_model::{ByteString, ExecutionId, Limits, OrphanPolicy, StreamName};
use tempfile::TempDir;

use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::container::{self, TestBackend, TestContainer};

/// A timeout longer than anything here may take; reached only by a hang.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A test case by name.
pub(crate) type TestCase = (&'static str, fn());

/// A runtime, a state directory and a backend in it.
pub(crate) struct BackendFixture {
    pub(crate) runtime: Runtime,
    pub(crate) state: TempDir,
    pub(crate) backend: TestBackend,
}

pub(crate) fn this_executable() -> ZygoteConfig {
    ZygoteConfig::Executable(std::env::current_exe().expect("tests have a path"))
}

impl BackendFixture {
    pub(crate) fn new() -> Self {
        Self::with(this_executable())
    }

    pub(crate) fn with(zygote: ZygoteConfig) -> Self {
        let state = tempfile::tempdir().expect("a directory");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let opened = runtime.block_on(LocalBackend::open(state.path(), zygote));
        Self {
            runtime,
            backend: TestBackend {
                local: opened.expect("the backend opens"),
                container: container::is_entered().then(|| TestContainer::start(state.path())),
            },
            state,
        }
    }

    pub(crate) fn dir(&self, id: ExecutionId) -> PathBuf {
        self.state.path().join("executions").join(id.to_string())
    }

    /// Spawns and waits for the end.
    pub(crate) fn run(&self, plan: LaunchPlan) -> FinishedRun {
        let id = plan.id;
        let record = self.runtime.block_on(async {
            let handle = self.backend.spawn(plan).await.expect("it spawns");
            wait_exit(handle).await
        });
        FinishedRun {
            dir: self.dir(id),
            record,
        }
    }

    pub(crate) fn sh(&self, script: &str) -> FinishedRun {
        self.run(sh(script))
    }
}

impl Drop for BackendFixture {
    fn drop(&mut self) {
        let closed = async { timeout(LONG, self.backend.close()).await };
        assert!(self.runtime.block_on(closed).is_ok(), "the backend closes");
    }
}

/// An execution that is over.
pub(crate) struct FinishedRun {
    pub(crate) dir: PathBuf,
    pub(crate) record: ExitRecord,
}

impl FinishedRun {
    pub(crate) fn code(&self) -> Option<i32> {
        match &self.record.outcome {
            LeaderOutcome::Ended {
                status: WaitStatus::Code(code),
                ..
            } => Some(*code),
            LeaderOutcome::Ended { .. }
            | LeaderOutcome::SpawnFailed { .. }
            | LeaderOutcome::ContainerLost => None,
        }
    }

    pub(crate) fn signal(&self) -> Option<i32> {
        match &self.record.outcome {
            LeaderOutcome::Ended {
                status: WaitStatus::Signal(signal),
                ..
            } => Some(signal.number()),
            LeaderOutcome::Ended { .. }
            | LeaderOutcome::SpawnFailed { .. }
            | LeaderOutcome::ContainerLost => None,
        }
    }

    pub(crate) fn out(&self) -> String {
        String::from_utf8_lossy(&output(&self.dir, StreamName::Stdout)).into_owned()
    }

    pub(crate) fn err(&self) -> String {
        String::from_utf8_lossy(&output(&self.dir, StreamName::Stderr)).into_owned()
    }
}

/// All bytes of one stream.
pub(crate) fn output(dir: &Path, stream: StreamName) -> Vec<u8> {
    let journal = Journal::open(dir).expect("a journal");
    let mut query = ByteQuery::starting_at(ostler_model::Cursor::START);
    let mut bytes = Vec::new();
    loop {
        let page = journal.read(&query).expect("readable");
        assert!(page.gap.is_none(), "{:?} at {:?}", page.gap, query.from);
        if page.chunks.is_empty() {
            return bytes;
        }
        for chunk in page.chunks {
            if chunk.stream == stream {
                bytes.extend_from_slice(&chunk.bytes);
            }
        }
        query.from = page.next;
    }
}

/// A finite command without input, in `/`, with a plain environment.
pub(crate) fn argv(words: &[&str]) -> LaunchPlan {
    LaunchPlan {
        sandbox: None,
        id: ExecutionId::mint(),
        attempt: 1,
        spec: b"{\"test\":true}".to_vec(),
        program: ByteString::from(words[0]),
        argv: words.iter().map(|word| ByteString::from(*word)).collect(),
        env: vec![
            (
                ByteString::from("PATH"),
                ByteString::from("/usr/local/bin:/usr/bin:/bin"),
            ),
            (ByteString::from("LC_ALL"), ByteString::from("C")),
        ],
        cwd: ByteString::from("/"),
        io: LaunchIo::Empty,
        timeouts: Timeouts {
            wall: None,
            idle: None,
            grace: Duration::from_secs(5),
        },
        orphan_policy: OrphanPolicy::Kill,
        limits: Limits::default(),
        redact: Vec::new(),
        pinned_files: Vec::new(),
        report_start: false,
        lossless_reader: false,
        record_input: false,
        min_output_offset: 0,
        disk_scope: None,
        container: None,
        attachment: None,
        program_fallback: None,
        secret_files: Vec::new(),
    }
}

pub(crate) fn sh(script: &str) -> LaunchPlan {
    argv(&["/bin/sh", "-c", script])
}

/// Waits for the end.
pub(crate) async fn wait_exit(mut handle: SpawnHandle) -> ExitRecord {
    let ended = async {
        while let Some(report) = handle.events.recv().await {
            match report.event {
                ProcessEvent::Exited { record, .. } => return *record,
                ProcessEvent::Lost => panic!("the shim is gone"),
                _ => {}
            }
        }
        panic!("reports closed without an end");
    };
    timeout(LONG, ended).await.expect("it ends")
}

/// Waits for the next event that `select` picks.
pub(crate) async fn next_event<T>(
    handle: &mut SpawnHandle,
    select: impl Fn(&ProcessEvent) -> Option<T>,
) -> T {
    let found = async {
        loop {
            let report = handle.events.recv().await.expect("a report");
            if let Some(found) = select(&report.event) {
                return found;
            }
        }
    };
    timeout(LONG, found).await.expect("it is reported")
}

/// Waits until an event reports the start; returns its pid.
pub(crate) async fn wait_started(handle: &mut SpawnHandle) -> u32 {
    next_event(handle, |report| match report {
        ProcessEvent::Started { pid, .. } => Some(*pid),
        _ => None,
    })
    .await
}

/// Watches until the journal of `dir` has `text` on standard output.
pub(crate) async fn wait_output(handle: &mut SpawnHandle, dir: &Path, text: &str) {
    handle
        .control
        .send(ostler_backend::ControlCommand::Watch(true))
        .await
        .expect("it takes orders");
    loop {
        next_event(handle, |report| {
            matches!(report, ProcessEvent::Output { .. }).then_some(())
        })
        .await;
        let so_far = output(dir, StreamName::Stdout);
        if String::from_utf8_lossy(&so_far).contains(text) {
            return;
        }
    }
}

/// Live processes whose environment has the execution's marker; zombies do not count.
pub(crate) fn members(id: ExecutionId) -> Vec<i32> {
    let mark = format!("OSTLER_EXECUTION={id}");
    let pids = std::fs::read_dir("/proc").expect("proc").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ
            .split(|byte| *byte == 0)
            .any(|word| word == mark.as_bytes())
    })
    .collect()
}

/// The result of some work and how long it took.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begin = Instant::now();
    let done = work();
    (done, begin.elapsed())
}

/// Whether a process exists and is not a zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .and_then(|rest| rest.trim().chars().next())
        .is_some_and(|c| c != 'Z')
}

pub(crate) fn kill(pid: i32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid).expect("a pid");
    rustix::process::kill_process(pid, signal).expect("it is there");
}

/// Blocks until a condition holds that nothing announces; fails after [`LONG`].
pub(crate) fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !condition() {
        assert!(Instant::now() < deadline, "it does not become so");
        std::thread::yield_now();
    }
}
