//! The diagnosis of each case.

use std::sync::Arc;
use std::time::Duration;

use ostler_model::state::Phase;
use ostler_model::termination::WaitStatus;
use ostler_model::{
    BackendName, ByteString, Caller, Command, DependencyCondition, Environment, ExecutionId, Io,
    IsolationSpec, Owner, Principal, ReadinessSignal, Scope, ServicePlan, SignalKind, Spec,
    StdinSource, Termination, TerminationCause,
};

use super::*;
use crate::info::ExecutionInfo;

fn now() -> Timestamp {
    Timestamp::from_second(1_700_000_000).expect("a time")
}

fn spec(restart: RestartPolicy) -> Spec {
    let caller = Caller {
        owner: Owner {
            principal: Principal::unix(0),
            project: None,
            session: None,
            task: None,
            channel: ostler_model::RequestChannel::Local,
        },
        scope: Scope::Principal,
        projects: ostler_model::ProjectView::default(),
    };
    Spec {
        command: Command::Argv {
            program: ByteString::from("vite"),
            args: Vec::new(),
        },
        cwd: ByteString::from("/w"),
        env: Environment::default(),
        io: Io::Pipes {
            stdin: StdinSource::Open,
        },
        lifetime: Lifetime::service(restart),
        policy: IsolationSpec {
            level: ostler_model::IsolationLevel::Medium,
            confinement: None,
            limits: ostler_model::Limits::default(),
            backend: ostler_model::LimitBackend::None,
            in_force: Vec::new(),
            missing: Vec::new(),
        },
        place: BackendName::local(),
        container: None,
        owner: caller.owner,
        description: String::new(),
        labels: Vec::new(),
        encoding: None,
        retention: None,
        keep: false,
        record_input: false,
        face: None,
        shell: None,
        request: None,
    }
}

fn service(restart: RestartPolicy, state: State) -> ServiceInfo {
    let spec = spec(restart);
    let owner = Arc::new(spec.owner.clone());
    ServiceInfo {
        name: "web".to_owned(),
        execution: Some(ExecutionInfo {
            id: ExecutionId::mint(),
            spec: Arc::new(spec),
            owner,
            state,
            output_end: 0,
            survivors: Vec::new(),
            waiting_for: Some("a port to listen".to_owned()),
            id_disclosed: true,
            recovered: false,
            queue_wait: None,
            warns_about_host: false,
            is_dropping_output: false,
        }),
        workspace: None,
        defined_in: None,
        definition: None,
        command: "vite".to_owned(),
        plan: ServicePlan::default(),
        pending: None,
        dismissed: false,
        notes: Vec::new(),
    }
}

fn running() -> State {
    State {
        phase: Phase::Running,
        attempt: 1,
        pid: Some(42),
        started_at: Some(now() - Duration::from_secs(90)),
        attempt_started_at: Some(now() - Duration::from_secs(90)),
        ..State::default()
    }
}

fn case<'a>(info: &'a ServiceInfo, lines: &[&str]) -> DiagnosisInput<'a> {
    DiagnosisInput {
        info,
        needs: Vec::new(),
        holders: Vec::new(),
        lines: lines.iter().map(ToString::to_string).collect(),
        question: None,
        now: now(),
    }
}

#[test]
fn each_state_has_its_sentence() {
    let actual = |state: State| {
        let info = service(RestartPolicy::Never, state);
        let why = diagnose(&case(&info, &["boom"]));
        (why.status, why.cause)
    };
    let says = |status: &str, because: &str| (status.to_owned(), because.to_owned());
    let expected = says(
        "starting",
        "it lives for 90 s and waits for a port to listen",
    );
    assert_eq!(actual(running()), expected);
    let ready = State {
        stage: Some(ServiceStage::Ready),
        ready_evidence: Some("GET / answered 200".to_owned()),
        signs: vec![ReadinessSignal {
            kind: SignalKind::Http,
            detail: "GET / answered 200".to_owned(),
            at: now() - Duration::from_secs(300),
        }],
        ..running()
    };
    let expected = says("ready", "it is ready for 5 min: GET / answered 200");
    assert_eq!(actual(ready.clone()), expected);
    let ill = State {
        healthy: Some(false),
        health: Some("port 3000 is no longer listening".to_owned()),
        ..ready
    };
    let expected = says(
        "degraded",
        "it lives and is not well: port 3000 is no longer listening",
    );
    assert_eq!(actual(ill), expected);
}

#[test]
fn a_question_and_a_pause_come_before_what_is_waited_for() {
    let actual = |state: State| {
        let info = service(RestartPolicy::Never, state);
        let mut case = case(&info, &[]);
        case.question = Some(ServiceQuestion {
            text: "Ok to proceed? (y)".to_owned(),
            interaction: "3".to_owned(),
            secret: false,
        });
        let why = diagnose(&case);
        (why.cause, why.hints)
    };
    let answer = "answer interaction 3: `ostler interactions answer 3 TEXT`".to_owned();
    let expected = (
        "it asks: Ok to proceed? (y)".to_owned(),
        vec![answer.clone()],
    );
    assert_eq!(actual(running()), expected);
    let ill = State {
        stage: Some(ServiceStage::Listening),
        healthy: Some(false),
        health: Some("the port moved".to_owned()),
        ..running()
    };
    let cause = "it lives and is not well: the port moved; it asks: Ok to proceed? (y)".to_owned();
    assert_eq!(actual(ill), (cause, vec![answer]));
    let paused = State {
        paused: true,
        ..running()
    };
    let (cause, hints) = actual(paused);
    assert!(
        cause.starts_with("it is paused: it was starting before"),
        "{cause}"
    );
    assert!(
        hints[0].starts_with("resume it: `ostler resume "),
        "{hints:?}"
    );
}

#[test]
fn each_end_has_its_sentence() {
    let actual = |state: State| {
        let info = service(RestartPolicy::Never, state);
        let why = diagnose(&case(&info, &["boom"]));
        (why.status, why.cause)
    };
    let says = |status: &str, because: &str| (status.to_owned(), because.to_owned());
    let backoff = State {
        phase: Phase::Starting,
        attempt: 3,
        backoff_until: Some(now() + Duration::from_secs(4)),
        last_end: Some("exit code 1".to_owned()),
        ..running()
    };
    let expected = says(
        "starting",
        "attempt 3 ended (exit code 1); the next begins in 4 s",
    );
    assert_eq!(actual(backoff), expected);
    let failed = State {
        phase: Phase::Finished,
        ending: Some(Termination::new(
            TerminationCause::Exited,
            WaitStatus::Code(1),
        )),
        ..running()
    };
    let expected = says(
        "failed",
        "it ended before it was ready: exit code 1; its last line: boom",
    );
    assert_eq!(actual(failed), expected);
    let stopped = State {
        phase: Phase::Finished,
        stopping: Some(StopReason::Requested {
            by: Principal::unix(0),
            reason: Some("enough".to_owned()),
            force: false,
            interrupt: false,
        }),
        ending: Some(Termination::new(
            TerminationCause::Stopped {
                reason: Some("enough".to_owned()),
            },
            WaitStatus::Code(0),
        )),
        ..running()
    };
    let (status, because) = actual(stopped);
    assert_eq!(status, "stopped");
    assert!(
        because.starts_with("uid:0 stopped it (enough)"),
        "{because}"
    );
}

#[test]
fn given_up_restarts_and_port_holders_are_reported() {
    let state = State {
        phase: Phase::Finished,
        attempt: 6,
        ending: Some(Termination::new(
            TerminationCause::Exited,
            WaitStatus::Code(1),
        )),
        ..running()
    };
    let info = service(RestartPolicy::OnFailure { max: 5 }, state);
    let line = "Error: listen EADDRINUSE: address already in use :::3000";
    let mut case = case(&info, &[line]);
    assert_eq!(contested_ports(&info, &case.lines), [3000]);
    case.holders = vec![(
        PortHolder {
            address: "127.0.0.1:3000".parse().expect("an address"),
            pid: Some(7),
            process: "node".to_owned(),
            command: "node other.js".to_owned(),
            execution: None,
        },
        None,
    )];
    let why = diagnose(&case);
    assert_eq!(why.status, "crash_looping");
    let actual = format!(
        "it ended 6 times, and its restart policy allows no more; the last time: exit code 1; \
         it said: {line}; port 3000, which it wants, is held by node (pid 7), \"node \
         other.js\""
    );
    assert_eq!(why.cause, actual);
    assert_eq!(why.hints.len(), 2);
}

#[test]
fn who_waits_says_for_what_and_how_that_stands() {
    let mut info = service(RestartPolicy::Never, State::default());
    info.execution = None;
    info.pending = Some("'db' to be ready".to_owned());
    let mut case = case(&info, &[]);
    let need = Dependency {
        name: "db".to_owned(),
        condition: DependencyCondition::Ready,
    };
    case.needs = vec![(need, Some(service(RestartPolicy::Never, running())))];
    let why = diagnose(&case);
    assert_eq!(why.status, "pending");
    let actual = "it waits for 'db' to be ready; it needs 'db' to be ready, which is starting: it \
                waits for a port to listen";
    assert_eq!(why.cause, actual);
}

/// Messages of programs about a port in use, and the port.
const CONFLICTS: &[(&str, u16)] = &[
    ("Port 3000 is in use, trying another one...", 3000),
    (
        "Error: listen EADDRINUSE: address already in use :::3000",
        3000,
    ),
    (
        "Error: listen EADDRINUSE: address already in use 127.0.0.1:8080",
        8080,
    ),
    ("listen tcp :8080: bind: address already in use", 8080),
    ("Port 5000 is already in use by another program", 5000),
    ("Connection in use: ('127.0.0.1', 3101)", 3101),
    (
        "[Errno 98] error while attempting to bind on address ('127.0.0.1', 8000): address already in use",
        8000,
    ),
    (
        "java.net.BindException: Address already in use: bind :8081",
        8081,
    ),
    (
        "Web server failed to start. Port 8080 was already in use.",
        8080,
    ),
    (
        "Address already in use - bind(2) for \"127.0.0.1\" port 3000 (Errno::EADDRINUSE)",
        3000,
    ),
    (
        "Failed to listen on localhost:8000 (reason: Address already in use)",
        8000,
    ),
    (
        "nginx: [emerg] bind() to 0.0.0.0:8088 failed (98: Address already in use)",
        8088,
    ),
    (
        "Failed to bind to address http://127.0.0.1:5005: address already in use.",
        5005,
    ),
    (
        "SocketException: Failed to create server socket (OS Error: Address already in use, errno = 98), address = 0.0.0.0, port = 8080",
        8080,
    ),
    (
        "** (EXIT) shutdown: failed to start: {:listen_error, :eaddrinuse} port: 4000",
        4000,
    ),
    ("error: Failed to start server. Is port 3000 in use?", 3000),
    (
        "2026-11-22 19:43:02: (network.c.537) can't bind to socket: 127.0.0.1:8091: Address already in use",
        8091,
    ),
    (
        "/gems/puma-5.6.5/lib/puma/binder.rb:341:in `initialize': Address already in use - bind(2) for \"0.0.0.0\" port 9292 (Errno::EADDRINUSE)",
        9292,
    ),
    (
        "cherrypy: Timeout('Port 8080 not free on 127.0.0.1.')",
        8080,
    ),
    (
        "Bind for 0.0.0.0:8090 failed: port is already allocated",
        8090,
    ),
    (
        "Could not create server TCP listening socket *:6379: bind: Address already in use",
        6379,
    ),
];

#[test]
fn ports_are_read_from_what_programs_say() {
    let info = service(RestartPolicy::Never, running());
    for (line, port) in CONFLICTS.iter().copied() {
        assert_eq!(contested_ports(&info, &[line.to_owned()]), [port], "{line}");
    }
}

#[test]
fn no_port_is_read_where_none_is_in_use() {
    let info = service(RestartPolicy::Never, running());
    for line in ["ready on port 3000", "99999 lines in use"] {
        assert!(
            contested_ports(&info, &[line.to_owned()]).is_empty(),
            "{line}"
        );
    }
}

#[test]
fn no_holder_is_named_without_a_conflict() {
    let mut info = service(RestartPolicy::Never, running());
    info.plan.ready.port = Some(3000);
    info.plan.ready.default_port = Some(5173);
    let lines = |all: &[&str]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
    let import = lines(&["ModuleNotFoundError: No module named 'flask'"]);
    assert_eq!(contested_ports(&info, &import), [0; 0]);
    // A conflict without a port is about the requested one.
    for line in [
        "OSError: [Errno 98] Address already in use",
        "Os { code: 98, kind: AddrInUse, message: \"Address already in use\" }",
        "java.net.BindException: Address already in use",
        "bind(descriptor:ptr:bytes:): Address already in use (errno: 98)",
        "Only one usage of each socket address is normally permitted",
        "OSError: [Errno 98] Die Adresse wird bereits verwendet",
    ] {
        assert_eq!(contested_ports(&info, &lines(&[line])), [3000], "{line}");
    }
    // Node.js prints the whole error, the port in a line of its own.
    let node = lines(&["code: 'EADDRINUSE',", "port: 8123", "}", "Node.js v20.20.2"]);
    assert_eq!(contested_ports(&info, &node), [8123]);
}

#[test]
fn the_line_that_tells_of_the_failure_is_quoted() {
    let rule = ReadyRule::default();
    for (lines, expected) in [
        (
            vec![
                "Error: Cannot find module './app'",
                "at x.js:1:1",
                "Node.js v20.20.2",
            ],
            "; it said: Error: Cannot find module './app'",
        ),
        (
            vec![
                "Traceback (most recent call last):",
                "import flask",
                "ModuleNotFoundError: No module named 'flask'",
                "the end",
            ],
            "; it said: ModuleNotFoundError: No module named 'flask'",
        ),
        (
            vec![
                "Error: listen EADDRINUSE: address already in use :::3000",
                "Node.js v20.20.2",
            ],
            "; it said: Error: listen EADDRINUSE: address already in use :::3000",
        ),
        (vec!["hello", "bye"], "; its last line: bye"),
        (vec![], ""),
    ] {
        let lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
        assert_eq!(describe_output(&rule, &lines), expected);
    }
}
