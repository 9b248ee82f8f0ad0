//! The order of the checks, and what comes out of them.

use std::time::Duration;

use ostler_model::{
    Abilities, Asked, Caller, Confinement, Environment, Io, IsolationLevel, Lifetime, PlaceName,
    Policy, Spec, Stdin, TermSize, Text,
};
use ostler_process::{Clocks, LaunchIo, LaunchPlan, PinnedFile};

use crate::error::Error;
use crate::request::{Face, RetentionRequest, StartRequest, StdinRequest};
use crate::settings::Settings;

use super::secrets::{self, Secret};
use super::{allow, arguments, confinement, directory, environment, program, service};

/// What requests are held to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules<'a> {
    /// The configuration.
    pub(crate) settings: &'a Settings,
    /// What the place can enforce.
    pub(crate) abilities: &'a Abilities,
    /// The place's name.
    pub(crate) place: &'a PlaceName,
}

/// A request that may run.
#[derive(Debug)]
pub(crate) struct Admitted {
    /// What was asked, resolved.
    pub(crate) spec: Spec,
    /// Everything a launch needs but its id, its attempt and the spec's JSON.
    pub(crate) plan: Draft,
}

/// A launch plan without what differs between executions and attempts.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    program: Text,
    argv: Vec<Text>,
    env: Vec<(Text, Text)>,
    cwd: Text,
    io: LaunchIo,
    clocks: Clocks,
    leftovers: ostler_model::Leftovers,
    limits: ostler_model::Limits,
    confinement: Option<Confinement>,
    redact: Vec<Text>,
    pinned: Vec<PinnedFile>,
}

impl Draft {
    /// The program's absolute path.
    pub(crate) const fn program(&self) -> &Text {
        &self.program
    }

    /// Holds every attempt to these files.
    pub(crate) fn pin(&mut self, pinned: Vec<PinnedFile>) {
        self.pinned = pinned;
    }

    /// The plan of one attempt.
    pub(crate) fn plan(self, id: ostler_model::ExecutionId, attempt: u32) -> LaunchPlan {
        // Nobody may be left who writes to an overlay once it can be committed.
        let keeps_apart = self.confinement.as_ref().is_some_and(|it| it.overlay);
        let leftovers = if keeps_apart {
            ostler_model::Leftovers::Kill
        } else {
            self.leftovers
        };
        LaunchPlan {
            id,
            attempt,
            spec: Vec::new(),
            program: self.program,
            argv: self.argv,
            env: self.env,
            cwd: self.cwd,
            io: self.io,
            clocks: self.clocks,
            leftovers,
            limits: self.limits,
            confinement: self.confinement,
            redact: self.redact,
            pinned: self.pinned,
            report_start: true,
            lossless_reader: false,
            output_from: 0,
        }
    }
}

/// What was made of a request before it is admitted.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// Its walls, at level high.
    pub(crate) confinement: Option<Confinement>,
    /// Its secrets, with their values.
    pub(crate) secrets: Vec<Secret>,
}

/// Checks a request and resolves it.
pub(crate) fn admit(
    rules: Rules<'_>,
    caller: &Caller,
    request: StartRequest,
    prepared: Prepared,
) -> Result<Admitted, Error> {
    arguments::check(&request)?;
    let Prepared {
        confinement,
        secrets,
    } = prepared;
    let policy = walls(rules, &request, confinement)?;
    let settings = rules.settings;
    service::check(request.lifetime.as_ref(), policy.level, &settings.state_dir)?;
    for list in [&settings.allowed_commands, &request.allowed]
        .into_iter()
        .flatten()
    {
        allow::check(list, &request.command, &request.set_env)?;
        for probe in service::probes(request.lifetime.as_ref()) {
            allow::check(list, &probe, &request.set_env)?;
        }
    }
    directory::check(&request.cwd)?;
    let inherit = request.inherit_env.unwrap_or(settings.inherit_env);
    let mut env = environment::build(settings, &request, inherit);
    let program = find_program(settings, &request, &env)?;
    hand_over(&mut env, &secrets);
    let encoding = arguments::encoding(request.encoding.or(settings.default_encoding.clone()))?;
    let lifetime = request.lifetime.unwrap_or(Lifetime::Finite {
        timeout: request.timeout,
        idle: request.idle,
    });
    let (io, launch_io) = streams(request.stdin, request.pty, &lifetime);
    let plan = Draft {
        program,
        argv: request.command.argv(),
        env,
        cwd: confinement::directory(&request.cwd, policy.confinement.as_ref()),
        io: launch_io,
        clocks: clocks(&lifetime, settings.grace),
        leftovers: lifetime.leftovers(),
        limits: policy.limits,
        confinement: policy.confinement.clone(),
        redact: values(&secrets),
        pinned: Vec::new(),
    };
    let conceal = |text: &Text| secrets::conceal(text, &secrets);
    let spec = Spec {
        command: secrets::in_command(&request.command, conceal),
        cwd: request.cwd,
        env: Environment {
            inherit,
            set: in_values(request.set_env, conceal),
            secrets: request.secrets,
        },
        io,
        lifetime,
        policy,
        place: rules.place.clone(),
        owner: caller.owner.clone(),
        description: conceal(&Text::from(request.description)).to_string(),
        labels: arguments::distinct(in_labels(request.labels, conceal)),
        encoding,
        retention: retention(settings, request.retention, request.face),
        keep: request.keep,
        face: Some(request.face.as_str().to_owned()),
        shell: request.shell,
    };
    Ok(Admitted { spec, plan })
}

fn in_labels(labels: Vec<String>, change: impl Fn(&Text) -> Text) -> Vec<String> {
    let changed = labels.into_iter().map(Text::from).map(|it| change(&it));
    changed.map(|it| it.to_string()).collect()
}

/// The level with its limits and walls, against what the place can do.
fn walls(
    rules: Rules<'_>,
    request: &StartRequest,
    confinement: Option<Confinement>,
) -> Result<Policy, Error> {
    let settings = &rules.settings.isolation;
    let level = confinement::level(settings, request)?;
    if level == IsolationLevel::Container {
        return Err(Error::LevelNotBuilt { level });
    }
    let mut degradable = request.confine.allow_degraded.clone();
    degradable.extend(&settings.allow_degraded);
    let asked = Asked {
        level,
        limits: request.limits.or(settings.limits),
        demanded: request.limits,
        confinement,
        degradable,
    };
    Ok(ostler_model::resolve(asked, rules.abilities)?)
}

/// Secrets are variables like others, and win over them.
fn hand_over(env: &mut Vec<(Text, Text)>, secrets: &[Secret]) {
    for Secret { name, value } in secrets {
        env.retain(|(known, _)| known.as_bytes() != name.as_bytes());
        env.push((Text::from(name.as_str()), value.clone()));
    }
}

fn values(secrets: &[Secret]) -> Vec<Text> {
    secrets.iter().map(|secret| secret.value.clone()).collect()
}

fn in_values(variables: Vec<(Text, Text)>, change: impl Fn(&Text) -> Text) -> Vec<(Text, Text)> {
    let changed = variables.into_iter().map(|(name, value)| {
        let value = change(&value);
        (name, value)
    });
    changed.collect()
}

/// The plan of a further attempt of an execution that an earlier engine admitted: its front's
/// environment is gone, so the settings' stands in.
pub(crate) fn again(settings: &Settings, spec: &Spec) -> Result<Draft, Error> {
    directory::check(&spec.cwd)?;
    let secrets = secrets::again(settings, spec)?;
    let reveal = |text: &Text| secrets::reveal(text, &secrets);
    let command = secrets::in_command(&spec.command, reveal);
    let mut request = StartRequest::new(command, spec.cwd.clone());
    request.level = Some(spec.policy.level);
    request.set_env = in_values(spec.env.set.clone(), reveal);
    request.pty = match spec.io {
        Io::Pty { size } => Some(size),
        Io::Pipes { .. } => None,
    };
    let mut env = environment::build(settings, &request, spec.env.inherit);
    let program = find_program(settings, &request, &env)?;
    hand_over(&mut env, &secrets);
    let io = match spec.io {
        Io::Pipes { stdin: Stdin::Open } => LaunchIo::Open,
        Io::Pipes { .. } => LaunchIo::Empty,
        Io::Pty { size } => LaunchIo::Pty(size),
    };
    Ok(Draft {
        program,
        argv: request.command.argv(),
        env,
        cwd: confinement::directory(&spec.cwd, spec.policy.confinement.as_ref()),
        io,
        clocks: clocks(&spec.lifetime, settings.grace),
        leftovers: spec.lifetime.leftovers(),
        limits: spec.policy.limits,
        confinement: spec.policy.confinement.clone(),
        redact: values(&secrets),
        pinned: Vec::new(),
    })
}

fn find_program(
    settings: &Settings,
    request: &StartRequest,
    env: &[(Text, Text)],
) -> Result<Text, Error> {
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

fn streams(stdin: StdinRequest, pty: Option<TermSize>, lifetime: &Lifetime) -> (Io, LaunchIo) {
    if let Some(size) = pty {
        return (Io::Pty { size }, LaunchIo::Pty(size));
    }
    let service = matches!(lifetime, Lifetime::Service { .. });
    let (stdin, launch) = match stdin {
        StdinRequest::Default if service => (Stdin::Open, LaunchIo::Open),
        StdinRequest::Default | StdinRequest::Empty => (Stdin::Empty, LaunchIo::Empty),
        StdinRequest::Given(bytes) => {
            let given = Stdin::Given {
                bytes: bytes.len() as u64,
            };
            (given, LaunchIo::Given(bytes))
        }
        StdinRequest::Open => (Stdin::Open, LaunchIo::Open),
    };
    (Io::Pipes { stdin }, launch)
}

const fn clocks(lifetime: &Lifetime, grace: Duration) -> Clocks {
    let (wall, idle) = match lifetime {
        Lifetime::Finite { timeout, idle } => (*timeout, *idle),
        Lifetime::Service { .. } => (None, None),
    };
    Clocks { wall, idle, grace }
}

const fn retention(settings: &Settings, asked: RetentionRequest, face: Face) -> Option<Duration> {
    match (asked, face) {
        (RetentionRequest::For(time), _) => Some(time),
        (RetentionRequest::Forever, _) => None,
        (RetentionRequest::Default, Face::Command) => settings.retention.command,
        (RetentionRequest::Default, Face::Shell) => settings.retention.shell,
        (RetentionRequest::Default, Face::Pty) => settings.retention.pty,
        (RetentionRequest::Default, Face::Core | Face::Cli | Face::Rest | Face::Library) => {
            settings.retention.others
        }
    }
}
