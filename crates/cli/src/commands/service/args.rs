//! Arguments for starting a service, shared by all verbs that start or define one.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use ostler_api::{
    DependencyBody, DependencyConditionBody, HealthRuleBody, PortRequestBody, ProbeBody,
    ServiceOptionsBody, ServiceStartBody, ShellStartBody, StartBody,
};
use ostler_model::duration::as_millis;
use ostler_model::{
    ByteString, Command, DependencyCondition, ExecutionId, RestartPolicy, StartOptions,
};

use crate::attach::window_size;
use crate::commands::isolation_args::IsolationArgs;
use crate::commands::start::{CommonArgs, resolve_directory};
use crate::commands::value_parsers;
use crate::context::CliContext;
use crate::error::CommandError;

/// The number of restarts, if a policy is given without a number.
const ATTEMPTS: u32 = 10;
/// The shell that runs a command given as one word.
const SHELL: &str = "/bin/sh";

/// What a service is asked for, besides its name and command.
#[derive(Debug, Args)]
pub(super) struct ServiceArgs {
    /// When it is ready: auto, listening, responding, log, notify, http:/PATH, http://URL,
    /// tcp:PORT, exec:COMMAND or quiet:SPAN; by its kind unless given
    #[arg(long, value_name = "WHEN", value_parser = parse_probe)]
    ready_when: Option<ProbeBody>,
    /// Lines that match this show it ready
    #[arg(long, value_name = "PATTERN")]
    ready_pattern: Option<String>,
    /// Lines that match this show it failed
    #[arg(long, value_name = "PATTERN")]
    fail_pattern: Option<String>,
    /// The port it gets, as PORT and as an argument where its kind takes one; auto leases a
    /// free one
    #[arg(short, long, value_name = "N|auto")]
    port: Option<PortRequestBody>,
    /// What happens when it ends: never, on-failure[:N] or always[:N], N times at most
    #[arg(long, value_name = "POLICY", value_parser = parse_restart)]
    restart: Option<RestartPolicy>,
    /// What shows that it stays well: listening, responding, http:/PATH, tcp:PORT or
    /// exec:COMMAND
    #[arg(long, value_name = "PROBE", value_parser = parse_probe)]
    health: Option<ProbeBody>,
    /// Between two looks at its health
    #[arg(long, value_name = "SPAN", requires = "health", value_parser = value_parsers::duration)]
    health_interval: Option<Duration>,
    /// End it when it is ill, so that its restart policy can act
    #[arg(long, requires = "health")]
    health_restart: bool,
    /// A service that comes first, as in db or db:started; repeatable
    #[arg(long, value_name = "NAME[:CONDITION]", value_parser = parse_dependency)]
    depends_on: Vec<DependencyBody>,
    #[command(flatten)]
    common: CommonArgs,
    /// Give it a terminal
    #[arg(short, long)]
    tty: bool,
    /// How its output is to be decoded when it is read as text: a WHATWG label, or auto
    #[arg(long, value_name = "LABEL")]
    encoding: Option<String>,
    #[command(flatten)]
    isolation: IsolationArgs,
}

impl ServiceArgs {
    /// Builds the body of the request.
    ///
    /// # Errors
    /// For invalid values, before a daemon is started for the request.
    pub(super) fn into_body(
        mut self,
        context: &CliContext,
        name: Option<String>,
        words: Vec<OsString>,
    ) -> Result<ServiceStartBody, CommandError> {
        let cwd = resolve_directory(self.common.cwd.take())?;
        let mut start = StartBody::new(parse_command(words), cwd);
        start.base_env = context.env.to_texts();
        let size = || window_size().unwrap_or(ShellStartBody::SIZE);
        let encoding = || context.config.client_policy().default_encoding;
        start.options = StartOptions {
            encoding: self.encoding.or_else(encoding),
            pty: self.tty.then(size),
            ..self.common.into_options(context, self.isolation)?
        };
        start.restart = self.restart;
        start.id = Some(ExecutionId::mint());
        start.cli = true;
        let (interval, restarts) = (self.health_interval, self.health_restart);
        let health = self.health.map(|probe| HealthRuleBody {
            probe,
            interval_ms: interval.map(as_millis),
            failures: None,
            restart: restarts,
        });
        let service = ServiceOptionsBody {
            name,
            ready_when: self.ready_when,
            ready_pattern: self.ready_pattern,
            fail_pattern: self.fail_pattern,
            health,
            depends_on: self.depends_on,
            port: self.port,
            ..ServiceOptionsBody::default()
        };
        Ok(ServiceStartBody { start, service })
    }
}

/// Parses the command; one word with blanks in it is a command line for a shell.
pub(super) fn parse_command(words: Vec<OsString>) -> Command {
    let mut words = words.into_iter().map(ByteString::from);
    let program = words.next().unwrap_or_default();
    let args: Vec<ByteString> = words.collect();
    let has_blank = program.as_bytes().iter().any(u8::is_ascii_whitespace);
    if args.is_empty() && has_blank {
        return Command::Shell {
            shell: SHELL.into(),
            script: program,
        };
    }
    Command::Argv { program, args }
}

/// Parses a probe.
fn parse_probe(text: &str) -> Result<ProbeBody, String> {
    let (word, rest) = text.split_once(':').unwrap_or((text, ""));
    match (word, rest) {
        ("auto", "") => Ok(ProbeBody::Auto),
        ("listening", "") => Ok(ProbeBody::Listening),
        ("responding", "") => Ok(ProbeBody::Responding),
        ("log", "") => Ok(ProbeBody::Log),
        ("notify", "") => Ok(ProbeBody::Notify),
        ("http" | "https", url) if url.starts_with("//") => Ok(ProbeBody::Http(text.to_owned())),
        ("http", path) if path.starts_with('/') => Ok(ProbeBody::Http(path.to_owned())),
        ("tcp", port) => match port.parse() {
            Ok(port) if port > 0 => Ok(ProbeBody::Tcp(port)),
            _ => Err("tcp needs a port, as in tcp:5432".to_owned()),
        },
        ("exec", line) if !line.is_empty() => Ok(ProbeBody::Exec(
            [SHELL, "-c", line].map(ByteString::from).to_vec(),
        )),
        ("quiet", span) if !span.is_empty() => {
            value_parsers::duration(span).map(|span| ProbeBody::QuietMs(as_millis(span)))
        }
        _ => Err(
            "allowed: auto, listening, responding, log, notify, http:/PATH, http://URL, \
             tcp:PORT, exec:COMMAND, quiet:SPAN"
                .to_owned(),
        ),
    }
}

/// Parses a restart policy, in the notation of docker.
fn parse_restart(text: &str) -> Result<RestartPolicy, String> {
    if matches!(text, "never" | "no") {
        return Ok(RestartPolicy::Never);
    }
    let (word, max) = match text.split_once(':') {
        Some((word, number)) => (word, number.parse().ok()),
        None => (text, Some(ATTEMPTS)),
    };
    match (word, max) {
        ("on-failure", Some(max)) => Ok(RestartPolicy::OnFailure { max }),
        ("always", Some(max)) => Ok(RestartPolicy::Always { max }),
        _ => Err("allowed: never, on-failure, always, on-failure:N, always:N".to_owned()),
    }
}

fn parse_dependency(text: &str) -> Result<DependencyBody, String> {
    let Some((name, condition)) = text.split_once(':') else {
        return Ok(DependencyBody::Name(text.to_owned()));
    };
    let condition = match condition {
        "started" => DependencyCondition::Started,
        "listening" => DependencyCondition::Listening,
        "ready" => DependencyCondition::Ready,
        "completed" => DependencyCondition::Completed,
        _ => return Err("allowed: started, listening, ready, completed".to_owned()),
    };
    Ok(DependencyBody::WithCondition(DependencyConditionBody {
        name: name.to_owned(),
        condition,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_words_with_what_they_look_at() {
        assert_eq!(parse_probe("auto"), Ok(ProbeBody::Auto));
        assert_eq!(
            parse_probe("http:/up?x=1"),
            Ok(ProbeBody::Http("/up?x=1".into()))
        );
        let url = "https://localhost:8443/up";
        assert_eq!(parse_probe(url), Ok(ProbeBody::Http(url.into())));
        assert_eq!(parse_probe("tcp:5432"), Ok(ProbeBody::Tcp(5_432)));
        assert_eq!(parse_probe("quiet:1.5s"), Ok(ProbeBody::QuietMs(1_500)));
        let line = ["/bin/sh", "-c", "test -e a:b"]
            .map(ByteString::from)
            .to_vec();
        assert_eq!(parse_probe("exec:test -e a:b"), Ok(ProbeBody::Exec(line)));
        for bad in [
            "", "soon", "tcp", "tcp:0", "http:x", "exec:", "quiet:", "auto:1",
        ] {
            assert!(parse_probe(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn policies_take_a_number() {
        assert_eq!(parse_restart("never"), Ok(RestartPolicy::Never));
        assert_eq!(
            parse_restart("on-failure"),
            Ok(RestartPolicy::OnFailure { max: ATTEMPTS })
        );
        assert_eq!(
            parse_restart("always:3"),
            Ok(RestartPolicy::Always { max: 3 })
        );
        for bad in [
            "",
            "no:3",
            "never:5",
            "sometimes",
            "always:",
            "always:x",
            "on-failure:-1",
        ] {
            assert!(parse_restart(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn one_word_with_blanks_is_a_line_for_a_shell() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let line = parse_command(words(&["npm run dev"]));
        assert!(matches!(line, Command::Shell { .. }), "{line:?}");
        let argv = parse_command(words(&["npm", "run dev"]));
        assert!(matches!(argv, Command::Argv { .. }), "{argv:?}");
    }
}
