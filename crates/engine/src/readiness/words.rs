//! Readiness in words.

use ostler_model::{ReadyWhen, ServiceKind};

use super::machine::{Phase, Readiness};
use super::seen::Socket;
use super::target::Target;

/// A socket as a sign.
pub(super) fn listens(socket: &Socket) -> String {
    format!(
        "{} listens ({}, pid {})",
        socket.address, socket.process, socket.pid
    )
}

impl Readiness {
    /// What it waits for, as one clause: `a port to listen`.
    #[must_use]
    pub fn waits_for(&self) -> String {
        let what = match self.phase {
            Phase::Ready(_) => return "nothing: it is ready".to_owned(),
            Phase::Running => "nothing: it is running, with nothing to look at".to_owned(),
            Phase::Before => self.awaited(),
        };
        match &self.fallen {
            Some(fallen) => format!("{what} (it failed: {})", fallen.detail),
            None => what,
        }
    }

    fn awaited(&self) -> String {
        match &self.rule.when {
            ReadyWhen::Auto => self.awaited_by_kind(),
            ReadyWhen::Listening => self.a_port(),
            ReadyWhen::Responding => self.answering("to answer"),
            ReadyWhen::Log => self.a_line(),
            ReadyWhen::Http { target } => match &self.rule.target {
                Some(Target::Url { .. }) => {
                    format!("{target} to answer with success{}", self.so_far())
                }
                Some(Target::Path(path)) => {
                    self.answering(&format!("to answer GET {path} with success"))
                }
                None => self.a_port(),
            },
            ReadyWhen::Tcp { port } => format!("port {port} to take a connection{}", self.so_far()),
            ReadyWhen::Exec { argv } => {
                let words: Vec<String> = argv.iter().map(ToString::to_string).collect();
                format!("`{}` to exit with 0{}", words.join(" "), self.so_far())
            }
            ReadyWhen::Notify => "READY=1 over its notify socket".to_owned(),
            ReadyWhen::Quiet { ms } => format!("{ms} ms without output"),
        }
    }

    fn awaited_by_kind(&self) -> String {
        if self.responded.is_some() {
            return "its ready line".to_owned();
        }
        match (self.rule.kind, self.main()) {
            (_, Some(_)) => self.answering("to answer"),
            (ServiceKind::Server | ServiceKind::Multi, None) => self.a_port(),
            (ServiceKind::Unknown, None) if self.promises_port() => self.a_port(),
            (ServiceKind::Socket, None) => "a unix socket to listen".to_owned(),
            (ServiceKind::Watcher, None) => self.a_line(),
            (ServiceKind::Unknown, None) => {
                "a port to listen, or 2 s of life without one".to_owned()
            }
        }
    }

    fn a_port(&self) -> String {
        match (self.rule.asked, self.main()) {
            (Some(asked), Some(main)) if main.socket.address.port() != asked => {
                format!(
                    "port {asked} to listen ({} does)",
                    main.socket.address.port()
                )
            }
            (Some(asked), _) => format!("port {asked} to listen"),
            (None, _) => "a port to listen".to_owned(),
        }
    }

    fn a_line(&self) -> String {
        let words = self.heard.words();
        match (words.ready.is_some(), words.first_ready()) {
            (true, _) => "a port to listen: its line has come".to_owned(),
            (false, Some(expression)) => format!("a line matching {expression}"),
            (false, None) => "a line that shows it at rest".to_owned(),
        }
    }

    fn answering(&self, what: &str) -> String {
        match self.main().filter(|it| it.settled <= self.at) {
            Some(main) => format!(
                "port {} {what}{}",
                main.socket.address.port(),
                self.so_far()
            ),
            None => self.a_port(),
        }
    }

    fn so_far(&self) -> String {
        self.probing
            .failed()
            .map_or_else(String::new, |it| format!(" ({it} so far)"))
    }
}
