use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use ostler_model::{
    BackendName, ByteString, Caller, Capability, CapabilitySet, ErrorCode, IsolationLevel,
    Lifetime, LimitBackend, Limits, Owner, Principal, RestartPolicy, Scope, SessionName,
    StdinSource, TermSize,
};
use tempfile::TempDir;

use crate::admission::quota::{QueuePosition, QuotaExceeded, QuotaHolder, QuotaKey, QuotaTable};
use crate::admission::{AdmissionContext, AdmittedStart, PreparedRequest, admit};
use crate::error::Error;
use crate::request::{ClientKind, StartRequest, StdinRequest};
use crate::settings::{Quotas, Settings};
use ostler_model::RetentionRequest;

fn settings() -> Settings {
    let mut settings = Settings::new("/nowhere");
    settings.base_env = vec![
        ("PATH".into(), "/usr/bin:/bin".into()),
        ("HOME".into(), "/root".into()),
        ("LC_ALL".into(), "C.UTF-8".into()),
        ("SECRET_TOKEN".into(), "hunter2".into()),
        ("LD_PRELOAD".into(), "/evil.so".into()),
    ];
    settings
}

pub(super) fn allowing(list: &[&str]) -> Settings {
    let mut settings = settings();
    settings.allowed_commands = Some(list.iter().map(|it| (*it).to_owned()).collect());
    settings
}

fn caller() -> Caller {
    Caller {
        owner: Owner {
            principal: Principal::unix(1000),
            project: None,
            session: Some(SessionName("one".to_owned())),
            task: None,
            channel: ostler_model::RequestChannel::Local,
        },
        scope: Scope::Session,
        projects: ostler_model::ProjectView::default(),
    }
}

fn abilities() -> CapabilitySet {
    CapabilitySet {
        present: vec![
            Capability::CleanEnvironment,
            Capability::OwnGroup,
            Capability::TreeKill,
            Capability::OwnCgroup,
        ],
        missing: Vec::new(),
        backend: LimitBackend::Rlimits,
        root: false,
    }
}

pub(super) fn try_admit(
    settings: &Settings,
    request: StartRequest,
) -> Result<AdmittedStart, Error> {
    admit(
        AdmissionContext {
            settings,
            capabilities: &abilities(),
            backend: &BackendName::local(),
        },
        &caller(),
        request,
        PreparedRequest::default(),
    )
}

pub(super) fn words(words: &[&str]) -> StartRequest {
    StartRequest::argv(words.iter().copied(), "/")
}

pub(super) fn refused(settings: &Settings, request: StartRequest) -> (ErrorCode, String) {
    let error = try_admit(settings, request).expect_err("it is refused");
    (error.code(), error.to_string())
}

pub(super) fn value(request: StartRequest) -> String {
    let (code, message) = refused(&settings(), request);
    assert_eq!(code, ErrorCode::Value, "{message}");
    message
}

#[test]
fn arguments_arrive_verbatim_and_no_shell_sees_them() {
    let requested = ["echo", "$(id)", ";", "rm", "a\nb", "", "*"];
    let admitted = try_admit(&settings(), words(&requested)).expect("it is admitted");
    let plan = admitted.template.plan(ostler_model::ExecutionId::mint(), 1);
    let expected: Vec<ByteString> = requested.iter().map(|it| ByteString::from(*it)).collect();
    assert_eq!(plan.argv, expected);
    assert_eq!(plan.program, ByteString::from("/usr/bin/echo"));
}

#[test]
fn an_empty_command_is_refused() {
    assert_eq!(value(words(&[])), "the command is empty");
    assert_eq!(value(words(&[""])), "the command is empty");
}

#[test]
fn a_nul_byte_is_refused_where_it_is() {
    assert_eq!(
        value(words(&["echo", "a", "b\0c"])),
        "argument 2 contains a NUL byte"
    );
    assert_eq!(value(words(&["ec\0ho"])), "the command contains a NUL byte");
    let mut request = words(&["echo"]);
    request.options.set_env = vec![("A".into(), "x\0y".into())];
    assert_eq!(value(request), "variable A contains a NUL byte");
    let mut request = words(&["echo"]);
    request.cwd = "/tmp\0/x".into();
    assert!(value(request).contains("contains a NUL byte"));
}

#[test]
fn arguments_have_a_length_at_which_they_are_refused() {
    use super::arguments::ARGUMENT_BYTES;
    for (bytes, fits) in [
        (ARGUMENT_BYTES - 1, true),
        (ARGUMENT_BYTES, true),
        (ARGUMENT_BYTES + 1, false),
    ] {
        let word = "x".repeat(bytes);
        let tried = try_admit(&settings(), words(&["echo", &word]));
        assert_eq!(tried.is_ok(), fits, "{bytes} bytes");
    }
    let message = value(words(&["echo", &"x".repeat(10_000_000)]));
    assert_eq!(
        message,
        "argument 1 is 10000000 bytes long, at most 131071 are allowed"
    );
    let many = vec!["y".repeat(100_000); 30];
    let mut all = vec!["echo"];
    all.extend(many.iter().map(String::as_str));
    assert!(value(words(&all)).starts_with("the command with its variables is 3000"));
}

#[test]
fn a_working_directory_must_be_one() {
    let dir = TempDir::new().expect("a directory");
    let file = dir.path().join("file");
    std::fs::write(&file, "").expect("a file");
    let at = |path: &std::path::Path| {
        let mut request = words(&["echo"]);
        request.cwd = ByteString::from(path);
        value(request)
    };
    assert!(at(&dir.path().join("missing")).ends_with("no such directory"));
    assert!(at(&file).ends_with("it is not a directory"));
    assert!(at(&file.join("below")).ends_with("a part of its path is not a directory"));
    assert!(at("relative".as_ref()).ends_with("it is not absolute"));
    assert!(at("".as_ref()).ends_with("it is empty"));
}

#[test]
fn variables_have_names() {
    let set = |name: &str| {
        let mut request = words(&["echo"]);
        request.options.set_env = vec![(name.into(), "x".into())];
        value(request)
    };
    assert!(set("").contains("it is empty"));
    assert!(set("A=B").contains("it contains '='"));
    assert!(set("A\0B").contains("it contains a NUL byte"));
}

#[test]
fn durations_are_positive_and_not_endless() {
    let timed = |timeout| {
        let mut request = words(&["echo"]);
        request.options.timeout = Some(timeout);
        request
    };
    assert!(value(timed(Duration::ZERO)).starts_with("timeout is 0 s; more than 0"));
    assert!(value(timed(Duration::MAX)).starts_with("timeout is"));
    assert!(try_admit(&settings(), timed(Duration::from_millis(1))).is_ok());
    let mut request = words(&["echo"]);
    request.lifetime = Some(Lifetime::service(RestartPolicy::Never));
    request.options.timeout = Some(Duration::from_secs(1));
    assert_eq!(value(request), "timeout: a service has none");
}

#[test]
fn labels_are_checked_and_kept_once() {
    let labelled = |labels: &[&str]| {
        let mut request = words(&["echo"]);
        request.options.labels = labels.iter().map(|it| (*it).to_owned()).collect();
        request
    };
    assert_eq!(value(labelled(&["a", ""])), "label 2: it is empty");
    assert!(value(labelled(&["a\nb"])).contains("control character"));
    assert!(value(labelled(&["x"; 65])).starts_with("65 labels"));
    let admitted = try_admit(&settings(), labelled(&["b", "a", "b"])).expect("admitted");
    assert_eq!(admitted.spec.labels, ["b", "a"]);
}

#[test]
fn a_terminal_has_cells_and_limits_are_positive() {
    let mut request = words(&["echo"]);
    request.options.pty = Some(TermSize { cols: 0, rows: 24 });
    assert!(value(request).contains("columns and rows are from 1 to 1000"));
    let mut request = words(&["echo"]);
    request.options.pty = Some(TermSize {
        cols: 80,
        rows: 1_001,
    });
    assert!(value(request).contains("columns and rows are from 1 to 1000"));
    let mut request = words(&["echo"]);
    request.options.limits.pids = Some(0);
    assert!(value(request).contains("at least 1"));
    for text in [
        "cpu_percent",
        "memory_bytes",
        "disk_bytes",
        "run_ms",
        "idle_ms",
    ] {
        let mut request = words(&["true"]);
        request.options.alerts =
            serde_json::from_value(serde_json::json!({ text: 0 })).expect("thresholds");
        assert!(value(request).contains("at least 1"), "{text}");
    }
}

#[test]
fn a_program_is_found_in_the_commands_own_path() {
    let dir = TempDir::new().expect("a directory");
    let tool = dir.path().join("ostler-tool");
    std::fs::write(&tool, "#!/bin/sh\n").expect("a file");
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).expect("mode");
    let mut request = words(&["ostler-tool"]);
    request.options.set_env = vec![("PATH".into(), ByteString::from(dir.path()))];
    let admitted = try_admit(&settings(), request).expect("found in the request's PATH");
    let plan = admitted.template.plan(ostler_model::ExecutionId::mint(), 1);
    assert_eq!(plan.program, ByteString::from(tool.as_path()));
    let mut request = words(&["./ostler-tool"]);
    request.cwd = ByteString::from(dir.path());
    assert!(try_admit(&settings(), request).is_ok());
}

#[test]
fn a_missing_program_is_an_execution_error_with_a_suggestion() {
    let error = try_admit(&settings(), words(&["ecoh", "x"])).expect_err("no such program");
    assert_eq!(error.code(), ErrorCode::CommandExecution);
    assert_eq!(error.to_string(), "ecoh: command not found");
    assert_eq!(error.hint().as_deref(), Some("did you mean 'echo'?"));
    let (code, message) = refused(&settings(), words(&["/no/such/program"]));
    assert_eq!(
        (code, message.as_str()),
        (
            ErrorCode::CommandExecution,
            "/no/such/program: no such file"
        )
    );
    let error = try_admit(&settings(), words(&["echo hello"])).expect_err("one word");
    assert!(error.hint().is_some_and(|it| it.contains("separate words")));
}

#[test]
fn a_file_that_may_not_be_executed_is_a_permission_error() {
    let dir = TempDir::new().expect("a directory");
    let file = dir.path().join("plain");
    std::fs::write(&file, "x").expect("a file");
    let path = file.to_string_lossy().into_owned();
    let (code, message) = refused(&settings(), words(&[&path]));
    assert_eq!(code, ErrorCode::Permission);
    assert!(message.ends_with("permission denied"));
    let (code, message) = refused(&settings(), words(&["/usr/bin"]));
    assert_eq!(code, ErrorCode::CommandExecution);
    assert!(message.ends_with("is a directory"));
}

#[test]
fn only_the_base_of_the_proxys_environment_is_kept() {
    let mut request = words(&["echo"]);
    request.options.set_env = vec![("MINE".into(), "1".into()), ("HOME".into(), "/h".into())];
    let admitted = try_admit(&settings(), request).expect("admitted");
    let env = admitted
        .template
        .plan(ostler_model::ExecutionId::mint(), 1)
        .env;
    let get =
        |name: &str| super::environment::value(&env, name.as_bytes()).map(ToString::to_string);
    assert_eq!(get("PATH").as_deref(), Some("/usr/bin:/bin"));
    assert_eq!(get("LC_ALL").as_deref(), Some("C.UTF-8"));
    assert_eq!(get("HOME").as_deref(), Some("/h"));
    assert_eq!(get("MINE").as_deref(), Some("1"));
    assert_eq!(get("SECRET_TOKEN"), None);
}

#[test]
fn the_whole_environment_is_passed_on_when_requested() {
    let mut request = words(&["echo"]);
    request.options.inherit_env = Some(true);
    let admitted = try_admit(&settings(), request).expect("admitted");
    let env = admitted
        .template
        .plan(ostler_model::ExecutionId::mint(), 1)
        .env;
    assert!(super::environment::value(&env, b"SECRET_TOKEN").is_some());
}

#[test]
fn an_unknown_encoding_is_refused_with_the_nearest() {
    let mut request = words(&["echo"]);
    request.options.encoding = Some("gkb".to_owned());
    let error = try_admit(&settings(), request).expect_err("no encoding");
    assert_eq!(error.code(), ErrorCode::Value);
    assert_eq!(error.hint().as_deref(), Some("did you mean 'gbk'?"));
}

#[test]
fn levels_resolve_to_what_is_in_force_and_missing() {
    let mut request = words(&["echo"]);
    request.options.level = Some(IsolationLevel::Basic);
    let policy = try_admit(&settings(), request)
        .expect("admitted")
        .spec
        .policy;
    assert_eq!(policy.limits, Limits::default());
    assert_eq!(policy.missing, []);
    let policy = try_admit(&settings(), words(&["echo"]))
        .expect("admitted")
        .spec
        .policy;
    assert_eq!(policy.limits.pids, Some(4096));
    assert!(policy.in_force.contains(&Capability::OwnCgroup));
    assert_eq!(policy.missing[0].ability, Capability::PidsLimit);
}

#[test]
fn a_level_that_cannot_be_had_is_refused_and_names_what_is_missing() {
    let mut request = words(&["echo"]);
    request.options.level = Some(IsolationLevel::High);
    let error = try_admit(&settings(), request).expect_err("nothing of it is there");
    assert_eq!(error.code(), ErrorCode::Security);
    for ability in ["namespaces", "landlock", "seccomp"] {
        assert!(error.to_string().contains(ability), "{error}");
    }
    assert!(error.hint().is_some_and(|it| it.contains("doctor")));
}

#[test]
fn what_may_be_missing_is_named_and_then_said() {
    let mut request = words(&["echo"]);
    request.options.level = Some(IsolationLevel::High);
    request.options.sandbox.allow_degraded = Capability::ALL.to_vec();
    let admitted = try_admit(&settings(), request).expect("admitted");
    let policy = &admitted.spec.policy;
    let sandbox = policy.confinement.as_ref().expect("a sandbox all the same");
    assert!(sandbox.without.contains(&Capability::Landlock));
    assert!(
        policy
            .missing
            .iter()
            .any(|it| it.ability == Capability::Landlock)
    );
}

#[test]
fn input_is_empty_for_finite_and_open_for_services() {
    let stdin = |lifetime: Option<Lifetime>, stdin| {
        let mut request = words(&["echo"]);
        request.lifetime = lifetime;
        request.stdin = stdin;
        match try_admit(&settings(), request).expect("admitted").spec.io {
            ostler_model::Io::Pipes { stdin } => stdin,
            ostler_model::Io::Pty { .. } => panic!("no terminal was asked for"),
        }
    };
    let service = Some(Lifetime::service(RestartPolicy::Never));
    assert_eq!(stdin(None, StdinRequest::Default), StdinSource::Empty);
    assert_eq!(stdin(service, StdinRequest::Default), StdinSource::Open);
    let given = StdinRequest::Bytes(vec![1, 2, 3]);
    assert_eq!(stdin(None, given), StdinSource::Given { bytes: 3 });
}

#[test]
fn retention_is_the_interfaces_default_unless_requested() {
    let kept = |face, retention| {
        let mut request = words(&["echo"]);
        request.client_kind = face;
        request.options.retention = retention;
        try_admit(&settings(), request)
            .expect("admitted")
            .spec
            .retention
    };
    let seconds = |s| Some(Duration::from_secs(s));
    assert_eq!(
        kept(ClientKind::Command, RetentionRequest::Default),
        seconds(3600)
    );
    assert_eq!(
        kept(ClientKind::Shell, RetentionRequest::Default),
        seconds(86_400)
    );
    assert_eq!(
        kept(ClientKind::Pty, RetentionRequest::Default),
        seconds(300)
    );
    assert_eq!(
        kept(ClientKind::Cli, RetentionRequest::Default),
        seconds(86_400)
    );
    assert_eq!(kept(ClientKind::Cli, RetentionRequest::Forever), None);
    let requested = RetentionRequest::For(Duration::from_secs(7));
    assert_eq!(kept(ClientKind::Command, requested), seconds(7));
}

#[test]
fn a_refusal_at_the_quota_lists_the_holders() {
    let quotas = Quotas {
        finite_per_session: 2,
        others_per_principal: 1,
    };
    let spec = try_admit(&settings(), words(&["echo"]))
        .expect("admitted")
        .spec;
    let share = QuotaKey::of(&spec, &spec.owner);
    assert_eq!(
        QuotaKey::for_request(&words(&["echo"]), &spec.owner),
        share,
        "a request counts where its execution does"
    );
    let mut places = QuotaTable::new(quotas);
    for _ in 0..2 {
        let QueuePosition::Granted(ticket) = places.enter_queue(&share, None) else {
            panic!("a place is free");
        };
        assert!(places.assign(&share, ticket, ostler_model::ExecutionId::mint()));
    }
    assert!(matches!(
        places.enter_queue(&share, None),
        QueuePosition::Waiting(_)
    ));
    let holders = places.holders(&share);
    let error = crate::Error::Quota(Box::new(QuotaExceeded {
        running: holders.len() + 1,
        limit: places.limit(&share),
        kind: share.kind(),
        holders: vec![QuotaHolder {
            id: holders[0],
            command: "sleep 300".to_owned(),
        }],
        waited: std::time::Duration::from_millis(3_210),
        queue_full: false,
    }));
    assert_eq!(error.code(), ErrorCode::QuotaExceeded);
    let actual = format!(
        "3 of 2 finite executions run already: {} (sleep 300) and 2 more; none of them ended \
         within 3.2 s",
        holders[0].short()
    );
    assert_eq!(error.to_string(), actual);
    let mut owner = spec.owner.clone();
    owner.session = None;
    assert_ne!(QuotaKey::of(&spec, &owner), share);
}
