//! What is judged.

use std::fmt;
use std::path::PathBuf;

use ostler_model::{Command, Text};

/// Finds a program by its bare name.
pub type Find<'a> = dyn Fn(&str) -> Option<PathBuf> + 'a;

/// A command before its start, with what decides which programs its words mean.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// What is to run.
    pub command: &'a Command,
    /// The absolute working directory: the workspace, as far as rules are concerned.
    pub cwd: &'a Text,
    /// Variables the request sets; those of the front are the user's own.
    pub set_env: &'a [(Text, Text)],
    /// Where a bare program name is found in the command's `PATH`; none where that is not
    /// known, and then rules that pin a program do not allow it by name.
    pub find: Option<&'a Find<'a>>,
}

impl<'a> Subject<'a> {
    /// A command without variables of its own, and without a search path.
    #[must_use]
    pub const fn new(command: &'a Command, cwd: &'a Text) -> Self {
        Self {
            command,
            cwd,
            set_env: &[],
            find: None,
        }
    }
}

impl fmt::Debug for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject")
            .field("command", self.command)
            .field("cwd", self.cwd)
            .field("set_env", &self.set_env.len())
            .finish_non_exhaustive()
    }
}
