//! The session of one client, across daemon restarts.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use ostler_mcp::McpConnection;
use ostler_model::{ByteString, ErrorCode};
use rustix::fs::{MemfdFlags, memfd_create};

use super::control::StdioConnection;
use super::streams::{ClientPresence, ProxyStreams};
use crate::config::ClientPolicy;
use crate::context::block_on;
use crate::daemon::{DaemonLauncher, connect_or_start, stdio_session};
use crate::error::{CommandError, CommandResult};
use crate::paths::Dirs;
use crate::process_env::ProcessEnv;
use crate::stdio_protocol::{CloseReason, PROTOCOL, StdioClientKind, StdioEvent, StdioHello};

/// The number of daemons that may die within [`DEATH_WINDOW`] under one proxy before it pauses
/// between starts: another one may fail for the same reason.
const MAX_DEATHS: usize = 5;
/// The period in which deaths are counted, for how long daemons may hang up before a proxy pauses,
/// and after which a serving daemon counts as stable.
const DEATH_WINDOW: Duration = Duration::from_secs(10);
/// The first pause; each is twice as long as the one before, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The consecutive failures to start a daemon after which requests are answered with the error.
const MAX_TRIES: u32 = 3;

/// The parameters of a proxy.
#[derive(Debug)]
pub(crate) struct StdioProxy {
    /// `--session`: the name of a session that is kept.
    pub(crate) session: Option<String>,
    /// The tool profiles to offer.
    pub(crate) tools: Vec<String>,
    /// The policy of this client in addition to the daemon's settings.
    pub(crate) policy: ClientPolicy,
    /// The directories of the daemon.
    pub(crate) dirs: Dirs,
    /// How to start a daemon.
    pub(crate) launcher: DaemonLauncher,
}

/// How the connection to a daemon ended.
enum DaemonExit {
    Bye(CloseReason),
    /// It served for this long, and died.
    Died(Duration),
    /// It hung up before it took over the streams: it was about to end, or the hello crashed it.
    HungUp,
    /// None can be reached or started.
    Unreachable(CommandError),
}

/// Decides about pauses between daemons.
#[derive(Debug, Default)]
struct DaemonFailures {
    deaths: Vec<Instant>,
    /// Since when no daemon has taken over the streams.
    hung_up_since: Option<Instant>,
    /// The last pause, while daemons keep dying.
    pause: Option<Duration>,
}

impl DaemonFailures {
    /// The pause before the next daemon; none for no pause.
    fn next_pause(&mut self, exit: &DaemonExit, now: Instant) -> Option<Duration> {
        let too_many = match exit {
            DaemonExit::Bye(_) => {
                *self = Self::default();
                false
            }
            DaemonExit::HungUp => {
                let since = *self.hung_up_since.get_or_insert(now);
                now.duration_since(since) >= DEATH_WINDOW
            }
            DaemonExit::Died(served) => self.daemon_died(*served, now),
            DaemonExit::Unreachable(_) => true,
        };
        if !too_many {
            return None;
        }
        let pause = self.pause.map_or(FIRST_PAUSE, |last| last * 2);
        self.pause = Some(pause.min(LONGEST_PAUSE));
        self.pause
    }

    fn daemon_died(&mut self, served: Duration, now: Instant) -> bool {
        if served >= DEATH_WINDOW {
            *self = Self::default();
        }
        self.hung_up_since = None;
        self.deaths
            .retain(|death| now.duration_since(*death) < DEATH_WINDOW);
        self.deaths.push(now);
        self.pause.is_some() || self.deaths.len() >= MAX_DEATHS
    }
}

/// Serves the client on the standard streams until it closes them.
///
/// # Errors
/// When no daemon can be reached in the beginning, or one refuses; and when the client has closed
/// its streams and no daemon lives long enough to handle that.
pub(crate) fn run(proxy: &StdioProxy, env: &ProcessEnv) -> CommandResult {
    let streams = ProxyStreams::open().map_err(|error| {
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
    let mut session = ProxySession {
        proxy,
        hello: build_hello(proxy, env)?,
        log,
        failures: DaemonFailures::default(),
        client: ClientPresence::Connected,
        was_served: false,
        unreachable_count: 0,
    };
    while session.serve_once(&streams)? {}
    streams.finish();
    Ok(0)
}

/// The state of a proxy.
struct ProxySession<'a> {
    proxy: &'a StdioProxy,
    hello: StdioHello,
    /// The log of pending requests, which daemons write.
    log: OwnedFd,
    failures: DaemonFailures,
    client: ClientPresence,
    /// Whether a daemon has served the client.
    was_served: bool,
    /// The number of consecutive failures to reach or start one.
    unreachable_count: u32,
}

impl ProxySession<'_> {
    /// Lets one daemon serve the client; returns whether another one is to continue.
    fn serve_once(&mut self, streams: &ProxyStreams) -> Result<bool, CommandError> {
        let exit = self.attach_daemon(streams)?;
        match &exit {
            DaemonExit::Bye(CloseReason::Closed) => return Ok(false),
            DaemonExit::Unreachable(_) => self.unreachable_count += 1,
            DaemonExit::Bye(CloseReason::Shutdown) | DaemonExit::Died(_) => {
                self.was_served = true;
                self.unreachable_count = 0;
            }
            DaemonExit::HungUp => self.unreachable_count = 0,
        }
        let is_first_pause = self.failures.pause.is_none();
        match (self.failures.next_pause(&exit, Instant::now()), exit) {
            (Some(pause), exit) => self.pause(streams, pause, is_first_pause, exit)?,
            (None, DaemonExit::Bye(_)) => streams.wait_for_client().map_err(internal)?,
            (None, DaemonExit::Died(_) | DaemonExit::HungUp | DaemonExit::Unreachable(_)) => {}
        }
        Ok(true)
    }

    /// Passes the streams and their log and waits until the daemon ends, in any way.
    fn attach_daemon(&self, streams: &ProxyStreams) -> Result<DaemonExit, CommandError> {
        let proxy = self.proxy;
        let stream = match connect_or_start(&proxy.dirs.stdio_socket(), Some(&proxy.launcher)) {
            Ok(stream) => stream,
            // The client has received nothing yet: it sees its server fail.
            Err(error) if !self.was_served => return Err(error),
            Err(error) => return Ok(DaemonExit::Unreachable(error)),
        };
        let [input, output] = streams.fds();
        let descriptors = [input, output, self.log.as_fd()];
        let Some(mut control) = StdioConnection::open(stream, &self.hello, descriptors)? else {
            return Ok(DaemonExit::HungUp);
        };
        let attached_at = Instant::now();
        Ok(match control.next_event() {
            Some(StdioEvent::Bye(bye)) => DaemonExit::Bye(bye),
            None => DaemonExit::Died(attached_at.elapsed()),
        })
    }

    /// Pauses before the next daemon. If none can be started, requests are answered with the error.
    fn pause(
        &mut self,
        streams: &ProxyStreams,
        pause: Duration,
        is_first_pause: bool,
        exit: DaemonExit,
    ) -> Result<(), CommandError> {
        // The end of input is for a daemon to handle, and there was one more attempt since.
        let is_last = self.client == ClientPresence::Disconnected;
        let error = match exit {
            DaemonExit::Unreachable(error) => {
                if self.unreachable_count >= MAX_TRIES || is_last {
                    self.answer_with_error(streams, &error);
                }
                error
            }
            DaemonExit::Bye(_) | DaemonExit::Died(_) | DaemonExit::HungUp => {
                let log = self.proxy.dirs.log();
                CommandError::daemon("daemons keep dying")
                    .with_hint(format!("the log is {}", log.display()))
            }
        };
        if is_last {
            return Err(error);
        }
        if is_first_pause || self.unreachable_count == 1 {
            crate::print_note(&format!("this goes on, with pauses:\n{error}"));
        }
        let until_input = self.unreachable_count > 0;
        self.client = streams.pause(pause, until_input).map_err(internal)?;
        Ok(())
    }

    /// Answers the client's requests with the error.
    fn answer_with_error(&self, streams: &ProxyStreams, error: &CommandError) {
        let reason = error
            .message()
            .unwrap_or("the connection to the daemon broke");
        let reason = format!("no daemon can be started: {reason}");
        let result = block_on(async {
            let [input, output] = streams.fds();
            let all = [input, output, self.log.as_fd()].map(|fd| fd.try_clone_to_owned());
            let [input, output, log] = all;
            let open = || McpConnection::open(input?, output?, log?);
            open()
                .map_err(internal)?
                .refuse_all(&reason)
                .await
                .map_err(internal)
        });
        if let Err(error) = result {
            crate::print_note(&format!("requests cannot be answered: {error}"));
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
fn internal(error: io::Error) -> CommandError {
    CommandError::new(ErrorCode::Internal, error.to_string())
}

fn build_hello(proxy: &StdioProxy, env: &ProcessEnv) -> Result<StdioHello, CommandError> {
    let cwd = std::env::current_dir().map_err(|error| {
        CommandError::new(
            ErrorCode::Environment,
            format!("the working directory is gone: {error}"),
        )
    })?;
    let pid = std::process::id();
    let unnamed_session = || {
        stdio_session(pid).ok_or_else(|| {
            CommandError::new(ErrorCode::Environment, "/proc does not show this process")
        })
    };
    Ok(StdioHello {
        protocol: PROTOCOL,
        kind: StdioClientKind::Mcp,
        session: proxy.session.clone().map_or_else(unnamed_session, Ok)?,
        kept: proxy.session.is_some(),
        cwd: ByteString::from(cwd),
        env: env.to_texts(),
        tools: proxy.tools.clone(),
        policy: proxy.policy.clone(),
        pid,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIED: DaemonExit = DaemonExit::Died(Duration::ZERO);

    #[test]
    fn many_deaths_at_once_make_pauses_that_grow() {
        let start = Instant::now();
        let mut failures = DaemonFailures::default();
        for _ in 1..MAX_DEATHS {
            assert_eq!(failures.next_pause(&DIED, start), None);
            // A daemon that is about to end hangs up many times.
            for _ in 0..100 {
                assert_eq!(failures.next_pause(&DaemonExit::HungUp, start), None);
            }
        }
        let mut last = Duration::ZERO;
        for n in 0..100 {
            // Though pauses leave few deaths in any ten seconds.
            let now = start + LONGEST_PAUSE * n;
            let pause = failures.next_pause(&DIED, now).expect("a pause");
            assert!(pause == LONGEST_PAUSE || pause == FIRST_PAUSE.max(last * 2));
            last = pause;
        }
        assert_eq!(last, LONGEST_PAUSE);
    }

    #[test]
    fn a_daemon_that_served_for_long_is_the_first_to_die() {
        let start = Instant::now();
        let mut failures = DaemonFailures::default();
        let pauses = (0..2 * MAX_DEATHS).filter_map(|_| failures.next_pause(&DIED, start));
        assert_eq!(pauses.count(), MAX_DEATHS + 1);
        assert_eq!(
            failures.next_pause(&DaemonExit::Died(DEATH_WINDOW), start),
            None
        );
        let mut failures = DaemonFailures::default();
        for n in 0..20 {
            assert_eq!(
                failures.next_pause(&DIED, start + DEATH_WINDOW * n / 4),
                None
            );
        }
    }

    #[test]
    fn daemons_that_only_hang_up_make_pauses_after_a_while() {
        let start = Instant::now();
        let mut failures = DaemonFailures::default();
        assert_eq!(failures.next_pause(&DaemonExit::HungUp, start), None);
        let later = start + DEATH_WINDOW;
        assert_eq!(
            failures.next_pause(&DaemonExit::HungUp, later),
            Some(FIRST_PAUSE)
        );
        assert_eq!(
            failures.next_pause(&DaemonExit::Bye(CloseReason::Shutdown), later),
            None
        );
        assert_eq!(failures.next_pause(&DaemonExit::HungUp, later), None);
    }
}
