//! The error of the command line: what went wrong, what to do about it, and the exit code.

use std::fmt;
use std::io;
use std::path::Path;

use ostler_api::Problem;
use ostler_backend_container::ImageError;
use ostler_http::tokens::TokenError;
use ostler_model::ErrorCode;
use ostler_sys::regular_file;

/// The exit code if the reader of standard output closed it: 128 + SIGPIPE.
pub(crate) const EXIT_BROKEN_PIPE: u8 = 141;

/// Why a verb could not be carried out.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// Reported to the user, with the exit code of its error code.
    Failure {
        code: ErrorCode,
        message: String,
        /// The hint about what to do.
        hint: Option<String>,
        /// The exit code, if it differs from that of the error code.
        exit: Option<u8>,
        /// The id of the approval that is required first.
        approval: Option<String>,
        /// Whether an execution was created whose program exists and could not be executed.
        is_spawn_failure: bool,
    },
    /// The connection to the daemon broke: it ended or was killed. A retry starts another.
    Disconnected(String),
    /// The reader of standard output closed it; nothing is reported.
    BrokenPipe,
}

/// The result of a verb: an exit code, or an error.
pub(crate) type CommandResult = Result<u8, CommandError>;

impl CommandError {
    /// An error with this code.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::Failure {
            code,
            message: message.into(),
            hint: None,
            exit: None,
            approval: None,
            is_spawn_failure: false,
        }
    }

    /// An invalid argument.
    pub(crate) fn value(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Value, message)
    }

    /// The daemon cannot be reached or started.
    pub(crate) fn daemon(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Initialization, message)
    }

    /// The same error, prefixed with its subject, once.
    pub(crate) fn with_subject(mut self, subject: &str) -> Self {
        let prefix = format!("'{subject}': ");
        if let Self::Failure { message, .. } = &mut self
            && !message.starts_with(&prefix)
        {
            message.insert_str(0, &prefix);
        }
        self
    }

    /// The same error with a hint.
    pub(crate) fn with_hint(mut self, text: impl Into<String>) -> Self {
        if let Self::Failure { hint, .. } = &mut self {
            *hint = Some(text.into());
        }
        self
    }

    /// The same error with another exit code.
    pub(crate) fn with_exit(mut self, status: u8) -> Self {
        if let Self::Failure { exit, .. } = &mut self {
            *exit = Some(status);
        }
        self
    }

    /// The exit code of the process.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Failure { code, exit, .. } => exit.unwrap_or(code.info().exit),
            Self::Disconnected(_) => ErrorCode::Initialization.info().exit,
            Self::BrokenPipe => EXIT_BROKEN_PIPE,
        }
    }

    /// The id of the approval that is required before a retry.
    pub(crate) fn approval(&self) -> Option<&str> {
        match self {
            Self::Failure { approval, .. } => approval.as_deref(),
            Self::Disconnected(_) | Self::BrokenPipe => None,
        }
    }

    /// Whether an execution was created whose program exists and could not be executed.
    pub(crate) fn is_spawn_failure(&self) -> bool {
        match self {
            Self::Failure {
                is_spawn_failure, ..
            } => *is_spawn_failure,
            Self::Disconnected(_) | Self::BrokenPipe => false,
        }
    }

    /// The message alone.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Self::Failure { message, .. } => Some(message),
            Self::Disconnected(_) | Self::BrokenPipe => None,
        }
    }

    /// The paragraphs for the user; none for a broken pipe.
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

    /// The error code, if it has one.
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
            is_spawn_failure: problem.spawn_failed,
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
            is_spawn_failure: error.is_exec_failure(),
        }
    }
}

impl From<&ImageError> for CommandError {
    fn from(error: &ImageError) -> Self {
        let code = match error {
            ImageError::Engine(_) | ImageError::Pull { .. } | ImageError::TimedOut(_) => {
                ErrorCode::Environment
            }
            ImageError::Build(_) => ErrorCode::CommandExecution,
            ImageError::MissingBase { .. }
            | ImageError::Context(_)
            | ImageError::InvalidName(_) => ErrorCode::Value,
        };
        let failed = Self::new(code, error.to_string());
        match error {
            ImageError::Engine(_) => failed.with_hint("`ostler doctor` shows what was looked for"),
            ImageError::MissingBase { image } => failed.with_hint(format!(
                "fetch it by --pull, or with `ostler image pull {image}`"
            )),
            ImageError::Context(_)
            | ImageError::InvalidName(_)
            | ImageError::Build(_)
            | ImageError::Pull { .. }
            | ImageError::TimedOut(_) => failed,
        }
    }
}

impl From<TokenError> for CommandError {
    fn from(error: TokenError) -> Self {
        let refused = Self::new(error.code(), error.to_string());
        match error {
            TokenError::Format { path, .. } => refused.with_hint(format!(
                "move {} to another place and make new tokens with `ostler token new`: those in it \
                 let nobody in",
                path.display()
            )),
            TokenError::Io { path, source, .. } => match token_file_hint(&path, &source) {
                Some(hint) => refused.with_hint(hint),
                None => refused,
            },
            TokenError::Exposed(_) => {
                refused.with_hint("look who wrote it, then `chmod 600` it or remove it")
            }
            TokenError::Unknown(_) => refused.with_hint("`ostler token list` shows them"),
            TokenError::NameTaken(_) => {
                refused.with_hint("name it differently, or revoke that one first")
            }
            TokenError::Name(_) | TokenError::Scopes(_) | TokenError::Full => refused,
        }
    }
}

fn token_file_hint(path: &Path, error: &io::Error) -> Option<String> {
    let path = path.display();
    if regular_file::is_wrong_type(error) {
        return Some(format!(
            "move what is at {path} to another place and make new tokens with `ostler token new`"
        ));
    }
    (error.kind() == io::ErrorKind::PermissionDenied).then(|| {
        format!("{path} must be yours and readable by you: `ls -l` shows its owner and mode")
    })
}

/// The error for a failed write to standard output.
pub(crate) fn output_failed(error: &io::Error) -> CommandError {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return CommandError::BrokenPipe;
    }
    CommandError::new(
        ErrorCode::Storage,
        format!("the output cannot be written: {error}"),
    )
}
