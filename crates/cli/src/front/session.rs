//! One client's session, over as many daemons as it takes.

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use ostler_model::{ErrorCode, Text};
use rustix::fs::{MemfdFlags, memfd_create};

use super::control::Control;
use super::streams::Streams;
use crate::config::{Environment, FrontPolicy};
use crate::daemon::{Launch, front_session, reach};
use crate::error::{CommandError, Outcome};
use crate::hello::{Bye, Hello, Kind, Note, PROTOCOL};
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
    /// It served us, and died.
    Died,
    /// It hung up before it took our streams: it was about to end, or died of our hello.
    HungUp,
}

/// When to give up on daemons.
#[derive(Debug, Default)]
struct Failures {
    deaths: Vec<Instant>,
    /// Since when none has taken our streams.
    hung_up: Option<Instant>,
}

impl Failures {
    /// Whether it makes sense to go on.
    fn goes_on(&mut self, left: &Left, now: Instant) -> bool {
        match left {
            Left::Bye(_) => *self = Self::default(),
            Left::HungUp => {
                let since = *self.hung_up.get_or_insert(now);
                return now.duration_since(since) < PATIENCE;
            }
            Left::Died => {
                self.hung_up = None;
                self.deaths
                    .retain(|death| now.duration_since(*death) < PATIENCE);
                self.deaths.push(now);
            }
        }
        self.deaths.len() <= DEATHS
    }
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
    let log = memfd_create("ostler-mcp-log", MemfdFlags::CLOEXEC).map_err(|error| {
        CommandError::new(
            ErrorCode::Environment,
            format!("no memory file can be made for the connection's log: {error}"),
        )
    })?;
    let hello = hello(front, env)?;
    let mut failures = Failures::default();
    loop {
        let left = attach(front, &hello, (&streams, &log))?;
        if !failures.goes_on(&left, Instant::now()) {
            return Err(CommandError::daemon("daemons keep dying")
                .with_hint(format!("the log is {}", front.places.log().display())));
        }
        match left {
            Left::Bye(Bye::Closed) => break,
            Left::Bye(Bye::Shutdown) => streams
                .wait_for_client()
                .map_err(|error| CommandError::new(ErrorCode::Internal, error.to_string()))?,
            Left::Died | Left::HungUp => {}
        }
    }
    streams.finish();
    Ok(0)
}

/// Hands the streams and their log over and sleeps until the daemon leaves, whichever way.
fn attach(
    front: &Front,
    hello: &Hello,
    (streams, log): (&Streams, &OwnedFd),
) -> Result<Left, CommandError> {
    let stream = reach(&front.places.front_socket(), Some(&front.launch))?;
    let [input, output] = streams.fds();
    let Some(mut control) = Control::open(stream, hello, [input, output, log.as_fd()])? else {
        return Ok(Left::HungUp);
    };
    Ok(match control.note() {
        Some(Note::Bye(bye)) => Left::Bye(bye),
        None => Left::Died,
    })
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
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_deaths_are_borne_and_many_at_once_are_not() {
        let start = Instant::now();
        let mut failures = Failures::default();
        for _ in 0..DEATHS {
            assert!(failures.goes_on(&Left::Died, start));
            // One that is about to end hangs up many times.
            for _ in 0..100 {
                assert!(failures.goes_on(&Left::HungUp, start));
            }
        }
        assert!(!failures.goes_on(&Left::Died, start));
        assert!(failures.goes_on(&Left::Died, start + PATIENCE));
        let mut failures = Failures::default();
        assert!(failures.goes_on(&Left::HungUp, start));
        assert!(!failures.goes_on(&Left::HungUp, start + PATIENCE));
    }
}
