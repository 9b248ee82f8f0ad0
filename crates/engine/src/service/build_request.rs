//! Builds an admissible start request from the service request and the detection result.

use ostler_model::{ByteString, Command, Lifetime, ReadyCondition, ReadyRule, ServicePlan};

use super::ServiceRequest;
use super::definition::TERMINAL_SIZE;
use crate::admission::environment;
use crate::detection::{DetectedService, DetectionQuery};
use crate::request::StartRequest;

/// The environment variable that carries the port.
const PORT: &str = "PORT";
/// The placeholder of the port number in the table's arguments.
const PORT_PLACEHOLDER: &str = "{port}";

/// The parts of a request that detection reads.
pub(crate) fn detection_subject(request: &StartRequest) -> DetectionQuery<'_> {
    DetectionQuery {
        command: &request.command,
        cwd: request.cwd.as_path(),
        env: &request.options.set_env,
    }
}

/// Where a definition comes from, and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DefinitionOrigin {
    /// The `ostler.toml`, or `api`.
    pub(crate) defined_in: ByteString,
    pub(crate) defined_as: String,
}

/// The decisions made before the request is built.
#[derive(Debug)]
pub(crate) struct RequestInputs<'a> {
    pub(crate) name: String,
    /// The detection result.
    pub(crate) detected: Option<&'a DetectedService>,
    /// The port it is assigned.
    pub(crate) port: AssignedPort,
    /// Where it is defined.
    pub(crate) origin: Option<&'a DefinitionOrigin>,
}

/// The port assigned to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum AssignedPort {
    /// No port: it uses its own.
    #[default]
    None,
    /// This port was requested.
    Fixed(u16),
    /// This port is leased to it.
    Leased(u16),
}

impl AssignedPort {
    const fn number(self) -> Option<u16> {
        match self {
            Self::None => None,
            Self::Fixed(port) | Self::Leased(port) => Some(port),
        }
    }
}

/// Builds the start request of a service.
pub(crate) fn build_request(request: &ServiceRequest, inputs: RequestInputs<'_>) -> StartRequest {
    let RequestInputs {
        name,
        detected,
        port,
        origin,
    } = inputs;
    let mut start = request.start.clone();
    for (name, value) in detected.iter().flat_map(|it| &it.env) {
        if !start.options.set_env.iter().any(|(known, _)| known == name) {
            start.options.set_env.push((name.clone(), value.clone()));
        }
    }
    if let Some(number) = port.number() {
        start
            .options
            .set_env
            .retain(|(known, _)| known.as_bytes() != PORT.as_bytes());
        let value = ByteString::from(number.to_string());
        start.options.set_env.push((ByteString::from(PORT), value));
        start.command = with_port(&start.command, detected, number);
    }
    if detected.is_some_and(|it| it.terminal) {
        start.options.pty.get_or_insert(TERMINAL_SIZE);
    }
    let plan = ServicePlan {
        name,
        detected: detected.map(|it| it.id.clone()),
        automatic: request.automatic,
        ready: ready_rule(request, detected, port),
        health: request.health.clone(),
        depends_on: request.depends_on.clone(),
        leased_port: match port {
            AssignedPort::Leased(port) => Some(port),
            AssignedPort::Fixed(_) | AssignedPort::None => None,
        },
        defined_in: origin.map(|it| it.defined_in.clone()),
        defined_as: origin.map(|it| it.defined_as.clone()),
    };
    start.lifetime = Some(Lifetime::Service {
        restart: request.restart,
        plan: Box::new(plan),
    });
    start
}

/// The table's rule, overridden by the request. A pattern without an explicit readiness kind means
/// readiness by that pattern.
fn ready_rule(
    request: &ServiceRequest,
    detected: Option<&DetectedService>,
    port: AssignedPort,
) -> ReadyRule {
    let mut rule = detected.map(|it| it.ready.clone()).unwrap_or_default();
    match (&request.ready_when, &request.ready_pattern) {
        (Some(when), _) => rule.when = when.clone(),
        (None, Some(_)) => rule.when = ReadyCondition::Log,
        (None, None) => {}
    }
    if let Some(pattern) = &request.ready_pattern {
        if request.ready_when.is_none() {
            rule.ready.clear();
        }
        rule.ready.push(pattern.clone());
    }
    rule.fail.extend(request.fail_pattern.clone());
    rule.timeout = request.ready_timeout.or(rule.timeout);
    // The table lists programs that read the variable; an unlisted program might.
    let unknown = detected.is_none();
    let env_port = unknown.then(|| port_from_env(&request.start)).flatten();
    rule.port = port.number().or(rule.port).or(env_port);
    rule
}

/// The port that a request's environment sets.
fn port_from_env(start: &StartRequest) -> Option<u16> {
    let value = environment::value(&start.options.set_env, PORT.as_bytes())?;
    value.to_string().parse().ok().filter(|port| *port > 0)
}

/// The command with the arguments that set its port, where the table knows them.
pub(crate) fn with_port(
    command: &Command,
    detected: Option<&DetectedService>,
    port: u16,
) -> Command {
    let arguments = detected.and_then(|it| it.port_arguments.as_deref());
    let words: Vec<String> = arguments
        .unwrap_or_default()
        .iter()
        .map(|it| it.replace(PORT_PLACEHOLDER, &port.to_string()))
        .collect();
    match command {
        unchanged if words.is_empty() => unchanged.clone(),
        Command::Argv { program, args } => Command::Argv {
            program: program.clone(),
            args: args
                .iter()
                .cloned()
                .chain(words.into_iter().map(ByteString::from))
                .collect(),
        },
        Command::Shell { shell, script } => {
            let mut bytes = script.as_bytes().trim_ascii_end().to_vec();
            for word in &words {
                bytes.push(b' ');
                bytes.extend_from_slice(quote_for_execution(word).as_bytes());
            }
            Command::Shell {
                shell: shell.clone(),
                script: ByteString::from(bytes),
            }
        }
    }
}

/// The original command, where this one ends in the arguments that set this port.
pub(crate) fn without_port(
    command: &Command,
    detected: Option<&DetectedService>,
    port: u16,
) -> Command {
    let empty = match command {
        Command::Argv { program, .. } => Command::Argv {
            program: program.clone(),
            args: Vec::new(),
        },
        Command::Shell { shell, .. } => Command::Shell {
            shell: shell.clone(),
            script: ByteString::default(),
        },
    };
    match (command, with_port(&empty, detected, port)) {
        (Command::Argv { program, args }, Command::Argv { args: added, .. }) => Command::Argv {
            program: program.clone(),
            args: args.strip_suffix(&added[..]).unwrap_or(args).to_vec(),
        },
        (Command::Shell { shell, script }, Command::Shell { script: added, .. }) => {
            let bytes = script.as_bytes();
            let kept = bytes.strip_suffix(added.as_bytes()).unwrap_or(bytes);
            Command::Shell {
                shell: shell.clone(),
                script: ByteString::from(kept.to_vec()),
            }
        }
        (unchanged @ (Command::Argv { .. } | Command::Shell { .. }), _) => unchanged.clone(),
    }
}

/// Quotes a word for a POSIX shell that will execute it: unlike the model's quoting for display, a
/// tilde and letters beyond ASCII are quoted too.
fn quote_for_execution(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "%+,-./:=@_^".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(words: &[&str]) -> DetectedService {
        DetectedService {
            id: "vite".to_owned(),
            name: "vite".to_owned(),
            title: "Vite".to_owned(),
            ready: ReadyRule {
                ready: vec!["ready in".to_owned()],
                default_port: Some(5173),
                ..ReadyRule::default()
            },
            env: vec![
                (ByteString::from("A"), ByteString::from("table")),
                (ByteString::from("B"), ByteString::from("table")),
            ],
            terminal: true,
            port_arguments: Some(words.iter().map(ToString::to_string).collect()),
            normalised: "vite".to_owned(),
        }
    }

    fn composed(
        request: &ServiceRequest,
        detected: &DetectedService,
        port: AssignedPort,
    ) -> StartRequest {
        let decided = RequestInputs {
            name: "web".to_owned(),
            detected: Some(detected),
            port,
            origin: None,
        };
        build_request(request, decided)
    }

    #[test]
    fn the_table_fills_in_what_the_request_leaves_open() {
        let mut start = StartRequest::argv(["npx", "vite"], "/w");
        start.options.set_env = vec![(ByteString::from("A"), ByteString::from("mine"))];
        let request = ServiceRequest::new(start);
        let made = composed(
            &request,
            &detected(&["--port", "{port}"]),
            AssignedPort::None,
        );
        let env: Vec<_> = made
            .options
            .set_env
            .iter()
            .map(|(_, value)| value.to_string())
            .collect();
        assert_eq!(env, ["mine", "table"]);
        assert_eq!(made.options.pty, Some(TERMINAL_SIZE));
        assert_eq!(made.command.display(), "npx vite");
        let plan = made
            .lifetime
            .expect("a service")
            .plan()
            .expect("a plan")
            .clone();
        assert_eq!(
            (plan.detected.as_deref(), plan.ready.port),
            (Some("vite"), None)
        );
    }

    #[test]
    fn a_given_port_is_a_variable_and_arguments() {
        let table = detected(&["--port", "{port}", "--title", "it's"]);
        let request = ServiceRequest::new(StartRequest::argv(["vite"], "/w"));
        let made = composed(&request, &table, AssignedPort::Leased(20_001));
        assert_eq!(
            made.command.argv()[1..3],
            [ByteString::from("--port"), ByteString::from("20001")]
        );
        assert!(
            made.options
                .set_env
                .contains(&(ByteString::from("PORT"), ByteString::from("20001")))
        );
        let plan = made
            .lifetime
            .expect("a service")
            .plan()
            .expect("a plan")
            .clone();
        assert_eq!(
            (plan.leased_port, plan.ready.port),
            (Some(20_001), Some(20_001))
        );
        let script = Command::Shell {
            shell: ByteString::from("/bin/sh"),
            script: ByteString::from("cd x && vite \n"),
        };
        let made = with_port(&script, Some(&table), 80);
        assert_eq!(made.display(), r"cd x && vite --port 80 --title 'it'\''s'");
        let bare = Command::Shell {
            shell: ByteString::from("/bin/sh"),
            script: ByteString::from("cd x && vite"),
        };
        assert_eq!(without_port(&made, Some(&table), 80), bare);
        assert_eq!(without_port(&made, Some(&table), 81), made);
        assert_eq!(with_port(&script, None, 80), script);
        assert_eq!(without_port(&script, None, 80), script);
    }

    #[test]
    fn the_variable_counts_for_unknown_programs() {
        let mut start = StartRequest::argv(["./server"], "/w");
        start.options.set_env = vec![(ByteString::from(PORT), ByteString::from("8080"))];
        let request = ServiceRequest::new(start);
        assert_eq!(
            ready_rule(&request, None, AssignedPort::None).port,
            Some(8_080)
        );
        assert_eq!(
            ready_rule(&request, None, AssignedPort::Fixed(81)).port,
            Some(81)
        );
        let table = detected(&[]);
        assert_eq!(
            ready_rule(&request, Some(&table), AssignedPort::None).port,
            None
        );
    }

    #[test]
    fn a_pattern_alone_is_what_readiness_means() {
        let mut request = ServiceRequest::new(StartRequest::argv(["vite"], "/w"));
        request.ready_pattern = Some("up".to_owned());
        let table = detected(&[]);
        let rule = ready_rule(&request, Some(&table), AssignedPort::None);
        assert_eq!(
            (rule.when, rule.ready),
            (ReadyCondition::Log, vec!["up".to_owned()])
        );
        request.ready_when = Some(ReadyCondition::Auto);
        let rule = ready_rule(&request, Some(&table), AssignedPort::None);
        assert_eq!((rule.when, rule.ready.len()), (ReadyCondition::Auto, 2));
    }
}
