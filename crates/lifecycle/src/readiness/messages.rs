//! Readiness as text for people.

use ostler_model::{ReadyCondition, ServiceKind};

use super::input::ListeningSocket;
use super::probe_target::ProbeTarget;
use super::state_machine::{Readiness, ReadinessPhase};

/// A socket as a sign.
pub(super) fn describe_listener(socket: &ListeningSocket) -> String {
    format!(
        "{} listens ({}, pid {})",
        socket.address, socket.process, socket.pid
    )
}

impl Readiness {
    /// What it waits for, as one clause: `a port to listen`.
    #[must_use]
    pub fn waits_for(&self) -> String {
        let clause = match self.phase {
            ReadinessPhase::Ready(_) => return "nothing: it is ready".to_owned(),
            ReadinessPhase::Running => "nothing: it is running, with nothing to look at".to_owned(),
            ReadinessPhase::Startup => self.awaited(),
        };
        match &self.failure {
            Some(fallen) => format!("{clause} (it failed: {})", fallen.detail),
            None => clause,
        }
    }

    fn awaited(&self) -> String {
        match &self.rule.when {
            ReadyCondition::Auto => self.awaited_by_kind(),
            ReadyCondition::Listening => self.port_clause(),
            ReadyCondition::Responding => self.answer_clause("to answer"),
            ReadyCondition::Log => self.line_clause(),
            ReadyCondition::Http { target } => match &self.rule.target {
                Some(ProbeTarget::Url { .. }) => {
                    format!("{target} to answer with success{}", self.failure_clause())
                }
                Some(ProbeTarget::Path(path)) => {
                    self.answer_clause(&format!("to answer GET {path} with success"))
                }
                None => self.port_clause(),
            },
            ReadyCondition::Tcp { port } => {
                format!("port {port} to take a connection{}", self.failure_clause())
            }
            ReadyCondition::Exec { argv } => {
                let words: Vec<String> = argv.iter().map(ToString::to_string).collect();
                format!(
                    "`{}` to exit with 0{}",
                    words.join(" "),
                    self.failure_clause()
                )
            }
            ReadyCondition::Notify => "READY=1 over its notify socket".to_owned(),
            ReadyCondition::Quiet { ms } => format!("{ms} ms without output"),
        }
    }

    fn awaited_by_kind(&self) -> String {
        if self.responded.is_some() {
            return "its ready line".to_owned();
        }
        match (self.rule.kind, self.main_port()) {
            (_, Some(_)) => self.answer_clause("to answer"),
            (ServiceKind::Server | ServiceKind::Multi, None) => self.port_clause(),
            (ServiceKind::Unknown, None) if self.promises_port() => self.port_clause(),
            (ServiceKind::Socket, None) => "a unix socket to listen".to_owned(),
            (ServiceKind::Watcher, None) => self.line_clause(),
            (ServiceKind::Unknown, None) => {
                "a port to listen, or 2 s of life without one".to_owned()
            }
        }
    }

    fn port_clause(&self) -> String {
        match (self.rule.requested_port, self.main_port()) {
            (Some(requested), Some(main)) if main.socket.address.port() != requested => {
                format!(
                    "port {requested} to listen ({} does)",
                    main.socket.address.port()
                )
            }
            (Some(requested), _) => format!("port {requested} to listen"),
            (None, _) => "a port to listen".to_owned(),
        }
    }

    fn line_clause(&self) -> String {
        let evidence = self.output.evidence();
        match (evidence.ready.is_some(), evidence.first_ready()) {
            (true, _) => "a port to listen: its line has come".to_owned(),
            (false, Some(expression)) => format!("a line matching {expression}"),
            (false, None) => "a line that shows it at rest".to_owned(),
        }
    }

    fn answer_clause(&self, action: &str) -> String {
        match self.main_port().filter(|it| it.settled <= self.at) {
            Some(main) => format!(
                "port {} {action}{}",
                main.socket.address.port(),
                self.failure_clause()
            ),
            None => self.port_clause(),
        }
    }

    fn failure_clause(&self) -> String {
        self.probe
            .last_failure()
            .map_or_else(String::new, |it| format!(" ({it} so far)"))
    }
}
