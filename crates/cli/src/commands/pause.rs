//! `ostler pause`.

use super::ids::{self, IdListArgs};
use crate::error::Outcome;
use crate::setup::Setup;

/// Freezes each execution's whole tree.
///
/// # Errors
/// When the daemon cannot be asked.
pub(crate) fn run(setup: &Setup, args: &IdListArgs) -> Outcome {
    ids::post_each(setup, args, "/pause")
}
