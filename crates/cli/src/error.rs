//! The one error of the command line: what went wrong, what to do, and the exit code.

use std::fmt;
use std::io;

use ostler_model::ErrorCode;
use ostler_server::http::tokens::TokenError;
use ostler_server::wire::Problem;

/// The exit code when the reader of our output went away: 128 + SIGPIPE.
pub(crate) const EXIT_BROKEN_PIPE: u8 = 141;

/// A command that could not be carried out.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// Told to the person, with the exit code of the taxonomy.
    Failure {
        /// Its row of the taxonomy.
        code: ErrorCode,
        /// What was wrong.
        message: String,
        /// What to do about it.
        hint: Option<String>,
        /// What the process exits with, where it is not what the taxonomy says.
        exit: Option<u8>,
        /// The question a person has to answer first.
        approval: Option<String>,
    },
    /// The connection to the daemon broke: it ended or was killed. Asking again starts another.
    Disconnected(String),
    /// The reader of our output went away; nothing is left to tell anybody.
    BrokenPipe,
}

/// How a verb is over: an exit code, or an error.
pub(crate) type CommandResult = Result<u8, CommandError>;

impl CommandError {
    /// An error of this code.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::Failure {
            code,
            message: message.into(),
            hint: None,
            exit: None,
            approval: None,
        }
    }

    /// Something in the arguments cannot be.
    pub(crate) fn value(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Value, message)
    }

    /// The daemon cannot be reached or started.
    pub(crate) fn daemon(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Initialization, message)
    }

    /// The same error, which says what it is about.
    pub(crate) fn with_subject(mut self, subject: &str) -> Self {
        if let Self::Failure { message, .. } = &mut self {
            *message = format!("'{subject}': {message}");
        }
        self
    }

    /// The same error with what to do about it.
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        match self {
            Self::Failure {
                code,
                message,
                exit,
                approval,
                ..
            } => Self::Failure {
                code,
                message,
                hint: Some(hint.into()),
                exit,
                approval,
            },
            Self::Disconnected(_) | Self::BrokenPipe => self,
        }
    }

    /// The same error with an exit code of its own.
    pub(crate) fn with_exit(mut self, status: u8) -> Self {
        if let Self::Failure { exit, .. } = &mut self {
            *exit = Some(status);
        }
        self
    }

    /// What the process exits with.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Failure { code, exit, .. } => exit.unwrap_or(code.row().exit),
            Self::Disconnected(_) => ErrorCode::Initialization.row().exit,
            Self::BrokenPipe => EXIT_BROKEN_PIPE,
        }
    }

    /// The question a person has to answer before the same can be asked again.
    pub(crate) fn approval(&self) -> Option<&str> {
        match self {
            Self::Failure { approval, .. } => approval.as_deref(),
            Self::Disconnected(_) | Self::BrokenPipe => None,
        }
    }

    /// What was wrong, alone.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Self::Failure { message, .. } => Some(message),
            Self::Disconnected(_) | Self::BrokenPipe => None,
        }
    }

    /// What the person is told, each with a beginning of its own; a broken pipe is nobody's
    /// business.
    pub(crate) fn paragraphs(&self) -> Vec<String> {
        match self {
            Self::Failure {
                code,
                message,
                hint,
                ..
            } => {
                let hint = hint.as_ref().map(|hint| format!("hint: {hint}"));
                let message = format!("error[{code}]: {message}");
                std::iter::once(message).chain(hint).collect()
            }
            Self::Disconnected(what) => vec![
                format!(
                    "error[{}]: the connection to the daemon broke: {what}",
                    ErrorCode::Initialization
                ),
                "hint: ask again: a daemon is started on demand, and commands outlive it"
                    .to_owned(),
            ],
            Self::BrokenPipe => Vec::new(),
        }
    }

    /// Its row of the taxonomy, where it has one.
    pub(crate) fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Failure { code, .. } => Some(*code),
            Self::Disconnected(_) => Some(ErrorCode::Initialization),
            Self::BrokenPipe => None,
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failure { .. } | Self::Disconnected(_) => {
                f.write_str(&self.paragraphs().join("\n"))
            }
            Self::BrokenPipe => f.write_str("error: the reader of the output went away"),
        }
    }
}

impl From<Problem> for CommandError {
    fn from(problem: Problem) -> Self {
        Self::Failure {
            code: problem.code.0,
            message: problem.message,
            hint: problem.hint,
            exit: None,
            approval: problem.approval.map(Into::into),
        }
    }
}

impl From<&ostler_engine::Error> for CommandError {
    fn from(error: &ostler_engine::Error) -> Self {
        Self::Failure {
            code: error.code(),
            message: error.to_string(),
            hint: error.hint(),
            exit: None,
            approval: None,
        }
    }
}

impl From<TokenError> for CommandError {
    fn from(error: TokenError) -> Self {
        let message = error.to_string();
        match error {
            TokenError::Io { .. } | TokenError::Format { .. } => {
                Self::new(ErrorCode::Storage, message)
            }
            TokenError::Exposed(_) => Self::new(ErrorCode::Security, message)
                .with_hint("look who wrote it, then `chmod 600` it or remove it"),
            TokenError::Unknown(_) => {
                Self::value(message).with_hint("`ostler token list` shows them")
            }
            TokenError::NameTaken(_) => {
                Self::value(message).with_hint("name it differently, or revoke that one first")
            }
            TokenError::Name(_) => Self::value(message),
            TokenError::Full => Self::new(ErrorCode::QuotaExceeded, message),
        }
    }
}

/// Turns a failed write to our own output into an error.
pub(crate) fn output_failed(error: &io::Error) -> CommandError {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return CommandError::BrokenPipe;
    }
    CommandError::new(
        ErrorCode::Storage,
        format!("the output cannot be written: {error}"),
    )
}
