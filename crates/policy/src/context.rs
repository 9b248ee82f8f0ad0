//! The command to evaluate and its context.

use std::fmt;
use std::path::PathBuf;

use ostler_model::{ByteString, Command};

/// Finds a program by its bare name.
pub type ProgramLookup<'a> = dyn Fn(&str) -> Option<PathBuf> + 'a;

/// A command before its start, with what decides which programs its words refer to.
#[derive(Clone, Copy)]
pub struct CommandContext<'a> {
    /// The command.
    pub command: &'a Command,
    /// The absolute working directory: the workspace, as far as rules are concerned.
    pub cwd: &'a ByteString,
    /// Variables the request sets; those of the stdio proxy's environment are the user's own.
    pub set_env: &'a [(ByteString, ByteString)],
    /// Finds a bare program name in the command's `PATH`; none where that is not known, and then
    /// rules that pin a program do not allow it by name.
    pub lookup: Option<&'a ProgramLookup<'a>>,
}

impl<'a> CommandContext<'a> {
    /// A command without variables of its own and without a search path.
    #[must_use]
    pub const fn new(command: &'a Command, cwd: &'a ByteString) -> Self {
        Self {
            command,
            cwd,
            set_env: &[],
            lookup: None,
        }
    }
}

impl fmt::Debug for CommandContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject")
            .field("command", self.command)
            .field("cwd", self.cwd)
            .field("set_env", &self.set_env.len())
            .finish_non_exhaustive()
    }
}
