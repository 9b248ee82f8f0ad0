//! `ostler service logs`: as `ostler logs`, by name.

use ostler_model::ErrorCode;

use super::ask::desk;
use crate::commands::logs::{self, LogsArgs};
use crate::error::{CommandError, Outcome};
use crate::setup::{Setup, block_on};

/// Shows what a service printed.
///
/// # Errors
/// When the service is unknown or never ran, or its output cannot be read or written.
pub(super) fn run(setup: &Setup, mut args: LogsArgs) -> Outcome {
    let desk = desk(setup, None)?;
    let service = block_on(desk.show(&args.id))?;
    let Some(info) = service.execution else {
        let message = format!("{} never ran", service.name);
        return Err(
            CommandError::new(ErrorCode::ProcessNotFound, message).with_hint(format!(
                "`ostler service ensure {}` starts it",
                service.name
            )),
        );
    };
    args.id = info.id;
    logs::run(setup, args)
}
