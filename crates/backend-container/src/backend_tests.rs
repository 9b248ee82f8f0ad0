use std::collections::HashMap;
use std::time::Duration;

use hyper::Method;
use ostler_backend::{
    ContainerAttachment, ControlCommand, ControlError, EXIT_RECORD_VERSION, ExitRecord, LaunchIo,
    LeaderOutcome, ProcessControl, ProcessEvent, ReceivedEvent, Timeouts,
};
use ostler_model::termination::WaitStatus;
use ostler_model::{ByteString, Limits, OrphanPolicy, Signal, Timestamp, Usage};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::*;
use crate::fake_engine::{EngineFault, FakeEngine};
use crate::fixtures;

/// A local backend whose attempts end when a test says so.
#[derive(Debug, Default)]
struct StubBackend {
    attempts: Mutex<HashMap<ExecutionId, mpsc::Sender<ReceivedEvent>>>,
    attachments: Mutex<Vec<ContainerAttachment>>,
}

#[derive(Debug)]
struct StubControl;

impl ProcessControl for StubControl {
    fn send(&self, _command: ControlCommand) -> BoxFuture<'_, Result<(), ControlError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl StubBackend {
    fn handle(&self, id: ExecutionId) -> SpawnHandle {
        let (sender, events) = mpsc::channel(64);
        self.attempts.lock().insert(id, sender);
        let control = Arc::new(StubControl);
        SpawnHandle { control, events }
    }

    fn send(&self, id: ExecutionId, event: ProcessEvent) {
        let sender = self.attempts.lock().get(&id).cloned().expect("it runs");
        sender.try_send(event.into()).expect("there is room");
    }

    fn end(&self, id: ExecutionId, outcome: LeaderOutcome) {
        let record = record(outcome);
        let event = ProcessEvent::Exited { record, idle: true };
        self.send(id, event);
        self.attempts.lock().remove(&id);
    }
}

impl Backend for StubBackend {
    fn name(&self) -> BackendName {
        BackendName::local()
    }

    fn capabilities(&self) -> CapabilitySet {
        CapabilitySet::default()
    }

    fn spawn(&self, plan: LaunchPlan) -> BoxFuture<'_, Result<SpawnHandle, SpawnError>> {
        self.attachments.lock().extend(plan.attachment);
        Box::pin(std::future::ready(Ok(self.handle(plan.id))))
    }

    fn recover(&self, id: ExecutionId) -> BoxFuture<'_, RecoveryOutcome> {
        let outcome = RecoveryOutcome::Running {
            attempt: 1,
            pid: 1,
            started_at: Timestamp::now(),
            handle: self.handle(id),
        };
        Box::pin(std::future::ready(outcome))
    }

    fn snapshot(
        &self,
        id: ExecutionId,
        _request: SnapshotRequest,
    ) -> BoxFuture<'_, Result<TreeSnapshot, SnapshotError>> {
        Box::pin(std::future::ready(Err(SnapshotError::Unknown(id))))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

const EXITED: LeaderOutcome = LeaderOutcome::Ended {
    status: WaitStatus::Code(0),
    kill_reason: None,
};

fn record(outcome: LeaderOutcome) -> Box<ExitRecord> {
    Box::new(ExitRecord {
        version: EXIT_RECORD_VERSION,
        attempt: 1,
        pid: 1,
        started_at: Timestamp::now(),
        ended_at: Timestamp::now(),
        lived_ms: 0,
        outcome,
        leftovers: 0,
        survivors: Vec::new(),
        out_of_memory: false,
        limits_hit: Vec::new(),
        usage: Usage::default(),
        output_end: 0,
        journal_error: None,
        lost_bytes: 0,
        autorun: Box::default(),
        lost_capabilities: Vec::new(),
    })
}

fn plan(change: impl Fn(&mut ContainerSpec)) -> LaunchPlan {
    let mut launch = fixtures::launch();
    change(&mut launch.spec);
    LaunchPlan {
        id: ExecutionId::mint(),
        attempt: 1,
        spec: b"{}".to_vec(),
        program: ByteString::from("true"),
        argv: vec![ByteString::from("true")],
        env: Vec::new(),
        cwd: ByteString::from("/workspace"),
        io: LaunchIo::Empty,
        timeouts: Timeouts {
            wall: None,
            idle: None,
            grace: Duration::ZERO,
        },
        orphan_policy: OrphanPolicy::Kill,
        limits: Limits::default(),
        sandbox: None,
        redact: Vec::new(),
        pinned_files: Vec::new(),
        report_start: false,
        lossless_reader: false,
        min_output_offset: 0,
        record_input: false,
        disk_scope: None,
        container: Some(Box::new(launch)),
        attachment: None,
        program_fallback: None,
        secret_files: Vec::new(),
    }
}

fn unchanged(_spec: &mut ContainerSpec) {}

/// A daemon with an engine.
struct Daemon {
    local: Arc<StubBackend>,
    backend: Arc<ContainerBackend>,
}

impl Daemon {
    fn open(state: &Path, engine: &FakeEngine) -> Self {
        let local = Arc::new(StubBackend::default());
        let shared = Arc::clone(&local);
        let backend = ContainerBackend::open(state, engine.discovery(), shared);
        Self {
            local,
            backend: Arc::new(backend.expect("opened")),
        }
    }

    async fn start(&self, plan: LaunchPlan) -> (ExecutionId, SpawnHandle) {
        let id = plan.id;
        (id, self.backend.spawn(plan).await.expect("started"))
    }

    /// Ends an execution, and waits until that is reported.
    async fn end(&self, (id, mut handle): (ExecutionId, SpawnHandle), outcome: LeaderOutcome) {
        self.local.end(id, outcome);
        while handle.events.recv().await.is_some() {}
    }

    async fn run(&self, plan: LaunchPlan) {
        let started = self.start(plan).await;
        self.end(started, EXITED).await;
    }

    fn containers(&self) -> Vec<String> {
        let attachments = self.local.attachments.lock();
        attachments.iter().map(|it| it.container.clone()).collect()
    }
}

/// Records, as shims do, that an execution has started.
fn write_spec(state: &Path, id: ExecutionId) {
    let directory = state.join("executions").join(id.to_string());
    std::fs::create_dir_all(&directory).expect("made");
}

#[tokio::test]
async fn two_starts_at_once_share_a_container_and_so_does_the_next() {
    let (state, engine) = (
        tempfile::tempdir().expect("a directory"),
        FakeEngine::start(),
    );
    let daemon = Daemon::open(state.path(), &engine);
    let starts = tokio::join!(daemon.start(plan(unchanged)), daemon.start(plan(unchanged)));
    let (first, second) = starts;
    let facts = daemon.backend.facts(first.0).expect("it runs");
    assert_eq!(facts.engine, "Docker 20.10.24");
    assert_eq!(facts.disk, ostler_model::DiskEnforcement::Accounting);
    daemon.end(first, EXITED).await;
    daemon.end(second, EXITED).await;
    daemon.run(plan(unchanged)).await;
    assert_eq!(engine.count(&Method::POST, "/create"), 1);
    let containers = daemon.containers();
    assert_eq!(containers, vec![engine.names()[0].clone(); 3]);
    let attachment = daemon.local.attachments.lock()[0].clone();
    assert_eq!(attachment.init_pid, std::process::id());
    assert!(attachment.socket.as_path().exists());
    daemon.backend.close().await;
    assert_eq!(engine.names(), Vec::<String>::new(), "nothing runs");
    assert!(!attachment.socket.as_path().exists());
}

#[tokio::test]
async fn events_arrive_in_order_and_the_last_one_after_the_container_is_free() {
    let (state, engine) = (
        tempfile::tempdir().expect("a directory"),
        FakeEngine::start(),
    );
    let daemon = Daemon::open(state.path(), &engine);
    let (id, mut handle) = daemon.start(plan(unchanged)).await;
    assert!(daemon.backend.pool.recorded(id).is_some());
    for number in 0..40 {
        let event = ProcessEvent::Output { end: number };
        daemon.local.send(id, event);
    }
    daemon.local.end(id, EXITED);
    let mut ends = Vec::new();
    while let Some(received) = handle.events.recv().await {
        if let ProcessEvent::Output { end } = received.event {
            ends.push(end);
            continue;
        }
        let event = received.event;
        assert!(matches!(event, ProcessEvent::Exited { .. }), "{event:?}");
        assert!(daemon.backend.pool.recorded(id).is_none());
        assert_eq!(daemon.backend.facts(id), None);
    }
    assert_eq!(ends, (0..40).collect::<Vec<_>>());
}

#[tokio::test]
async fn other_options_and_a_rebuilt_image_take_another_container() {
    let (state, engine) = (
        tempfile::tempdir().expect("a directory"),
        FakeEngine::start(),
    );
    let daemon = Daemon::open(state.path(), &engine);
    daemon.run(plan(unchanged)).await;
    daemon
        .run(plan(|spec| spec.dns.push("192.0.2.1".to_owned())))
        .await;
    engine.state.lock().image_id = "sha256:2".to_owned();
    daemon.run(plan(unchanged)).await;
    assert_eq!(engine.names().len(), 3);
    daemon.run(plan(|spec| spec.reuse = false)).await;
    assert_eq!(engine.count(&Method::POST, "/create"), 4);
    engine.until(|state| state.containers.len() == 3).await;
}

#[tokio::test]
async fn a_warm_container_that_is_not_usable_is_replaced() {
    let (state, engine) = (
        tempfile::tempdir().expect("a directory"),
        FakeEngine::start(),
    );
    let daemon = Daemon::open(state.path(), &engine);
    daemon.run(plan(unchanged)).await;
    let changes: [fn(&mut crate::fake_engine::FakeContainer); 3] = [
        |it| it.status = "paused",
        |it| it.status = "exited",
        |it| it.health = "unhealthy",
    ];
    for change in changes {
        let before = engine.names();
        engine.change(change);
        daemon.run(plan(unchanged)).await;
        engine.until(|state| state.containers.len() == 1).await;
        assert_ne!(engine.names(), before);
    }
    engine.state.lock().containers.clear();
    daemon.run(plan(unchanged)).await;
    assert_eq!(engine.names().len(), 1);
}

#[tokio::test]
async fn an_ill_container_stays_until_its_last_command_has_ended() {
    let (state, engine) = (
        tempfile::tempdir().expect("a directory"),
        FakeEngine::start(),
    );
    let daemon = Daemon::open(state.path(), &engine);
    let running = daemon.start(plan(unchanged)).await;
    let ill = engine.names();
    engine.change(|it| it.health = "unhealthy");
    daemon.run(plan(unchanged)).await;
    assert_eq!(engine.names().len(), 2);
    daemon.end(running, EXITED).await;
    engine
        .until(|state| !state.containers.contains_key(&ill[0]))
        .await;
}

#[tokio::test]
async fn a_container_in_which_an_attempt_was_lost_is_removed() {
    let (state, engine) = (
        tempfile::tempdir().expect("a directory"),
        FakeEngine::start(),
    );
    let daemon = Daemon::open(state.path(), &engine);
    let started = daemon.start(plan(unchanged)).await;
    daemon.end(started, LeaderOutcome::ContainerLost).await;
    engine.until(|state| state.containers.is_empty()).await;
    let started = daemon.start(plan(unchanged)).await;
    engine.change(|it| it.status = "exited");
    let killed = LeaderOutcome::Ended {
        status: WaitStatus::Signal(Signal::KILL),
        kill_reason: None,
    };
    daemon.end(started, killed).await;
    engine.until(|state| state.containers.is_empty()).await;
}

#[tokio::test]
async fn an_idle_container_is_removed_after_its_time() {
    let (state, engine) = (
        tempfile::tempdir().expect("a directory"),
        FakeEngine::start(),
    );
    let daemon = Daemon::open(state.path(), &engine);
    daemon
        .run(plan(|spec| spec.idle_timeout = Duration::from_millis(20)))
        .await;
    engine.until(|state| state.containers.is_empty()).await;
}

#[tokio::test]
async fn what_could_not_be_made_leaves_nothing() {
    let (state, engine) = (
        tempfile::tempdir().expect("a directory"),
        FakeEngine::start(),
    );
    let daemon = Daemon::open(state.path(), &engine);
    let refused = |message| EngineFault::Refuse(500, message);
    engine.fail(Method::POST, "/create", refused("no space left on device"));
    let error = daemon
        .backend
        .spawn(plan(unchanged))
        .await
        .expect_err("refused");
    assert!(
        matches!(
            error,
            SpawnError::Container(ContainerError::EngineStorage(_))
        ),
        "{error}"
    );
    engine.repair();
    let network = EngineFault::Refuse(404, "network web not found");
    engine.fail(Method::POST, "/start", network);
    let error = daemon
        .backend
        .spawn(plan(unchanged))
        .await
        .expect_err("refused");
    let absent = ContainerError::NoNetwork {
        network: "none".to_owned(),
    };
    assert_eq!(error, SpawnError::Container(absent));
    engine.until(|state| state.containers.is_empty()).await;
    engine.repair();
    // The caller does not wait for a removal: another start is not in its way.
    daemon.run(plan(unchanged)).await;
    daemon.backend.close().await;
    assert_eq!(engine.names(), Vec::<String>::new());
    let left: Vec<_> = daemon.backend.pool.directories();
    assert_eq!(left, []);
}

#[tokio::test]
async fn an_init_that_ends_at_once_is_reported_to_all_who_wait() {
    let (state, engine) = (
        tempfile::tempdir().expect("a directory"),
        FakeEngine::start(),
    );
    engine.state.lock().inits_fail = true;
    let daemon = Daemon::open(state.path(), &engine);
    tokio::time::pause();
    let [first, second] = [plan(unchanged), plan(unchanged)];
    let both = tokio::join!(daemon.backend.spawn(first), daemon.backend.spawn(second));
    for error in [both.0, both.1] {
        let error = error.expect_err("it ended");
        let text = "the container did not start: its init ended with exit code 1";
        assert_eq!(error.to_string(), text);
    }
    assert_eq!(engine.count(&Method::POST, "/create"), 1);
}

#[tokio::test]
async fn a_start_that_is_given_up_leaves_a_warm_container() {
    let (state, engine) = (
        tempfile::tempdir().expect("a directory"),
        FakeEngine::start(),
    );
    let daemon = Daemon::open(state.path(), &engine);
    {
        let start = daemon.backend.spawn(plan(unchanged));
        let created = engine.until(|state| !state.containers.is_empty());
        tokio::select! {
            biased;
            _ = start => panic!("it was not to be finished"),
            () = created => {}
        }
    }
    daemon.run(plan(unchanged)).await;
    assert_eq!(engine.count(&Method::POST, "/create"), 1);
}

#[tokio::test]
async fn the_next_daemon_finds_running_and_idle_containers_again() {
    let (state, engine) = (
        tempfile::tempdir().expect("a directory"),
        FakeEngine::start(),
    );
    let other_state = tempfile::tempdir().expect("a directory");
    let other = Daemon::open(other_state.path(), &engine);
    other.run(plan(unchanged)).await;
    let first = Daemon::open(state.path(), &engine);
    let (id, handle) = first.start(plan(unchanged)).await;
    write_spec(state.path(), id);
    let other_options = |spec: &mut ContainerSpec| spec.dns.push("192.0.2.1".to_owned());
    first.run(plan(other_options)).await;
    let before = engine.names();
    assert_eq!(before.len(), 3);
    // As a daemon that is killed: nothing is closed.
    drop((first, handle));
    let second = Daemon::open(state.path(), &engine);
    let RecoveryOutcome::Running { handle, .. } = second.backend.recover(id).await else {
        panic!("it runs");
    };
    second.run(plan(unchanged)).await;
    second.run(plan(other_options)).await;
    assert_eq!(engine.names(), before, "no other was made");
    let facts = second.backend.facts(id).expect("it runs");
    assert_eq!(facts.container_id, second.containers()[0]);
    second.backend.close().await;
    let left = engine.names();
    assert!(
        left.contains(&facts.container_id),
        "an execution runs in it"
    );
    assert_eq!(left.len(), 2, "that one, and the other daemon's");
    drop(handle);
}

#[tokio::test]
async fn the_next_daemon_removes_containers_of_another_init_and_of_ended_executions() {
    let (state, engine) = (
        tempfile::tempdir().expect("a directory"),
        FakeEngine::start(),
    );
    let first = Daemon::open(state.path(), &engine);
    // Its execution has no directory: it is gone.
    let started = first.start(plan(unchanged)).await;
    engine.change(|it| it.config["Labels"]["dev.ostler.init"] = "older".into());
    drop((first, started));
    let second = Daemon::open(state.path(), &engine);
    engine.until(|state| state.containers.is_empty()).await;
    second.run(plan(unchanged)).await;
    assert_eq!(engine.names().len(), 1);
}

#[tokio::test]
async fn the_end_of_a_daemon_that_did_not_look_yet_leaves_no_idle_container() {
    let (state, mut engine) = (
        tempfile::tempdir().expect("a directory"),
        FakeEngine::start(),
    );
    let first = Daemon::open(state.path(), &engine);
    first.run(plan(unchanged)).await;
    let (id, handle) = first
        .start(plan(|spec| spec.dns.push("192.0.2.1".to_owned())))
        .await;
    write_spec(state.path(), id);
    let used = first.containers()[1].clone();
    drop((first, handle));
    // It is not there when the next daemon starts, and is when that ends.
    engine.stop().await;
    let second = Daemon::open(state.path(), &engine);
    second
        .backend
        .engine
        .connect()
        .await
        .expect_err("nothing listens");
    engine.listen();
    second.backend.close().await;
    assert_eq!(engine.names(), [used]);
    // With nothing of its own in the engine, a daemon does not wait for one that hangs.
    let other = tempfile::tempdir().expect("a directory");
    engine.fail(Method::GET, "/version", EngineFault::Hang);
    let third = Daemon::open(other.path(), &engine);
    let closed = tokio::time::timeout(Duration::from_secs(2), third.backend.close());
    closed.await.expect("at once");
}

#[tokio::test]
async fn what_an_engine_creates_after_the_end_of_its_daemon_is_removed() {
    let (state, engine) = (
        tempfile::tempdir().expect("a directory"),
        FakeEngine::start(),
    );
    let first = Daemon::open(state.path(), &engine);
    first.run(plan(unchanged)).await;
    let (name, late) = engine.state.lock().containers.pop_first().expect("made");
    drop(first);
    let second = Daemon::open(state.path(), &engine);
    second.run(plan(|spec| spec.reuse = false)).await;
    engine.state.lock().containers.insert(name, late);
    tokio::time::pause();
    engine.until(|state| state.containers.is_empty()).await;
    second.backend.close().await;
    assert_eq!(second.backend.pool.directories(), []);
}

#[tokio::test]
async fn a_removal_that_another_request_began_is_waited_for() {
    let (state, engine) = (
        tempfile::tempdir().expect("a directory"),
        FakeEngine::start(),
    );
    let daemon = Daemon::open(state.path(), &engine);
    daemon.run(plan(unchanged)).await;
    let busy = EngineFault::Refuse(409, "removal of container x is already in progress");
    engine.fail(Method::DELETE, "", busy);
    daemon.backend.close().await;
    assert_eq!(engine.count(&Method::POST, "/wait"), 1);
    assert_eq!(engine.names(), Vec::<String>::new());
    assert_eq!(daemon.backend.pool.directories(), []);
}

#[tokio::test]
async fn a_container_without_the_socket_of_its_init_is_replaced() {
    let (state, engine) = (
        tempfile::tempdir().expect("a directory"),
        FakeEngine::start(),
    );
    let daemon = Daemon::open(state.path(), &engine);
    daemon.run(plan(unchanged)).await;
    let socket = daemon.local.attachments.lock()[0].socket.clone();
    std::fs::remove_file(socket.as_path()).expect("there");
    daemon.run(plan(unchanged)).await;
    let [first, second] = &daemon.containers()[..] else {
        panic!("two starts");
    };
    assert_ne!(first, second);
    // Something that does not listen is found out by the start that fails.
    let socket = daemon.local.attachments.lock()[1].socket.clone();
    engine.change(crate::fake_engine::FakeContainer::stop_listening);
    assert!(socket.as_path().exists());
    let started = daemon.start(plan(unchanged)).await;
    let failed = LeaderOutcome::SpawnFailed {
        step: "container".to_owned(),
        errno: None,
        message: String::new(),
    };
    daemon.end(started, failed).await;
    engine.until(|state| state.containers.is_empty()).await;
}

#[tokio::test]
async fn a_check_says_what_is_missing_and_changes_nothing() {
    let (state, engine) = (
        tempfile::tempdir().expect("a directory"),
        FakeEngine::start(),
    );
    let daemon = Daemon::open(state.path(), &engine);
    let spec = fixtures::launch().spec;
    let check = async |change: fn(&mut ContainerSpec)| {
        let mut changed = spec.clone();
        change(&mut changed);
        daemon.backend.check_container(&changed).await
    };
    assert_eq!(check(|_| {}).await, Ok(()));
    assert_eq!(check(|it| it.network = "web".to_owned()).await, Ok(()));
    let image = "absent".to_owned();
    let absent = check(|it| it.image = "absent".to_owned()).await;
    assert_eq!(absent, Err(ContainerError::NoImage { image }));
    let network = "absent".to_owned();
    let absent = check(|it| it.network = "absent".to_owned()).await;
    assert_eq!(absent, Err(ContainerError::NoNetwork { network }));
    let shared = check(|it| it.network = "host".to_owned()).await;
    assert!(
        matches!(shared, Err(ContainerError::Refused(_))),
        "{shared:?}"
    );
    assert_eq!(engine.count(&Method::POST, "/create"), 0);
}
