//! `ostler resume`.

use super::ids::{self, IdListArgs};
use crate::context::CliContext;
use crate::error::CommandResult;

/// Thaws each execution's process tree.
///
/// # Errors
/// When the daemon cannot be reached.
pub(crate) fn run(context: &CliContext, args: &IdListArgs) -> CommandResult {
    ids::post_each(context, args, "/resume")
}
