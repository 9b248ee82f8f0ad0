//! `ostler service logs`: `ostler logs` by the name of a service.

use ostler_model::ErrorCode;

use super::client::service_client;
use crate::commands::logs::{self, LogsArgs};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};

/// Shows the output of a service.
///
/// # Errors
/// When the service is unknown or never ran, or its output cannot be read or written.
pub(super) fn run(context: &CliContext, mut args: LogsArgs) -> CommandResult {
    let client = service_client(context, None)?;
    let service = block_on(client.show(&args.id))?;
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
    logs::run(context, args)
}
