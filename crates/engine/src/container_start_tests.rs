//! Starts in containers, over a fake backend: what it is given, and what is refused before.

use std::sync::Arc;
use std::time::Duration;

use ostler_backend::{ContainerError, LaunchPlan};
use ostler_model::termination::WaitStatus;
use ostler_model::{
    BackendName, ByteString, Caller, Capability, Command, ErrorCode, IsolationLevel, Lifetime,
    MissingCapability, Owner, Principal, ReadyCondition, RestartPolicy, Scope, ShellKind, TermSize,
};
use ostler_policy::{RuleSet, RuleSource, RuleTier};
use ostler_testkit::fake_backend::{FakeBackend, SpawnBehavior};
use ostler_testkit::fake_containers::container_capabilities;
use tempfile::TempDir;

use crate::{
    ClientKind, ContextRequest, Engine, Error, ExecutionInfo, ListFilter, ServiceRequest, Settings,
    StartRequest, WaitFor,
};

struct Ground {
    root: TempDir,
    backend: Arc<FakeBackend>,
    engine: Engine,
}

impl Ground {
    async fn new(change: impl FnOnce(&mut Settings)) -> Self {
        Self::with(SpawnBehavior::Exit(WaitStatus::Code(0)), change).await
    }

    async fn with(behavior: SpawnBehavior, change: impl FnOnce(&mut Settings)) -> Self {
        let root = TempDir::new().expect("a directory");
        std::fs::create_dir_all(root.path().join("project/src")).expect("made");
        let state = root.path().join("state");
        let backend = FakeBackend::new(&state, move |_| behavior.clone());
        let backend = Arc::new(backend.with_containers(container_capabilities()));
        let mut settings = Settings::new(&state);
        settings.container.defaults.image = Some("work".to_owned());
        settings.base_env = vec![
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("HOME".into(), root.path().join("home").into()),
            ("OSTLER_SECRET_TOKEN".into(), "correct horse".into()),
        ];
        settings.secrets.prefixes = vec!["OSTLER_SECRET_".to_owned()];
        change(&mut settings);
        let place: Arc<dyn ostler_backend::Backend> = Arc::clone(&backend) as _;
        let engine = Engine::open(settings, place).await.expect("an engine");
        Self {
            root,
            backend,
            engine,
        }
    }

    fn cwd(&self) -> ByteString {
        ByteString::from(self.root.path().join("project"))
    }

    fn request(&self, words: &[&str]) -> StartRequest {
        let mut request = StartRequest::argv(words.iter().copied(), self.cwd());
        request.options.level = Some(IsolationLevel::Container);
        request
    }

    async fn started(&self, request: StartRequest) -> (ExecutionInfo, LaunchPlan) {
        let info = self.engine.start(&me(), request).await.expect("started");
        (info.clone(), self.backend.plan(info.id).expect("spawned"))
    }

    async fn refused(&self, request: StartRequest) -> Error {
        let error = self.engine.start(&me(), request).await;
        let error = error.expect_err("it is refused");
        assert_eq!(self.engine.list(&me(), &ListFilter::default()).len(), 0);
        error
    }
}

fn me() -> Caller {
    Caller {
        owner: Owner {
            principal: Principal::unix(7),
            project: Some("site".to_owned()),
            session: None,
            task: None,
            channel: ostler_model::RequestChannel::Local,
        },
        scope: Scope::Principal,
        projects: ostler_model::ProjectView::default(),
    }
}

fn variable<'a>(plan: &'a LaunchPlan, name: &str) -> Option<&'a ByteString> {
    let found = plan
        .env
        .iter()
        .find(|(it, _)| *it == ByteString::from(name));
    found.map(|(_, value)| value)
}

#[tokio::test]
async fn a_plan_names_its_container_and_nothing_of_the_host() {
    let ground = Ground::new(|_| ()).await;
    let mut request = ground.request(&["no-such-program", "x"]);
    request.base_env = vec![("HOME".into(), "/home/me".into()), ("A".into(), "1".into())];
    (request.options.inherit_env, request.client_kind) = (Some(true), ClientKind::Cli);
    request.options.set_env = vec![("B".into(), "2".into())];
    let (info, plan) = ground.started(request).await;
    assert_eq!(plan.program, ByteString::from("no-such-program"));
    assert_eq!(plan.cwd, ByteString::from("/workspace"));
    assert_eq!(plan.env, [("B".into(), "2".into())]);
    assert_eq!((plan.sandbox, plan.pinned_files), (None, Vec::new()));
    assert_eq!(plan.timeouts.grace, Duration::from_secs(10));
    let launch = plan.container.expect("a container");
    assert_eq!(
        (launch.principal.as_str(), launch.project.as_str()),
        ("uid:7", "site")
    );
    assert_eq!(launch.spec.image, "work");
    let limits = plan.limits;
    assert_eq!(limits.memory_bytes, Some(512 * 1024 * 1024));
    assert_eq!((limits.cpu_millis, limits.pids), (Some(500), Some(4_096)));
    assert_eq!(limits.disk_bytes, Some(1024 * 1024 * 1024));
    assert_eq!(info.spec.place, BackendName::container());
    assert_eq!(info.spec.container.as_deref(), Some(&launch.spec));
    assert_eq!(info.spec.cwd, ground.cwd());
    assert!(!info.spec.env.inherit);
    assert!(info.spec.policy.in_force.contains(&Capability::OwnRoot));
    assert_eq!(ground.backend.checked_containers(), [launch.spec]);
}

#[tokio::test]
async fn the_backend_alone_selects_the_level_and_contradictions_are_refused() {
    let ground = Ground::new(|_| ()).await;
    let with = |backend: &str, level: Option<IsolationLevel>| {
        let mut request = ground.request(&["true"]);
        request.options.backend = Some(BackendName(backend.to_owned()));
        request.options.level = level;
        request
    };
    let cases = [
        (
            with("local", Some(IsolationLevel::Container)),
            "runs nothing in containers",
        ),
        (
            with("container", Some(IsolationLevel::High)),
            "level 'container' only",
        ),
        (with("slurm", None), "'local' and 'container'"),
    ];
    for (request, expected) in cases {
        let error = ground.refused(request).await;
        assert_eq!(error.code(), ErrorCode::Value);
        assert!(error.to_string().contains(expected), "{error}");
    }
    let (info, plan) = ground.started(with("container", None)).await;
    assert_eq!(info.spec.policy.level, IsolationLevel::Container);
    assert!(plan.container.is_some());
    let (info, plan) = ground.started(with("local", None)).await;
    assert_eq!(info.spec.policy.level, IsolationLevel::Medium);
    assert!(plan.container.is_none() && info.spec.container.is_none());
}

#[tokio::test]
async fn nothing_starts_without_an_engine_or_an_image() {
    let ground = Ground::new(|_| ()).await;
    let problems = [
        (
            ContainerError::NoEngine {
                tried: vec!["/run/docker.sock (no such file)".to_owned()],
            },
            "/run/docker.sock (no such file)",
            "doctor",
        ),
        (
            ContainerError::NoImage {
                image: "work".to_owned(),
            },
            "'work'",
            "ostler image pull work",
        ),
    ];
    for (problem, message, hint) in problems {
        ground.backend.set_container_problem(Some(problem));
        let error = ground.refused(ground.request(&["true"])).await;
        assert_eq!(error.code(), ErrorCode::Environment);
        assert!(error.to_string().contains(message), "{error}");
        assert!(error.hint().is_some_and(|it| it.contains(hint)), "{error}");
    }
}

#[tokio::test]
async fn what_the_engine_does_not_enforce_is_refused_and_named() {
    let ground = Ground::new(|_| ()).await;
    let lacking = container_capabilities().without(vec![MissingCapability {
        ability: Capability::MemoryLimit,
        reason: "no cgroup".to_owned(),
    }]);
    let state = ground.root.path().join("other");
    let backend = FakeBackend::new(&state, |_| SpawnBehavior::Exit(WaitStatus::Code(0)));
    let backend = Arc::new(backend.with_containers(lacking));
    let mut settings = Settings::new(&state);
    settings.container.defaults.image = Some("work".to_owned());
    let engine = Engine::open(settings, backend).await.expect("an engine");
    let request = ground.request(&["true"]);
    let error = engine
        .start(&me(), request.clone())
        .await
        .expect_err("refused");
    assert!(
        error.to_string().contains("memory_limit (no cgroup)"),
        "{error}"
    );
    let mut degraded = request;
    degraded.options.sandbox.allow_degraded = vec![Capability::MemoryLimit];
    let info = engine.start(&me(), degraded).await.expect("started");
    assert_eq!(info.spec.policy.missing[0].ability, Capability::MemoryLimit);
}

#[tokio::test]
async fn secrets_are_variables_or_files() {
    let ground = Ground::new(|_| ()).await;
    let mut request = ground.request(&["true"]);
    request.options.secrets = vec!["TOKEN".to_owned()];
    let (_, plan) = ground.started(request.clone()).await;
    assert_eq!(variable(&plan, "TOKEN"), Some(&"correct horse".into()));
    assert_eq!(plan.secret_files, []);
    request.options.container.secret_files = Some(true);
    let (info, plan) = ground.started(request).await;
    assert_eq!(variable(&plan, "TOKEN"), None);
    assert_eq!(
        plan.secret_files,
        [("TOKEN".into(), "correct horse".into())]
    );
    assert_eq!(plan.redact, [ByteString::from("correct horse")]);
    let stored = serde_json::to_string(info.spec.as_ref()).expect("json");
    assert!(!stored.contains("correct horse"));
}

#[tokio::test]
async fn a_script_for_bash_falls_back_to_sh() {
    let ground = Ground::new(|_| ()).await;
    for (shell, fallback) in [
        ("bash", Some("sh")),
        ("/bin/bash", Some("sh")),
        ("sh", None),
    ] {
        let mut request = ground.request(&["x"]);
        request.command = Command::Shell {
            shell: shell.into(),
            script: "true".into(),
        };
        assert!(
            ground.engine.has_program(&request, "bash"),
            "it is not known here"
        );
        let (_, plan) = ground.started(request).await;
        assert_eq!(plan.program, ByteString::from(shell));
        assert_eq!(plan.program_fallback, fallback.map(ByteString::from));
    }
}

#[tokio::test]
async fn an_integrated_shell_finds_its_scripts() {
    let ground = Ground::with(SpawnBehavior::Run, |_| ()).await;
    let size = TermSize { cols: 80, rows: 24 };
    let request = ground
        .engine
        .shell_request(ShellKind::Bash, ground.cwd(), size, Vec::new());
    let mut request = request.await.expect("a request");
    request.options.level = Some(IsolationLevel::Container);
    let (_, plan) = ground.started(request).await;
    assert_eq!(variable(&plan, "TERM"), Some(&"xterm-256color".into()));
    let volumes = plan.container.expect("a container").spec.volumes;
    let scripts = volumes.first().expect("its scripts");
    assert!(!scripts.write && scripts.host == scripts.container);
    let named = plan.argv.last().expect("a file").to_string();
    assert!(named.starts_with(&scripts.container.to_string()), "{named}");
}

#[tokio::test]
async fn a_service_has_longer_to_be_ready_and_no_probe_outside() {
    let ground = Ground::with(SpawnBehavior::Run, |_| ()).await;
    let service = |ready| ServiceRequest {
        name: Some("web".to_owned()),
        ready_when: Some(ready),
        restart: RestartPolicy::Never,
        ..ServiceRequest::new(ground.request(&["server"]))
    };
    let argv = vec![ByteString::from("true")];
    for ready in [ReadyCondition::Exec { argv }, ReadyCondition::Notify] {
        let error = ground.engine.start_service(&me(), service(ready)).await;
        let error = error.expect_err("outside the container");
        assert!(error.to_string().contains("level container"), "{error}");
    }
    let started = ground
        .engine
        .start_service(&me(), service(ReadyCondition::Listening))
        .await;
    let info = started.expect("started").commit().expect("open");
    let Lifetime::Service { plan, .. } = &info.spec.lifetime else {
        panic!("a service");
    };
    assert_eq!(plan.ready.timeout(), Duration::from_secs(120));
}

#[tokio::test]
async fn a_command_that_is_started_again_keeps_its_image() {
    let ground = Ground::new(|_| ()).await;
    let mut request = ground.request(&["true"]);
    request.options.container.stop_grace = Some(Duration::from_secs(3));
    let (info, _) = ground.started(request).await;
    let id = info.id.to_string();
    let ended = ground.engine.wait(&me(), &id, &WaitFor::Exit, None).await;
    ended.expect("ended");
    let stored = &info.spec.request.as_ref().expect("stored").options;
    assert_eq!(stored.container.image, None, "the request named none");
    let settings = Settings::new(ground.root.path().join("elsewhere"));
    let template = crate::admission::relaunch_template(&settings, &info.spec);
    let plan = template.expect("it can be").plan(info.id, 2);
    let launch = plan.container.expect("a container");
    assert_eq!(Some(&launch.spec), info.spec.container.as_deref());
    assert_eq!(plan.cwd, ByteString::from("/workspace"));
    assert_eq!(plan.env, []);
    assert_eq!(plan.timeouts.grace, Duration::from_secs(3));
}

#[tokio::test]
async fn a_health_check_must_satisfy_the_allow_list() {
    let ground = Ground::new(|settings| {
        settings.allowed_commands = Some(vec!["server".to_owned()]);
    })
    .await;
    let mut request = ground.request(&["server"]);
    let (_, plan) = ground.started(request.clone()).await;
    assert_eq!(plan.env, [], "the image's search path holds");
    let check = serde_json::json!({"command": ["curl", "http://localhost"]});
    request.options.container.health = serde_json::from_value(check).expect("valid");
    let error = ground
        .engine
        .start(&me(), request)
        .await
        .expect_err("refused");
    assert!(error.to_string().contains("curl"), "{error}");
}

#[tokio::test]
async fn starts_in_a_context_share_its_directory_as_the_workspace() {
    let ground = Ground::new(|_| ()).await;
    let mut request = ContextRequest::new("demo");
    request.directory = Some(ground.cwd());
    request.options.level = Some(IsolationLevel::Container);
    let opened = ground.engine.open_context(&me(), request).await;
    let context = opened.expect("a context").0;
    let inner = ground.root.path().join("project/src");
    let mut start = StartRequest::argv(["true"], ByteString::from(inner));
    start.context = Some(context.id);
    let (info, plan) = ground.started(start).await;
    let spec = info.spec.container.as_deref().expect("a container");
    assert_eq!(spec.workspace, ground.cwd());
    assert_eq!(plan.cwd, ByteString::from("/workspace/src"));
    assert_eq!(variable(&plan, "CLAUDE_PROJECT_ID"), Some(&"demo".into()));
    let launch = plan.container.expect("a container");
    assert_eq!(launch.project, "demo");
}

const RULES: &str = r#"
    default = "allow"
    [[rule]]
    id = "ask-deploy"
    prefix = ["deploy"]
    decision = "ask"
    justification = "to be asked"
    match = ["deploy"]
    not_match = ["true"]
    [[rule]]
    id = "no-false"
    prefix = ["false"]
    decision = "deny"
    justification = "never"
    match = ["false"]
    not_match = ["true"]
"#;

#[tokio::test]
async fn a_person_is_told_the_image_and_approves_that_one() {
    let ground = Ground::new(|settings| {
        let source = RuleSource::new(RuleTier::User, "test", RULES);
        settings.policy = Some(Arc::new(RuleSet::load(&[source]).expect("rules")));
    })
    .await;
    let with_image = |image: &str| {
        let mut request = ground.request(&["deploy"]);
        request.options.container.image = Some(image.to_owned());
        request
    };
    let Error::ApprovalRequired { interaction, .. } = ground.refused(with_image("one")).await
    else {
        panic!("it is asked about");
    };
    let pending = ground.engine.interactions(&me(), true);
    let question = pending.iter().find(|it| it.id.to_string() == interaction);
    let message = &question.expect("it is open").question.message;
    assert!(
        message.contains("(in a container of image one)"),
        "{message}"
    );
    let answered = ground
        .engine
        .answer_interaction(&me(), &interaction, "yes".to_owned())
        .await;
    answered.expect("answered");
    let approved = |image| {
        let mut request = with_image(image);
        request.options.approval = Some(interaction.clone());
        request
    };
    ground.refused(approved("other")).await;
    let (info, plan) = ground.started(approved("one")).await;
    assert_eq!(plan.pinned_files, [], "its files are the image's");
    assert!(info.spec.container.is_some());
    let denied = ground.engine.start(&me(), ground.request(&["false"])).await;
    assert!(matches!(denied, Err(Error::Denied { .. })), "{denied:?}");
}

#[tokio::test]
async fn a_health_check_must_be_allowed_outright() {
    let ground = Ground::new(|settings| {
        let source = RuleSource::new(RuleTier::User, "test", RULES);
        settings.policy = Some(Arc::new(RuleSet::load(&[source]).expect("rules")));
    })
    .await;
    let mut request = ground.request(&["true"]);
    let check = serde_json::json!({"command": ["deploy"]});
    request.options.container.health = serde_json::from_value(check).expect("valid");
    let error = ground.refused(request).await;
    assert!(matches!(error, Error::Denied { .. }), "{error:?}");
}
