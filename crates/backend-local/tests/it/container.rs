//! The cases of other modules, with every command in a container: this executable as its init, in pid
//! and mount namespaces of its own. There is no engine; what an engine adds is tested elsewhere.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use ostler_backend::{
    Backend, BoxFuture, ContainerAttachment, LaunchPlan, LeaderOutcome, OverlayRequestError,
    RecoveryOutcome, SnapshotError, SpawnError, SpawnHandle, UsageReading,
};
use ostler_backend_local::LocalBackend;
use ostler_container_init::protocol::{SOCKET_DIR, SOCKET_NAME};
use ostler_model::{
    BackendName, ByteString, CapabilitySet, ExecutionId, MissingCapability, OverlayRequest,
    OverlayResponse, PortHolder, SandboxSpec, SnapshotRequest, TreeSnapshot,
};

use crate::support::{BackendFixture, TestCase, argv, members, sh, wait_started, wait_until};

/// The argument by which this executable is the init of a container.
pub(crate) const INIT_ARGUMENT: &str = "__container-init";

/// Cases about the shim as the parent of the command, which in a container is the runner.
const LEFT_OUT: [&str; 2] = ["shims_are_used_again", "a_closed_terminal_costs_nothing"];

/// Whether a case says nothing about containers.
pub(crate) fn is_left_out(name: &str) -> bool {
    LEFT_OUT.contains(&name)
}

/// Whether commands run in a container: a process runs one case.
static IN_CONTAINER: AtomicBool = AtomicBool::new(false);

/// Runs the cases of this process in a container.
pub(crate) fn enter() {
    IN_CONTAINER.store(true, Ordering::Relaxed);
}

pub(crate) fn is_entered() -> bool {
    IN_CONTAINER.load(Ordering::Relaxed)
}

pub(crate) const CASES: &[TestCase] = &[
    ("the_end_of_the_container_ends_the_command", container_ends),
    ("a_killed_runner_takes_its_tree_along", runner_killed),
    ("a_killed_shim_takes_its_tree_along", shim_killed),
    ("another_socket_in_its_place_is_refused", socket_replaced),
    ("a_frozen_container_starts_nothing", frozen),
    ("a_shell_that_is_missing_is_replaced", fallback),
    ("two_commands_share_a_container", side_by_side),
    ("three_hundred_short_commands", many_commands),
];

/// Namespaces with an init.
#[derive(Debug)]
pub(crate) struct TestContainer {
    unshare: Child,
    init: u32,
    directory: PathBuf,
}

impl TestContainer {
    /// Starts one whose socket is in `state`.
    pub(crate) fn start(state: &Path) -> Self {
        const SCRIPT: &str = "mount -t tmpfs none /run && mkdir -p \"$1\" && \
                              mount --bind \"$0\" \"$1\" && exec \"$2\" __container-init";
        let directory = state.join("container");
        std::fs::create_dir(&directory).expect("room");
        let mut command = Command::new("unshare");
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        command
            .args(["--pid", "--mount", "--mount-proc", "--fork", "--kill-child"])
            .args(["sh", "-c", SCRIPT])
            .arg(&directory)
            .arg(SOCKET_DIR)
            .arg(std::env::current_exe().expect("a path"))
            .stdin(Stdio::null())
            .process_group(0);
        let unshare = command.spawn().expect("unshare");
        wait_until(|| directory.join(SOCKET_NAME).exists());
        let init = children(unshare.id())[0];
        Self {
            unshare,
            init,
            directory,
        }
    }

    fn attachment(&self) -> ContainerAttachment {
        ContainerAttachment {
            container: "c0ffee".to_owned(),
            socket: self.directory.join(SOCKET_NAME).into(),
            init_pid: self.init,
        }
    }

    fn signal_init(&self, signal: &str) {
        let pid = self.init.to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(sent.expect("kill").success());
    }

    /// The runners, which are the init's children.
    fn runners(&self) -> Vec<u32> {
        children(self.init)
    }
}

impl Drop for TestContainer {
    fn drop(&mut self) {
        let _gone = self.unshare.kill();
        let _reaped = self.unshare.wait();
    }
}

fn children(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let listed = std::fs::read_to_string(path).unwrap_or_default();
    let pids = listed.split_ascii_whitespace();
    pids.filter_map(|word| word.parse().ok()).collect()
}

/// The backend of this machine, with every command in a container where the case asks for that.
#[derive(Debug)]
pub(crate) struct TestBackend {
    pub(crate) local: LocalBackend,
    pub(crate) container: Option<TestContainer>,
}

impl Backend for TestBackend {
    fn name(&self) -> BackendName {
        self.local.name()
    }

    fn capabilities(&self) -> CapabilitySet {
        self.local.capabilities()
    }

    fn spawn(&self, mut plan: LaunchPlan) -> BoxFuture<'_, Result<SpawnHandle, SpawnError>> {
        if let Some(container) = &self.container {
            plan.spec = br#"{"test":true,"place":"container"}"#.to_vec();
            plan.attachment = Some(container.attachment());
        }
        self.local.spawn(plan)
    }

    fn recover(&self, id: ExecutionId) -> BoxFuture<'_, RecoveryOutcome> {
        self.local.recover(id)
    }

    fn snapshot(
        &self,
        id: ExecutionId,
        request: SnapshotRequest,
    ) -> BoxFuture<'_, Result<TreeSnapshot, SnapshotError>> {
        self.local.snapshot(id, request)
    }

    fn usage<'a>(&'a self, ids: &'a [ExecutionId]) -> BoxFuture<'a, Vec<Option<UsageReading>>> {
        self.local.usage(ids)
    }

    fn directory_bytes<'a>(&'a self, directory: &'a Path) -> BoxFuture<'a, Option<u64>> {
        self.local.directory_bytes(directory)
    }

    fn probe_filesystems<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Vec<MissingCapability>> {
        self.local.probe_filesystems(spec)
    }

    fn connect(
        &self,
        id: ExecutionId,
        address: std::net::SocketAddr,
    ) -> BoxFuture<'_, std::io::Result<std::os::fd::OwnedFd>> {
        self.local.connect(id, address)
    }

    fn port_holders<'a>(&'a self, ports: &'a [u16]) -> BoxFuture<'a, Vec<PortHolder>> {
        self.local.port_holders(ports)
    }

    fn overlay(
        &self,
        id: ExecutionId,
        request: OverlayRequest,
        has_ended: bool,
    ) -> BoxFuture<'_, Result<OverlayResponse, OverlayRequestError>> {
        self.local.overlay(id, request, has_ended)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.local.close()
    }
}

fn container(fixture: &BackendFixture) -> &TestContainer {
    fixture.backend.container.as_ref().expect("in a container")
}

fn container_ends() {
    let fixture = BackendFixture::new();
    let plan = sh("sleep 300 & sleep 300");
    let id = plan.id;
    let record = fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        wait_started(&mut handle).await;
        container(&fixture).signal_init("KILL");
        crate::support::wait_exit(handle).await
    });
    assert_eq!(record.outcome, LeaderOutcome::ContainerLost);
    // The kernel kills the others of its process namespace: on a busy machine after the report.
    crate::support::wait_until(|| members(id).is_empty());
}

fn runner_killed() {
    let fixture = BackendFixture::new();
    let plan = sh("setsid sleep 300 & sleep 300");
    let id = plan.id;
    let record = fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        wait_started(&mut handle).await;
        let runners = container(&fixture).runners();
        assert_eq!(runners.len(), 1, "{runners:?}");
        let pid = runners[0].to_string();
        let sent = Command::new("kill").args(["-KILL", &pid]).status();
        assert!(sent.expect("kill").success());
        crate::support::wait_exit(handle).await
    });
    assert_eq!(record.outcome, LeaderOutcome::ContainerLost);
    wait_until(|| members(id).is_empty());
    assert_eq!(fixture.sh("echo on").out(), "on\n", "the init goes on");
}

fn shim_killed() {
    let fixture = BackendFixture::new();
    let plan = sh("setsid sleep 300 & sleep 300");
    let id = plan.id;
    fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        wait_started(&mut handle).await;
        let spec = fixture.dir(id).join("spec.json");
        let spec = std::fs::read(spec).expect("written");
        let spec: serde_json::Value = serde_json::from_slice(&spec).expect("JSON");
        let shim = spec["boot"]["shim_pid"].to_string();
        let sent = Command::new("kill").args(["-KILL", &shim]).status();
        assert!(sent.expect("kill").success());
    });
    wait_until(|| members(id).is_empty() && container(&fixture).runners().is_empty());
}

fn socket_replaced() {
    let fixture = BackendFixture::new();
    let directory = &container(&fixture).directory;
    std::fs::remove_file(directory.join(SOCKET_NAME)).expect("there");
    let opened = std::fs::File::open(directory).expect("there");
    let listener = ostler_sys::seqpacket::listen(std::os::fd::AsFd::as_fd(&opened), SOCKET_NAME, 1);
    let _listener = listener.expect("a socket of another process");
    let done = fixture.sh("echo never");
    let LeaderOutcome::SpawnFailed { step, message, .. } = &done.record.outcome else {
        panic!("{:?}", done.record.outcome);
    };
    assert_eq!(step, "container");
    assert!(message.contains("is not that of its init"), "{message}");
}

fn frozen() {
    let fixture = BackendFixture::new();
    container(&fixture).signal_init("STOP");
    let done = fixture.sh("echo never");
    container(&fixture).signal_init("CONT");
    let LeaderOutcome::SpawnFailed { step, message, .. } = &done.record.outcome else {
        panic!("{:?}", done.record.outcome);
    };
    assert_eq!(step, "container");
    assert!(message.contains("it may be paused"), "{message}");
    wait_until(|| container(&fixture).runners().is_empty());
}

fn fallback() {
    let fixture = BackendFixture::new();
    let mut plan = argv(&["no-such-shell", "-c", "echo $0"]);
    plan.program_fallback = Some(ByteString::from("sh"));
    assert_eq!(fixture.run(plan).out(), "sh\n");
    let absent = fixture.run(argv(&["no-such-shell", "-c", "true"]));
    let LeaderOutcome::SpawnFailed { step, errno, .. } = &absent.record.outcome else {
        panic!("{:?}", absent.record.outcome);
    };
    assert_eq!((step.as_str(), *errno), ("exec", Some(2)));
}

fn side_by_side() {
    let fixture = BackendFixture::new();
    let long = argv(&["sleep", "300"]);
    let id = long.id;
    fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(long).await.expect("it spawns");
        wait_started(&mut handle).await;
        let short = fixture.backend.spawn(sh("setsid sleep 300 & exit 3")).await;
        let record = crate::support::wait_exit(short.expect("it spawns")).await;
        assert_eq!(record.leftovers, 1, "the other's leftover was ended");
        assert_eq!(members(id).len(), 1, "and this one's leader was not");
        let grace = std::time::Duration::ZERO;
        let stop = ostler_backend::ControlCommand::Stop { grace };
        handle.control.send(stop).await.expect("accepted");
        crate::support::wait_exit(handle).await;
    });
    assert!(members(id).is_empty());
}

fn many_commands() {
    let fixture = BackendFixture::new();
    for number in 0..300 {
        let script = format!("echo {number}; exit {}", number % 7);
        let done = fixture.sh(&script);
        let ended = (done.out(), done.code());
        let expected = (format!("{number}\n"), Some(number % 7));
        assert_eq!(ended, expected, "{:?}", done.record.outcome);
    }
}
