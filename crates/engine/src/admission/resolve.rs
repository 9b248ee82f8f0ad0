//! The order of the checks, and what comes out of them.

use std::time::Duration;

use ostler_model::{
    Abilities, Caller, Environment, Io, Lifetime, PlaceName, Spec, Stdin, TermSize, Text,
};
use ostler_process::{Clocks, LaunchIo, LaunchPlan};

use crate::error::Error;
use crate::request::{Face, RetentionRequest, StartRequest, StdinRequest};
use crate::settings::Settings;

use super::{allow, arguments, directory, environment, isolation, program};

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
}

impl Draft {
    /// The plan of one attempt.
    pub(crate) fn plan(self, id: ostler_model::ExecutionId, attempt: u32) -> LaunchPlan {
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
            leftovers: self.leftovers,
            limits: self.limits,
            redact: Vec::new(),
            report_start: true,
        }
    }
}

/// Checks a request and resolves it.
pub(crate) fn admit(
    rules: Rules<'_>,
    caller: &Caller,
    request: StartRequest,
) -> Result<Admitted, Error> {
    arguments::check(&request)?;
    let policy = isolation::resolve(request.level, request.limits, rules.abilities)?;
    let settings = rules.settings;
    for list in [&settings.allowed_commands, &request.allowed]
        .into_iter()
        .flatten()
    {
        allow::check(list, &request.command, &request.set_env)?;
    }
    directory::check(&request.cwd)?;
    let inherit = request.inherit_env.unwrap_or(settings.inherit_env);
    let env = environment::build(settings, &request, inherit);
    let program = find_program(settings, &request, &env)?;
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
        cwd: request.cwd.clone(),
        io: launch_io,
        clocks: clocks(&lifetime, settings.grace),
        leftovers: lifetime.leftovers(),
        limits: policy.limits,
    };
    let spec = Spec {
        command: request.command,
        cwd: request.cwd,
        env: Environment {
            inherit,
            set: request.set_env,
            secrets: Vec::new(),
        },
        io,
        lifetime,
        policy,
        place: rules.place.clone(),
        owner: caller.owner.clone(),
        description: request.description,
        labels: arguments::distinct(request.labels),
        encoding,
        retention: retention(settings, request.retention, request.face),
        keep: request.keep,
        face: Some(request.face.as_str().to_owned()),
        shell: request.shell,
    };
    Ok(Admitted { spec, plan })
}

/// The plan of a further attempt of an execution that an earlier engine admitted: its front's
/// environment is gone, so the settings' stands in.
pub(crate) fn again(settings: &Settings, spec: &Spec) -> Result<Draft, Error> {
    directory::check(&spec.cwd)?;
    let mut request = StartRequest::new(spec.command.clone(), spec.cwd.clone());
    request.set_env.clone_from(&spec.env.set);
    request.pty = match spec.io {
        Io::Pty { size } => Some(size),
        Io::Pipes { .. } => None,
    };
    let env = environment::build(settings, &request, spec.env.inherit);
    let program = find_program(settings, &request, &env)?;
    let io = match spec.io {
        Io::Pipes { stdin: Stdin::Open } => LaunchIo::Open,
        Io::Pipes { .. } => LaunchIo::Empty,
        Io::Pty { size } => LaunchIo::Pty(size),
    };
    Ok(Draft {
        program,
        argv: spec.command.argv(),
        env,
        cwd: spec.cwd.clone(),
        io,
        clocks: clocks(&spec.lifetime, settings.grace),
        leftovers: spec.lifetime.leftovers(),
        limits: spec.policy.limits,
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
