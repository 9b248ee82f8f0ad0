//! Admission of a request: the order of the checks, and their result.

use std::time::Duration;

use ostler_backend::{ContainerLaunch, DiskScope, LaunchIo, LaunchPlan, PinnedFile, Timeouts};
use ostler_model::{
    BackendName, ByteString, Caller, CapabilitySet, ContainerSpec, Environment, Io, IsolationLevel,
    IsolationRequest, IsolationSpec, Lifetime, Limits, Owner, RequestRecord, RetentionRequest,
    SandboxSpec, Spec, StdinSource, TermSize,
};

use crate::error::Error;
use crate::project;
use crate::request::{ClientKind, StartRequest, StdinRequest};
use crate::settings::Settings;

use super::isolation_level::effective_level;
use super::secrets;
use super::task_variables::TaskVariables;
use super::{
    allow_list, arguments, container, environment, program, sandbox, sandbox_bounds, service_plan,
    working_dir,
};
use crate::secret_texts::{LiteralEscaping, ResolvedSecret, SecretTexts};

/// What requests are checked against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AdmissionContext<'a> {
    pub(crate) settings: &'a Settings,
    /// What the backend can enforce.
    pub(crate) capabilities: &'a CapabilitySet,
    /// The backend's name.
    pub(crate) backend: &'a BackendName,
}

/// An admitted request.
#[derive(Debug)]
pub(crate) struct AdmittedStart {
    /// The resolved spec.
    pub(crate) spec: Spec,
    /// The parts of a launch plan besides the id, the attempt and the spec's JSON.
    pub(crate) template: LaunchTemplate,
}

/// A launch plan without what differs between executions and attempts.
#[derive(Debug, Clone)]
pub(crate) struct LaunchTemplate {
    argv: Vec<ByteString>,
    io: LaunchIo,
    timeouts: Timeouts,
    orphan_policy: ostler_model::OrphanPolicy,
    limits: ostler_model::Limits,
    sandbox: Option<SandboxSpec>,
    redact: Vec<ByteString>,
    record_input: bool,
    pinned: Vec<PinnedFile>,
    disk_scope: Option<DiskScope>,
    task: Option<TaskVariables>,
    view: CommandView,
}

/// What depends on whose file system the command sees: the host's, a sandbox's, or a container's.
#[derive(Debug, Clone)]
struct CommandView {
    program: ByteString,
    env: Vec<(ByteString, ByteString)>,
    cwd: ByteString,
    container: Option<Box<ContainerLaunch>>,
    program_fallback: Option<ByteString>,
    secret_files: Vec<(ByteString, ByteString)>,
}

/// Where a command runs.
#[derive(Debug, Clone, Copy)]
struct RunTarget<'a> {
    sandbox: Option<&'a SandboxSpec>,
    container: Option<&'a ContainerSpec>,
    owner: &'a Owner,
}

impl<'a> RunTarget<'a> {
    fn new(
        policy: &'a IsolationSpec,
        container: Option<&'a ContainerSpec>,
        owner: &'a Owner,
    ) -> Self {
        Self {
            sandbox: policy.confinement.as_ref(),
            container,
            owner,
        }
    }
}

impl CommandView {
    fn of(
        settings: &Settings,
        request: &StartRequest,
        inherit: bool,
        target: RunTarget<'_>,
        secrets: &[ResolvedSecret],
    ) -> Result<Self, Error> {
        let mut env = environment::build(settings, request, inherit);
        let Some(container) = target.container else {
            let program = find_program(settings, request, &env)?;
            add_secrets(&mut env, secrets);
            return Ok(Self {
                program,
                env,
                cwd: sandbox::effective_cwd(&request.cwd, target.sandbox),
                container: None,
                program_fallback: None,
                secret_files: Vec::new(),
            });
        };
        let mut secret_files = Vec::new();
        add_secrets(
            if container.secret_files {
                &mut secret_files
            } else {
                &mut env
            },
            secrets,
        );
        Ok(Self {
            program: request.command.program().clone(),
            env,
            cwd: container::inner_cwd(&request.cwd, container),
            container: Some(container::launch(container, target.owner)),
            program_fallback: container::program_fallback(&request.command),
            secret_files,
        })
    }
}

impl LaunchTemplate {
    /// The program's absolute path; in a container, what is searched for there.
    pub(crate) const fn program(&self) -> &ByteString {
        &self.view.program
    }

    /// Pins every attempt to these files.
    pub(crate) fn pin(&mut self, pinned: Vec<PinnedFile>) {
        self.pinned = pinned;
    }

    /// The plan of one attempt.
    pub(crate) fn plan(mut self, id: ostler_model::ExecutionId, attempt: u32) -> LaunchPlan {
        if let Some(task) = self.task {
            task.set(id, &mut self.view.env);
        }
        // No process may write to an overlay once it can be committed.
        let has_overlay = self.sandbox.as_ref().is_some_and(|it| it.overlay);
        let orphan_policy = if has_overlay {
            ostler_model::OrphanPolicy::Kill
        } else {
            self.orphan_policy
        };
        LaunchPlan {
            id,
            attempt,
            spec: Vec::new(),
            program: self.view.program,
            argv: self.argv,
            env: self.view.env,
            cwd: self.view.cwd,
            io: self.io,
            timeouts: self.timeouts,
            orphan_policy,
            limits: self.limits,
            sandbox: self.sandbox,
            redact: self.redact,
            record_input: self.record_input,
            pinned_files: self.pinned,
            report_start: true,
            lossless_reader: false,
            min_output_offset: 0,
            disk_scope: self.disk_scope,
            container: self.view.container,
            attachment: None,
            program_fallback: self.view.program_fallback,
            secret_files: self.view.secret_files,
        }
    }
}

/// The resolved parts of a request before its admission.
#[derive(Debug, Default)]
pub(crate) struct PreparedRequest {
    /// Its sandbox, at level high.
    pub(crate) sandbox: Option<SandboxSpec>,
    /// Its container, at level container.
    pub(crate) container: Option<ContainerSpec>,
    /// Its secrets, with their values.
    pub(crate) secrets: Vec<ResolvedSecret>,
}

/// Validates and resolves a request.
pub(crate) fn admit(
    context: AdmissionContext<'_>,
    caller: &Caller,
    mut request: StartRequest,
    prepared: PreparedRequest,
) -> Result<AdmittedStart, Error> {
    project::check_created(caller)?;
    arguments::check(&request)?;
    let mut record = request_record(&mut request);
    let PreparedRequest {
        sandbox: confinement,
        container,
        secrets,
    } = prepared;
    record.literals_escaped = !secrets.is_empty();
    let policy = resolve_isolation(context, &request, confinement, container.as_ref())?;
    let settings = context.settings;
    check_request(settings, &request, policy.level)?;
    let in_container = container.is_some();
    let inherit = request.options.inherit_env.unwrap_or(settings.inherit_env) && !in_container;
    let target = RunTarget::new(&policy, container.as_ref(), &caller.owner);
    let view = CommandView::of(settings, &request, inherit, target, &secrets)?;
    let grace = container::grace(settings, in_container, request.options.container.stop_grace);
    let encoding = request.options.encoding.take();
    let encoding = encoding.or_else(|| settings.default_encoding.clone());
    let encoding = arguments::check_encoding(encoding)?;
    let lifetime = resolve_lifetime(&mut request, in_container);
    let (io, launch_io) = resolve_stdio(request.stdin, request.options.pty, &lifetime);
    let plan = LaunchTemplate {
        argv: request.command.argv(),
        io: launch_io,
        timeouts: timeouts(&lifetime, grace),
        orphan_policy: lifetime.orphan_policy(),
        limits: policy.limits,
        sandbox: policy.confinement.clone(),
        redact: secret_values(&secrets),
        record_input: request.options.record_input,
        pinned: Vec::new(),
        disk_scope: request.disk_scope,
        task: TaskVariables::new(settings, request.is_task, &caller.owner),
        view,
    };
    let texts = SecretTexts::new(&secrets);
    let conceal = |text: &ByteString| texts.conceal(text);
    let spec = Spec {
        command: request.command.map_words(conceal),
        cwd: request.cwd,
        env: Environment {
            inherit,
            set: map_values(request.options.set_env, conceal),
            secrets: request.options.secrets,
        },
        io,
        lifetime: lifetime.map_texts(conceal),
        policy,
        place: place(context, container.as_ref()),
        container: container.map(Box::new),
        owner: caller.owner.clone(),
        description: conceal(&ByteString::from(request.options.description)).to_string(),
        labels: arguments::dedup(map_labels(request.options.labels, conceal)),
        encoding,
        retention: retention(settings, request.options.retention, request.client_kind),
        keep: request.options.keep,
        record_input: request.options.record_input,
        face: Some(request.client_kind.as_str().to_owned()),
        shell: request.shell,
        request: Some(Box::new(record.map_texts(conceal))),
    };
    Ok(AdmittedStart {
        spec,
        template: plan,
    })
}

/// What is checked of a request once its level is known.
fn check_request(
    settings: &Settings,
    request: &StartRequest,
    level: IsolationLevel,
) -> Result<(), Error> {
    service_plan::check_plan(request.lifetime.as_ref(), level, &settings.state_dir)?;
    sandbox_bounds::check_open_files(request, level)?;
    check_allow_lists(settings, request)?;
    Ok(working_dir::check(&request.cwd)?)
}

fn resolve_lifetime(request: &mut StartRequest, in_container: bool) -> Lifetime {
    let mut lifetime = request.lifetime.take().unwrap_or(Lifetime::Finite {
        timeout: request.options.timeout,
        idle: request.options.idle,
    });
    if in_container {
        container::allow_for_start(&mut lifetime);
    }
    lifetime
}

/// The backend that runs it.
fn place(context: AdmissionContext<'_>, container: Option<&ContainerSpec>) -> BackendName {
    match container {
        Some(_) => BackendName::container(),
        None => context.backend.clone(),
    }
}

/// The command, the probes of a service and the health check of a container must be on the settings' list and on the request's own.
fn check_allow_lists(settings: &Settings, request: &StartRequest) -> Result<(), Error> {
    for list in [&settings.allowed_commands, &request.options.allowed]
        .into_iter()
        .flatten()
    {
        allow_list::check(list, &request.command, &request.options.set_env)?;
        for probe in service_plan::unattended_commands(request) {
            allow_list::check(list, &probe, &request.options.set_env)?;
        }
    }
    Ok(())
}

fn map_labels(labels: Vec<String>, change: impl Fn(&ByteString) -> ByteString) -> Vec<String> {
    let changed = labels
        .into_iter()
        .map(ByteString::from)
        .map(|it| change(&it));
    changed.map(|it| it.to_string()).collect()
}

/// Resolves the isolation level with its limits and sandbox, against the backend's capabilities.
fn resolve_isolation(
    context: AdmissionContext<'_>,
    request: &StartRequest,
    sandbox: Option<SandboxSpec>,
    container: Option<&ContainerSpec>,
) -> Result<IsolationSpec, Error> {
    let settings = &context.settings.isolation;
    let level = effective_level(settings, request)?;
    let default_limits = match level {
        IsolationLevel::Container => context.settings.container.limits,
        IsolationLevel::Basic | IsolationLevel::Medium | IsolationLevel::High => Limits::default(),
    };
    let mut allow_degraded = request.options.sandbox.allow_degraded.clone();
    allow_degraded.extend(&settings.allow_degraded);
    let isolation_request = IsolationRequest {
        level,
        limits: request
            .options
            .limits
            .or(request.default_limits)
            .or(settings.limits)
            .or(default_limits),
        demanded: request.options.limits,
        confinement: sandbox,
        container: container.cloned(),
        degradable: allow_degraded,
    };
    Ok(ostler_model::resolve_isolation(
        isolation_request,
        context.capabilities,
    )?)
}

/// Secrets become variables, and take precedence over others.
fn add_secrets(env: &mut Vec<(ByteString, ByteString)>, secrets: &[ResolvedSecret]) {
    for ResolvedSecret { name, value } in secrets {
        env.retain(|(known, _)| known.as_bytes() != name.as_bytes());
        env.push((ByteString::from(name.as_str()), value.clone()));
    }
}

fn secret_values(secrets: &[ResolvedSecret]) -> Vec<ByteString> {
    secrets.iter().map(|secret| secret.value.clone()).collect()
}

fn map_values(
    variables: Vec<(ByteString, ByteString)>,
    change: impl Fn(&ByteString) -> ByteString,
) -> Vec<(ByteString, ByteString)> {
    let changed = variables.into_iter().map(|(name, value)| {
        let value = change(&value);
        (name, value)
    });
    changed.collect()
}

/// The record of a request, as its client made it.
fn request_record(request: &mut StartRequest) -> Box<RequestRecord> {
    let original = request.original.take();
    let mut record =
        original.unwrap_or_else(|| Box::new(RequestRecord::new(request.options.clone())));
    record.template = request.template.take();
    record.context = request.context.take();
    record.is_task = request.is_task;
    record
}

/// The launch template of a further attempt of an execution that an earlier engine admitted: its
/// client's environment is not recorded, so the settings' environment replaces it.
pub(crate) fn relaunch_template(settings: &Settings, spec: &Spec) -> Result<LaunchTemplate, Error> {
    working_dir::check(&spec.cwd)?;
    let secrets = secrets::resolve_for_relaunch(settings, spec)?;
    let texts = SecretTexts::new(&secrets);
    let escaping = LiteralEscaping::of(spec);
    let reveal = |text: &ByteString| texts.reveal(text, escaping);
    let command = spec.command.map_words(reveal);
    let mut request = StartRequest::new(command, spec.cwd.clone());
    request.options.level = Some(spec.policy.level);
    request.options.set_env = map_values(spec.env.set.clone(), reveal);
    request.options.pty = match spec.io {
        Io::Pty { size } => Some(size),
        Io::Pipes { .. } => None,
    };
    let target = RunTarget::new(&spec.policy, spec.container.as_deref(), &spec.owner);
    let view = CommandView::of(settings, &request, spec.env.inherit, target, &secrets)?;
    let io = match spec.io {
        Io::Pipes {
            stdin: StdinSource::Open,
        } => LaunchIo::Piped,
        Io::Pipes { .. } => LaunchIo::Empty,
        Io::Pty { size } => LaunchIo::Pty(size),
    };
    Ok(LaunchTemplate {
        argv: request.command.argv(),
        io,
        timeouts: timeouts(&spec.lifetime, container::stop_grace(settings, spec)),
        orphan_policy: spec.lifetime.orphan_policy(),
        limits: spec.policy.limits,
        sandbox: spec.policy.confinement.clone(),
        redact: secret_values(&secrets),
        record_input: spec.record_input,
        pinned: Vec::new(),
        disk_scope: None,
        task: None,
        view,
    })
}

fn find_program(
    settings: &Settings,
    request: &StartRequest,
    env: &[(ByteString, ByteString)],
) -> Result<ByteString, Error> {
    let path = if environment::is_restricted(settings, request) {
        None
    } else {
        environment::value(env, b"PATH")
    };
    let path = path.unwrap_or(&settings.trusted_path);
    Ok(program::find(
        request.command.program(),
        path,
        &request.cwd,
    )?)
}

fn resolve_stdio(
    stdin: StdinRequest,
    pty: Option<TermSize>,
    lifetime: &Lifetime,
) -> (Io, LaunchIo) {
    if let Some(size) = pty {
        return (Io::Pty { size }, LaunchIo::Pty(size));
    }
    let service = matches!(lifetime, Lifetime::Service { .. });
    let (stdin, launch) = match stdin {
        StdinRequest::Default if service => (StdinSource::Open, LaunchIo::Piped),
        StdinRequest::Default | StdinRequest::Empty => (StdinSource::Empty, LaunchIo::Empty),
        StdinRequest::Bytes(bytes) => {
            let given = StdinSource::Given {
                bytes: bytes.len() as u64,
            };
            (given, LaunchIo::Bytes(bytes))
        }
        StdinRequest::Open => (StdinSource::Open, LaunchIo::Piped),
    };
    (Io::Pipes { stdin }, launch)
}

const fn timeouts(lifetime: &Lifetime, grace: Duration) -> Timeouts {
    let (wall, idle) = match lifetime {
        Lifetime::Finite { timeout, idle } => (*timeout, *idle),
        Lifetime::Service { .. } => (None, None),
    };
    Timeouts { wall, idle, grace }
}

const fn retention(
    settings: &Settings,
    requested: RetentionRequest,
    client_kind: ClientKind,
) -> Option<Duration> {
    match (requested, client_kind) {
        (RetentionRequest::For(time), _) => Some(time),
        (RetentionRequest::Forever, _) => None,
        (RetentionRequest::Default, ClientKind::Command) => settings.retention.command,
        (RetentionRequest::Default, ClientKind::Shell) => settings.retention.shell,
        (RetentionRequest::Default, ClientKind::Pty) => settings.retention.pty,
        (
            RetentionRequest::Default,
            ClientKind::Core | ClientKind::Cli | ClientKind::Rest | ClientKind::Library,
        ) => settings.retention.others,
    }
}
