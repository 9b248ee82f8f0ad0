//! What happens to a context, and what is decided about it.

/// What happened, or what is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextInput {
    /// Its directory was created.
    Created,
    /// Its directory could not be created.
    CreationFailed,
    /// A start asks to use it; the check of its directory succeeded.
    Enter,
    /// The check of its directory failed.
    CheckFailed {
        /// What it found.
        problem: String,
    },
    /// A use is over.
    Leave,
    /// Time has passed.
    Tick,
    /// A client asks for its end.
    Remove {
        /// Whether executions that use it are stopped.
        force: bool,
    },
    /// Its files were removed.
    Removed,
    /// Its files could not be removed.
    RemovalFailed {
        /// What prevented that.
        problem: String,
    },
}

/// What is to be done about an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextDecision {
    /// Nothing.
    Nothing,
    /// The start may use it.
    Admit,
    /// The request is refused.
    Refuse(ContextRefusal),
    /// The executions that use it are stopped; its files are removed after the last one.
    StopUses,
    /// Its files are removed now; [`ContextInput::Removed`] or
    /// [`ContextInput::RemovalFailed`] follows.
    RemoveFiles,
    /// It is over, and forgotten.
    Forget,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextRefusal {
    /// It is being created.
    Creating,
    /// It is in use, and the request does not force its end.
    InUse,
    /// It is ending, or has ended.
    Ending,
    /// Its files could not be removed.
    Failed,
}
