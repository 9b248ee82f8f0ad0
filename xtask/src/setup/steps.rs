//! The steps of setup, in order.

use anyhow::Result;

use super::{apt, debian_root, npm, python, servers, tools};
use crate::console::{CheckResult, print_line};
use crate::workspace::Workspace;

/// What setup can be told.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct SetupArgs {
    /// Also what only the full tier needs, some of it compiled from source for minutes
    #[arg(long)]
    pub(crate) full: bool,
}

/// The tier of the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tier {
    /// On every change.
    Quick,
    /// Before an issue is closed.
    Full,
}

impl Tier {
    /// `Full` for true.
    pub(crate) const fn of(full: bool) -> Self {
        if full { Self::Full } else { Self::Quick }
    }
}

/// Installs everything that is missing.
pub(crate) fn run(workspace: &Workspace, args: &SetupArgs) -> Result<CheckResult> {
    let tier = Tier::of(args.full);
    apt::ensure(workspace.root(), tier)?;
    python::ensure(workspace, tier)?;
    npm::ensure(workspace, tier)?;
    servers::ensure(workspace, tier)?;
    debian_root::ensure(workspace);
    tools::ensure(workspace, tier)?;
    print_line(format_args!(
        "setup: everything the {tier:?} tier needs is here"
    ));
    Ok(CheckResult::Holds)
}
