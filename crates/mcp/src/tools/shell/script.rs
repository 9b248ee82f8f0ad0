//! Converts a script to a request to run it with `/bin/sh`.

use std::time::Duration;

use ostler_engine::{ClientKind, RetentionRequest, StartRequest};
use ostler_model::{ByteString, Command, SCRIPT_BYTES};

use crate::tool_call::ToolCall;
use crate::tools::params::isolation;
use ostler_interface::error::ApiError;
use ostler_interface::params::Arguments;

/// The POSIX shell, by absolute path, so that `PATH` cannot replace it.
const SHELL: &str = "/bin/sh";

/// The request from `arguments`, without a timeout, which only `sync` has.
pub(super) fn start_request(
    call: ToolCall<'_>,
    arguments: &mut Arguments,
) -> Result<StartRequest, ApiError> {
    let script = arguments.required_text("command");
    check_script(&script)?;
    let command = Command::Shell {
        shell: ByteString::from(SHELL),
        script: ByteString::from(script),
    };
    let mut request = call.start_request(command, "");
    request.cwd.clone_from(&call.client_context.cwd);
    request.client_kind = ClientKind::Shell;
    // The client's default retention applies to the `command_` tools.
    request.options.retention = RetentionRequest::Default;
    request.options.level = isolation::parse_level(arguments)?.or(request.options.level);
    Ok(request)
}

fn check_script(script: &str) -> Result<(), ApiError> {
    const KIB: usize = 1024;
    if script.trim().is_empty() {
        return Err(ApiError::value(
            "parameter 'command' is empty; allowed: a script for sh",
        ));
    }
    if script.len() > SCRIPT_BYTES {
        let message = format!(
            "parameter 'command' is {} bytes long; allowed: at most {SCRIPT_BYTES} ({} KiB)",
            script.len(),
            SCRIPT_BYTES / KIB
        );
        let hint = "write a longer script to a file and run that";
        return Err(ApiError::value(message).with_hint(hint));
    }
    Ok(())
}

/// The timeout of a `sync` call.
pub(super) fn parse_timeout(arguments: &Arguments) -> Option<Duration> {
    arguments.count("timeout").map(Duration::from_secs)
}
