//! One client's session, over as many daemons as it takes.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use ostler_model::{ErrorCode, Text};
use ostler_server::mcp::Connection;
use rustix::fs::{MemfdFlags, memfd_create};

use super::control::Control;
use super::streams::{Presence, Streams};
use crate::config::{Environment, FrontPolicy};
use crate::daemon::{Launch, front_session, reach};
use crate::error::{CommandError, Outcome};
use crate::hello::{Bye, Hello, Kind, Note, PROTOCOL};
use crate::paths::Places;
use crate::setup::block_on;

/// From so many daemons on that died within [`PATIENCE`] under one front, it pauses before it
/// starts another: something is wrong that another one may not cure.
const DEATHS: usize = 5;
/// The time in which deaths are counted, for how long a daemon may hang up before a front
/// pauses, and after which one that has served is taken for sound.
const PATIENCE: Duration = Duration::from_secs(10);
/// The first pause; each is twice as long as the one before it, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// So many times in a row no daemon can be started until requests are answered so.
const TRIES: u32 = 3;

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
    /// It served us for this long, and died.
    Died(Duration),
    /// It hung up before it took our streams: it was about to end, or died of our hello.
    HungUp,
    /// None can be reached or started.
    Unreachable(CommandError),
}

/// When to wait before the next daemon.
#[derive(Debug, Default)]
struct Failures {
    deaths: Vec<Instant>,
    /// Since when none has taken our streams.
    hung_up: Option<Instant>,
    /// The last pause, while daemons keep dying.
    pause: Option<Duration>,
}

impl Failures {
    /// How long to wait before the next daemon is asked or started; none for not at all.
    fn pause(&mut self, left: &Left, now: Instant) -> Option<Duration> {
        let too_many = match left {
            Left::Bye(_) => {
                *self = Self::default();
                false
            }
            Left::HungUp => {
                let since = *self.hung_up.get_or_insert(now);
                now.duration_since(since) >= PATIENCE
            }
            Left::Died(served) => self.died(*served, now),
            Left::Unreachable(_) => true,
        };
        if !too_many {
            return None;
        }
        let pause = self.pause.map_or(FIRST_PAUSE, |last| last * 2);
        self.pause = Some(pause.min(LONGEST_PAUSE));
        self.pause
    }

    fn died(&mut self, served: Duration, now: Instant) -> bool {
        if served >= PATIENCE {
            *self = Self::default();
        }
        self.hung_up = None;
        self.deaths
            .retain(|death| now.duration_since(*death) < PATIENCE);
        self.deaths.push(now);
        self.pause.is_some() || self.deaths.len() >= DEATHS
    }
}

/// Serves the client on our standard streams until it goes away.
///
/// # Errors
/// When no daemon can be reached to begin with, or one refuses us; and when the client has left
/// and no daemon lives long enough to see it.
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
    let mut life = Life {
        front,
        hello: hello(front, env)?,
        log,
        failures: Failures::default(),
        presence: Presence::Here,
        served: false,
        unreachable: 0,
    };
    while life.goes_on(&streams)? {}
    streams.finish();
    Ok(0)
}

/// A front from its first daemon to its last.
struct Life<'a> {
    front: &'a Front,
    hello: Hello,
    /// What is in flight; daemons write it.
    log: OwnedFd,
    failures: Failures,
    presence: Presence,
    /// Whether a daemon has served us.
    served: bool,
    /// Times in a row that none could be reached or started.
    unreachable: u32,
}

impl Life<'_> {
    /// Has one daemon serve the client; whether another one is to go on.
    fn goes_on(&mut self, streams: &Streams) -> Result<bool, CommandError> {
        let left = self.attach(streams)?;
        match &left {
            Left::Bye(Bye::Closed) => return Ok(false),
            Left::Unreachable(_) => self.unreachable += 1,
            Left::Bye(Bye::Shutdown) | Left::Died(_) => {
                self.served = true;
                self.unreachable = 0;
            }
            Left::HungUp => self.unreachable = 0,
        }
        let begins = self.failures.pause.is_none();
        match (self.failures.pause(&left, Instant::now()), left) {
            (Some(pause), left) => self.pause(streams, (pause, begins), left)?,
            (None, Left::Bye(_)) => streams.wait_for_client().map_err(internal)?,
            (None, Left::Died(_) | Left::HungUp | Left::Unreachable(_)) => {}
        }
        Ok(true)
    }

    /// Hands the streams and their log over and sleeps until the daemon leaves, whichever way.
    fn attach(&self, streams: &Streams) -> Result<Left, CommandError> {
        let front = self.front;
        let stream = match reach(&front.places.front_socket(), Some(&front.launch)) {
            Ok(stream) => stream,
            // The client has not been told anything yet: it sees its server fail.
            Err(error) if !self.served => return Err(error),
            Err(error) => return Ok(Left::Unreachable(error)),
        };
        let [input, output] = streams.fds();
        let descriptors = [input, output, self.log.as_fd()];
        let Some(mut control) = Control::open(stream, &self.hello, descriptors)? else {
            return Ok(Left::HungUp);
        };
        let taken = Instant::now();
        Ok(match control.note() {
            Some(Note::Bye(bye)) => Left::Bye(bye),
            None => Left::Died(taken.elapsed()),
        })
    }

    /// Waits before the next daemon. Where none can be started, requests are answered so.
    fn pause(
        &mut self,
        streams: &Streams,
        (pause, begins): (Duration, bool),
        left: Left,
    ) -> Result<(), CommandError> {
        // The end of input was for a daemon to see, and there was one more try since.
        let is_last = self.presence == Presence::Gone;
        let error = match left {
            Left::Unreachable(error) => {
                if self.unreachable >= TRIES || is_last {
                    self.refuse(streams, &error);
                }
                error
            }
            Left::Bye(_) | Left::Died(_) | Left::HungUp => {
                let log = self.front.places.log();
                CommandError::daemon("daemons keep dying")
                    .with_hint(format!("the log is {}", log.display()))
            }
        };
        if is_last {
            return Err(error);
        }
        if begins || self.unreachable == 1 {
            crate::tell(&format!("this goes on, with pauses:\n{error}"));
        }
        let until_asked = self.unreachable > 0;
        self.presence = streams.pause(pause, until_asked).map_err(internal)?;
        Ok(())
    }

    /// Answers what the client asked with why nobody can carry it out.
    fn refuse(&self, streams: &Streams, error: &CommandError) {
        let reason = error.told().unwrap_or("the connection to the daemon broke");
        let reason = format!("no daemon can be started: {reason}");
        let refused = block_on(async {
            let [input, output] = streams.fds();
            let all = [input, output, self.log.as_fd()].map(|fd| fd.try_clone_to_owned());
            let [input, output, log] = all;
            let open = || Connection::open(input?, output?, log?);
            open()
                .map_err(internal)?
                .refuse(&reason)
                .await
                .map_err(internal)
        });
        if let Err(error) = refused {
            crate::tell(&format!("requests cannot be answered: {error}"));
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
fn internal(error: io::Error) -> CommandError {
    CommandError::new(ErrorCode::Internal, error.to_string())
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

    const DIED: Left = Left::Died(Duration::ZERO);

    #[test]
    fn many_deaths_at_once_make_pauses_that_grow() {
        let start = Instant::now();
        let mut failures = Failures::default();
        for _ in 1..DEATHS {
            assert_eq!(failures.pause(&DIED, start), None);
            // One that is about to end hangs up many times.
            for _ in 0..100 {
                assert_eq!(failures.pause(&Left::HungUp, start), None);
            }
        }
        let mut last = Duration::ZERO;
        for n in 0..100 {
            // Though pauses leave few deaths in any ten seconds.
            let now = start + LONGEST_PAUSE * n;
            let pause = failures.pause(&DIED, now).expect("a pause");
            assert!(pause == LONGEST_PAUSE || pause == FIRST_PAUSE.max(last * 2));
            last = pause;
        }
        assert_eq!(last, LONGEST_PAUSE);
    }

    #[test]
    fn a_daemon_that_served_for_long_is_the_first_to_die() {
        let start = Instant::now();
        let mut failures = Failures::default();
        let pauses = (0..2 * DEATHS).filter_map(|_| failures.pause(&DIED, start));
        assert_eq!(pauses.count(), DEATHS + 1);
        assert_eq!(failures.pause(&Left::Died(PATIENCE), start), None);
        let mut failures = Failures::default();
        for n in 0..20 {
            assert_eq!(failures.pause(&DIED, start + PATIENCE * n / 4), None);
        }
    }

    #[test]
    fn daemons_that_only_hang_up_make_pauses_after_a_while() {
        let start = Instant::now();
        let mut failures = Failures::default();
        assert_eq!(failures.pause(&Left::HungUp, start), None);
        let later = start + PATIENCE;
        assert_eq!(failures.pause(&Left::HungUp, later), Some(FIRST_PAUSE));
        assert_eq!(failures.pause(&Left::Bye(Bye::Shutdown), later), None);
        assert_eq!(failures.pause(&Left::HungUp, later), None);
    }
}
