//! `ostler resume`.

use super::ids::{self, IdListArgs};
use crate::context::CliContext;
use crate::error::CommandResult;

/// Lets go on each execution's whole tree.
///
/// # Errors
/// When the daemon cannot be asked.
pub(crate) fn run(context: &CliContext, args: &IdListArgs) -> CommandResult {
    ids::post_each(context, args, "/resume")
}
