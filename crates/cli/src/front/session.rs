//! One client's session, over as many daemons as it takes.

use std::time::{Duration, Instant};

use ostler_model::{ErrorCode, Text};

use super::control::Control;
use super::streams::Streams;
use crate::config::{Environment, FrontPolicy};
use crate::daemon::{Launch, front_session, reach};
use crate::error::{CommandError, Outcome};
use crate::hello::{Bye, Hello, Kind, Note, PROTOCOL, Resume};
use crate::paths::Places;

/// More daemons than this dying within [`PATIENCE`] under one front mean that something is
/// wrong that another one will not cure.
const DEATHS: usize = 5;
const PATIENCE: Duration = Duration::from_secs(10);

/// What a front was started with.
#[derive(Debug)]
pub(crate) struct Front {
    /// `--session`: the session is kept.
    pub(crate) session: Option<String>,
    /// The tools to offer.
    pub(crate) tools: Vec<String>,
    /// What holds for this front besides the daemon's settings.
    pub(crate) policy: FrontPolicy,
    /// Where the daemon is.
    pub(crate) places: Places,
    /// How one is started.
    pub(crate) launch: Launch,
}

/// How a daemon left us.
enum Left {
    Bye(Bye),
    Died,
}

/// Serves the client on our standard streams until it goes away.
///
/// # Errors
/// When no daemon can be reached, refuses us, or daemons keep dying.
pub(crate) fn run(front: &Front, env: &Environment) -> Outcome {
    let streams = Streams::open().map_err(|error| {
        CommandError::new(
            ErrorCode::Initialization,
            format!("standard input and output cannot be used: {error}"),
        )
    })?;
    let mut hello = hello(front, env)?;
    let mut deaths: Vec<Instant> = Vec::new();
    loop {
        match attach(front, &mut hello, &streams)? {
            Left::Bye(Bye::Closed) => break,
            Left::Bye(Bye::Shutdown) => streams
                .wait_for_client()
                .map_err(|error| CommandError::new(ErrorCode::Internal, error.to_string()))?,
            Left::Died => {
                deaths.retain(|death| death.elapsed() < PATIENCE);
                deaths.push(Instant::now());
                if deaths.len() > DEATHS {
                    return Err(CommandError::daemon("daemons keep dying")
                        .with_hint(format!("the log is {}", front.places.log().display())));
                }
            }
        }
    }
    streams.finish();
    Ok(0)
}

/// Hands the streams over and sleeps until the daemon leaves, whichever way. What it tells
/// of the conversation is kept in the hello for the next one.
fn attach(front: &Front, hello: &mut Hello, streams: &Streams) -> Result<Left, CommandError> {
    let stream = reach(&front.places.front_socket(), Some(&front.launch))?;
    let Some(mut control) = Control::open(stream, hello, streams.fds())? else {
        return Ok(Left::Died);
    };
    let resume = hello.resume.get_or_insert_default();
    while let Some(note) = control.note() {
        match note {
            Note::Initialize(request) => resume.initialize = Some(request),
            Note::Torn(torn) => resume.torn = torn,
            Note::Bye(bye) => return Ok(Left::Bye(bye)),
        }
    }
    Ok(Left::Died)
}

fn hello(front: &Front, env: &Environment) -> Result<Hello, CommandError> {
    let cwd = std::env::current_dir().map_err(|error| {
        CommandError::new(
            ErrorCode::Environment,
            format!("the working directory is gone: {error}"),
        )
    })?;
    let pid = std::process::id();
    let own = || {
        front_session(pid).ok_or_else(|| {
            CommandError::new(ErrorCode::Environment, "/proc does not show this process")
        })
    };
    Ok(Hello {
        protocol: PROTOCOL,
        kind: Kind::Mcp,
        session: front.session.clone().map_or_else(own, Ok)?,
        kept: front.session.is_some(),
        cwd: Text::from(cwd),
        env: env.to_texts(),
        tools: front.tools.clone(),
        policy: front.policy.clone(),
        pid,
        resume: None::<Resume>,
    })
}
