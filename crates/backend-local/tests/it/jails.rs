//! Level high: spawns into jails, and everything that happens to trees happening there too,
//! under shims that are processes and shims that are threads.

mod ends;
mod evidence;
mod limits;
mod lost;

use std::path::Path;
use std::time::Duration;

use ostler_backend::{
    Backend, ControlCommand, KillReason, LaunchIo, LaunchPlan, LeaderOutcome, ProcessEvent,
    SpawnHandle,
};
use ostler_backend_local::ZygoteConfig;
use ostler_model::sandbox_spec::NetworkAccess;
use ostler_model::{
    ByteString, Capability, ExecutionId, LimitKind, OrphanPolicy, SandboxSpec, SnapshotRequest,
    StreamName, TermSize, TimeoutKind,
};

use crate::support::{
    BackendFixture, FinishedRun, LONG, TestCase, argv, kill, members, next_event, output,
    this_executable, timed, wait_exit, wait_output, wait_started,
};

pub(crate) const CASES: &[TestCase] = &[
    ("pipes_and_statuses", pipes),
    ("standard_streams_open_by_name", by_name),
    ("a_terminal_inside", terminal),
    ("births_that_fail_say_why", failures),
    ("leftovers_end_with_it", ends::leftovers),
    ("leftovers_may_stay", ends::kept),
    ("the_ladder_ends_what_ignores_it", ends::ladder),
    ("clocks_run_out_inside", ends::timeouts),
    ("a_killed_shim_leaves_nothing", killed_shim),
    ("a_killed_warden_ends_it", killed_warden),
    ("limits_count_the_command_alone", limits::counted),
    ("a_fork_bomb_inside_ends_fast", limits::fork_bomb),
    ("memory_inside_is_limited", limits::memory),
    ("hogs_harm_nobody", limits::hogs),
    ("it_stands_still_inside", frozen),
    ("members_and_listeners_inside_are_seen", evidence::observed),
    ("what_a_tree_inside_uses_is_read", evidence::used),
    ("a_prompt_inside_is_seen", evidence::prompted),
    ("growth_of_the_workspace_is_seen", evidence::grown),
    ("orphans_are_accounted_for", evidence::usage),
    ("shims_go_from_cell_to_cell", recycled),
    ("a_daemon_may_go_and_come", adopted),
    ("a_gate_lives_as_long_as_its_command", gate),
    (
        "a_killed_gate_is_reported_once_to_each_daemon",
        lost::reported,
    ),
    (
        "a_killed_gate_is_on_record_without_a_daemon",
        lost::recorded,
    ),
];

/// A fixture with a workspace; none where jails are not available.
pub(crate) struct JailFixture {
    pub(crate) fixture: BackendFixture,
    workspace: tempfile::TempDir,
}

impl JailFixture {
    pub(crate) fn with(zygote: ZygoteConfig) -> Option<Self> {
        let fixture = BackendFixture::with(zygote);
        let abilities = fixture.backend.capabilities();
        let needed = [
            Capability::Namespaces,
            Capability::OwnRoot,
            Capability::Seccomp,
        ];
        if !needed.iter().all(|it| abilities.has(*it)) {
            return None;
        }
        Some(Self {
            fixture,
            workspace: tempfile::tempdir().expect("a directory"),
        })
    }

    pub(crate) fn plan(&self, words: &[&str]) -> LaunchPlan {
        let mut plan = argv(words);
        let workspace = self.workspace.path().canonicalize().expect("there");
        plan.cwd = ByteString::from(workspace.as_path());
        let abilities = self.fixture.backend.capabilities();
        let optional = [Capability::Landlock, Capability::MappedWorkspace];
        plan.sandbox = Some(SandboxSpec {
            workspace: Some(plan.cwd.clone()),
            network: NetworkAccess::None,
            without: optional
                .iter()
                .copied()
                .filter(|it| !abilities.has(*it))
                .collect(),
            ..SandboxSpec::default()
        });
        plan
    }

    fn sh(&self, script: &str) -> LaunchPlan {
        self.plan(&["/bin/sh", "-c", script])
    }

    fn run(&self, plan: LaunchPlan) -> FinishedRun {
        self.fixture.run(plan)
    }

    fn shell(&self, script: &str) -> FinishedRun {
        self.run(self.sh(script))
    }
}

/// Runs a case once with shims that are processes, once with threads.
fn each(case: impl Fn(&JailFixture)) {
    for zygote in [this_executable(), ZygoteConfig::InProcess] {
        if let Some(jailed) = JailFixture::with(zygote) {
            case(&jailed);
        }
    }
}

fn assert_spawned(done: &FinishedRun) {
    if let LeaderOutcome::SpawnFailed { message, step, .. } = &done.record.outcome {
        panic!("not spawned at {step}: {message}");
    }
}

async fn stop(handle: &SpawnHandle) {
    let grace = Duration::ZERO;
    let sent = handle.control.send(ControlCommand::Stop { grace }).await;
    sent.expect("it takes orders");
}

/// The inits among these processes and their descendants, by name.
fn inits(of: &[i32]) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("proc").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|it| it.parse().ok()) else {
            continue;
        };
        let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        let namespace = |pid: i32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
        let theirs = namespace(pid);
        let shared = theirs.is_some() && of.iter().any(|it| namespace(*it) == theirs);
        if name.trim_end() == "ostler-init" && shared {
            found.push(pid);
        }
    }
    found
}

fn pipes() {
    each(|jailed| {
        let mut plan = jailed.sh("read line; echo got $line; echo oops >&2; exit 7");
        plan.io = LaunchIo::Bytes(b"this\n".to_vec());
        let done = jailed.run(plan);
        assert_spawned(&done);
        assert_eq!(
            (done.out().as_str(), done.err().as_str()),
            ("got this\n", "oops\n")
        );
        assert_eq!((done.code(), done.record.leftovers), (Some(7), 0));
        let done = jailed.shell("kill -15 $$");
        assert_eq!(done.signal(), Some(15));
        let done = jailed.shell("test -w . && echo hello > made && pwd");
        assert_eq!(
            done.out().trim_end(),
            jailed.workspace.path().to_str().expect("a name")
        );
        let made = std::fs::read_to_string(jailed.workspace.path().join("made"));
        assert_eq!(made.expect("made outside too"), "hello\n");
        let mut plan = jailed.sh("while read line; do echo [$line]; done");
        plan.io = LaunchIo::Piped;
        let dir = jailed.fixture.dir(plan.id);
        jailed.fixture.runtime.block_on(async {
            let mut handle = jailed.fixture.backend.spawn(plan).await.expect("it spawns");
            let typed = ControlCommand::Input(b"one\n".to_vec());
            handle.control.send(typed).await.expect("sent");
            wait_output(&mut handle, &dir, "[one]").await;
            handle
                .control
                .send(ControlCommand::CloseInput)
                .await
                .expect("sent");
            wait_exit(handle).await;
        });
    });
}

fn by_name() {
    each(|jailed| {
        let script = "echo out > /dev/stdout; echo err > /dev/stderr; cat /dev/stdin";
        let mut plan = jailed.sh(script);
        plan.io = LaunchIo::Bytes(b"in\n".to_vec());
        let done = jailed.run(plan);
        assert_spawned(&done);
        assert_eq!(done.out(), "out\nin\n", "{}", done.err());
        assert_eq!(done.err(), "err\n");
        let done = jailed.shell("cat /dev/stdin; echo empty");
        assert_eq!(
            (done.out(), done.err()),
            ("empty\n".to_owned(), String::new())
        );
    });
}

fn terminal() {
    each(|jailed| {
        let mut plan = jailed.sh("tty; stty size; echo mine > /dev/tty; read line; echo got $line");
        plan.io = LaunchIo::Pty(TermSize { cols: 91, rows: 17 });
        let dir = jailed.fixture.dir(plan.id);
        let record = jailed.fixture.runtime.block_on(async {
            let mut handle = jailed.fixture.backend.spawn(plan).await.expect("it spawns");
            handle
                .control
                .send(ControlCommand::Watch(true))
                .await
                .expect("sent");
            loop {
                let report = handle.events.recv().await.expect("a report");
                let actual = String::from_utf8_lossy(&output(&dir, StreamName::Pty)).into_owned();
                assert!(
                    !matches!(report.event, ProcessEvent::Exited { .. }),
                    "{report:?}\n{actual}"
                );
                if actual.contains("mine") {
                    break;
                }
            }
            let typed = ControlCommand::Input(b"typed\n".to_vec());
            handle.control.send(typed).await.expect("sent");
            wait_exit(handle).await
        });
        let actual = String::from_utf8_lossy(&output(&dir, StreamName::Pty)).into_owned();
        assert!(actual.starts_with("/dev/"), "{actual}");
        assert!(
            actual.contains("17 91") && actual.contains("got typed"),
            "{actual}"
        );
        assert!(record.survivors.is_empty());
    });
}

fn failures() {
    each(|jailed| {
        let missing = jailed.run(jailed.plan(&["/bin/there-is-no-such-program"]));
        let LeaderOutcome::SpawnFailed { step, errno, .. } = &missing.record.outcome else {
            panic!("{:?}", missing.record.outcome);
        };
        assert_eq!((step.as_str(), *errno), ("exec", Some(libc::ENOENT)));
        let mut plan = jailed.sh("true");
        // Exists outside and not inside.
        let elsewhere = jailed.fixture.state.path().to_owned();
        plan.cwd = ByteString::from(elsewhere.as_path());
        let hidden = jailed.run(plan);
        let LeaderOutcome::SpawnFailed { step, message, .. } = &hidden.record.outcome else {
            panic!("{:?}", hidden.record.outcome);
        };
        assert_eq!(step, "chdir", "{message}");
        let mut plan = jailed.sh("true");
        let nowhere = jailed.workspace.path().join("nowhere");
        plan.sandbox.as_mut().expect("a sandbox").workspace =
            Some(ByteString::from(nowhere.as_path()));
        let nowhere = jailed.run(plan);
        let LeaderOutcome::SpawnFailed { message, .. } = &nowhere.record.outcome else {
            panic!("{:?}", nowhere.record.outcome);
        };
        assert!(message.contains("nowhere"), "the path is named: {message}");
        assert_eq!(jailed.shell("echo on").out(), "on\n");
    });
}

fn shim_of(dir: &Path) -> i32 {
    let spec = std::fs::read_to_string(dir.join("spec.json")).expect("a spec");
    let rest = spec.split("\"shim_pid\":").nth(1).expect("a pid");
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

fn killed_shim() {
    // A shim that is a thread is killed with this process only.
    let Some(jailed) = JailFixture::with(this_executable()) else {
        return;
    };
    let mut plan = jailed.sh("(setsid sleep 300) & trap '' TERM HUP; echo up; sleep 300");
    plan.report_start = true;
    let (id, dir) = (plan.id, jailed.fixture.dir(plan.id));
    jailed.fixture.runtime.block_on(async {
        let mut handle = jailed.fixture.backend.spawn(plan).await.expect("it spawns");
        let leader = i32::try_from(wait_started(&mut handle).await).expect("a pid");
        wait_output(&mut handle, &dir, "up").await;
        let inits = inits(&[leader]);
        let [init] = inits.as_slice() else {
            panic!("one warden, not {inits:?}");
        };
        let init = rustix::process::Pid::from_raw(*init).expect("a pid");
        let flags = rustix::process::PidfdFlags::empty();
        let init = rustix::process::pidfd_open(init, flags).expect("it lives");
        kill(shim_of(&dir), rustix::process::Signal::KILL);
        next_event(&mut handle, |report| {
            matches!(report, ProcessEvent::Lost).then_some(())
        })
        .await;
        assert!(members(id).is_empty());
        let ended = ostler_sys::pidfd::wait(init);
        tokio::time::timeout(LONG, ended)
            .await
            .expect("ended")
            .expect("polled");
    });
}

fn killed_warden() {
    each(|jailed| {
        let mut plan = jailed.sh("(setsid sleep 300) & echo up; sleep 300");
        plan.report_start = true;
        let (id, dir) = (plan.id, jailed.fixture.dir(plan.id));
        let record = jailed.fixture.runtime.block_on(async {
            let mut handle = jailed.fixture.backend.spawn(plan).await.expect("it spawns");
            let leader = i32::try_from(wait_started(&mut handle).await).expect("a pid");
            wait_output(&mut handle, &dir, "up").await;
            for init in inits(&[leader]) {
                kill(init, rustix::process::Signal::KILL);
            }
            wait_exit(handle).await
        });
        assert!(matches!(record.outcome, LeaderOutcome::Ended { .. }));
        assert!(record.survivors.is_empty() && !record.out_of_memory);
        assert!(members(id).is_empty());
    });
}

fn frozen() {
    each(|jailed| {
        let mut plan = jailed.sh(
            "(setsid sh -c 'while :; do echo deep; sleep 0.01; done') & \
            while :; do sleep 0.01; done",
        );
        plan.timeouts.wall = Some(LONG);
        plan.timeouts.grace = Duration::ZERO;
        let dir = jailed.fixture.dir(plan.id);
        jailed.fixture.runtime.block_on(async {
            let mut handle = jailed.fixture.backend.spawn(plan).await.expect("it spawns");
            wait_output(&mut handle, &dir, "deep").await;
            let frozen = async |handle: &mut SpawnHandle, wanted| {
                handle
                    .control
                    .send(ControlCommand::Freeze(wanted))
                    .await
                    .expect("sent");
                next_event(handle, |report| match report {
                    ProcessEvent::Frozen { frozen } => Some(*frozen),
                    _ => None,
                })
                .await
            };
            assert!(frozen(&mut handle, true).await);
            let quiet = Duration::from_millis(100);
            let drained = async { while handle.events.recv().await.is_some() {} };
            assert!(tokio::time::timeout(quiet, drained).await.is_err());
            let before = output(&dir, StreamName::Stdout);
            assert!(
                tokio::time::timeout(quiet, handle.events.recv())
                    .await
                    .is_err()
            );
            assert_eq!(output(&dir, StreamName::Stdout), before);
            assert!(!frozen(&mut handle, false).await);
            wait_output(&mut handle, &dir, "deep").await;
            stop(&handle).await;
            wait_exit(handle).await;
        });
    });
}

fn recycled() {
    each(|jailed| {
        for round in 0..3 {
            let done = jailed.shell("echo jailed; ls /proc | grep -c '^[0-9]'");
            assert_spawned(&done);
            let mut lines = done
                .out()
                .lines()
                .map(str::to_owned)
                .collect::<Vec<_>>()
                .into_iter();
            assert_eq!(lines.next().as_deref(), Some("jailed"));
            let seen: u32 = lines
                .next()
                .and_then(|it| it.parse().ok())
                .expect("a count");
            assert!(seen < 8, "{seen} processes are seen inside");
            let done = jailed.fixture.sh("echo plain");
            assert_eq!(done.out(), "plain\n", "round {round}");
        }
    });
}

fn adopted() {
    let Some(jailed) = JailFixture::with(this_executable()) else {
        return;
    };
    let mut plan = jailed.sh("echo up; read line; echo got $line");
    plan.io = LaunchIo::Piped;
    let (id, dir) = (plan.id, jailed.fixture.dir(plan.id));
    jailed.fixture.runtime.block_on(async {
        let mut handle = jailed.fixture.backend.spawn(plan).await.expect("it spawns");
        wait_output(&mut handle, &dir, "up").await;
        jailed.fixture.backend.close().await;
        let again = ostler_backend_local::LocalBackend::open(
            jailed.fixture.state.path(),
            this_executable(),
        );
        let backend = again.await.expect("opens again");
        let ostler_backend::RecoveryOutcome::Running { handle, .. } = backend.recover(id).await
        else {
            panic!("it runs");
        };
        let typed = ControlCommand::Input(b"later\n".to_vec());
        handle.control.send(typed).await.expect("sent");
        let record = wait_exit(handle).await;
        assert!(record.survivors.is_empty());
        let actual = output(&dir, StreamName::Stdout);
        assert_eq!(String::from_utf8_lossy(&actual), "up\ngot later\n");
        backend.close().await;
    });
}

/// The egress proxies among the children of a shim.
fn egress_proxies(shim: i32) -> Vec<i32> {
    let path = format!("/proc/{shim}/task/{shim}/children");
    let children = std::fs::read_to_string(path).unwrap_or_default();
    let named = |pid: &i32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim_end() == "ostler-gate"
    };
    let pids = children.split_whitespace().filter_map(|it| it.parse().ok());
    pids.filter(named).collect()
}

fn gate() {
    let Some(jailed) = JailFixture::with(this_executable()) else {
        return;
    };
    if !jailed.fixture.backend.capabilities().has(Capability::Gate) {
        return;
    }
    let mut plan = jailed.sh("echo up; read line; echo got $line");
    plan.io = LaunchIo::Piped;
    plan.limits.pids = Some(4);
    let confinement = plan.sandbox.as_mut().expect("a sandbox");
    let rule = "allowed.example".parse().expect("a host");
    confinement.network = NetworkAccess::AllowList { hosts: vec![rule] };
    let (id, dir) = (plan.id, jailed.fixture.dir(plan.id));
    jailed.fixture.runtime.block_on(async {
        let mut handle = jailed.fixture.backend.spawn(plan).await.expect("it spawns");
        wait_output(&mut handle, &dir, "up").await;
        let shim = shim_of(&dir);
        let found = egress_proxies(shim);
        let [gate] = found.as_slice() else {
            panic!("one gate, not {found:?}");
        };
        let seen = evidence::look(&jailed, id).await;
        let names: Vec<&str> = seen.members.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["sh"]);
        let gate = rustix::process::Pid::from_raw(*gate).expect("a pid");
        let gate = rustix::process::pidfd_open(gate, rustix::process::PidfdFlags::empty());
        jailed.fixture.backend.close().await;
        let again = ostler_backend_local::LocalBackend::open(
            jailed.fixture.state.path(),
            this_executable(),
        );
        let backend = again.await.expect("opens again");
        let ostler_backend::RecoveryOutcome::Running { handle, .. } = backend.recover(id).await
        else {
            panic!("it runs");
        };
        assert_eq!(egress_proxies(shim).len(), 1, "it outlives the daemon");
        let typed = ControlCommand::Input(b"later\n".to_vec());
        handle.control.send(typed).await.expect("sent");
        let record = wait_exit(handle).await;
        assert!(record.survivors.is_empty() && record.leftovers == 0);
        assert!(record.limits_hit.is_empty(), "it is not counted");
        let ended = ostler_sys::pidfd::wait(gate.expect("it lived"));
        tokio::time::timeout(LONG, ended)
            .await
            .expect("ended")
            .expect("polled");
        assert!(dir.join("network.jsonl").exists());
        backend.close().await;
    });
}
