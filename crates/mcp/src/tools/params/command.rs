//! Parses the command: a script, or a program and its arguments.

use ostler_engine::StartRequest;
use ostler_model::{ByteString, Command, SCRIPT_BYTES};

use crate::tool_call::ToolCall;
use ostler_interface::error::ApiError;
use ostler_interface::params::{Arguments, CommandArgument, Parameter, ParameterKind};

/// The default shell of scripts, replaced by `sh` where it is missing.
const SHELL: &str = "bash";
const OTHER_SHELL: &str = "sh";

pub(in crate::tools) const COMMAND: Parameter = Parameter::required(
    "command",
    ParameterKind::Command,
    "A text is a bash script: \"cd app && make | tail\". A list is one program and its arguments, \
     no shell: [\"git\",\"log\"]",
);

/// Reads `command`; a script is for `shell`, by default [`SHELL`].
pub(in crate::tools) fn parse_command(
    arguments: &mut Arguments,
    shell: Option<&str>,
) -> Result<Command, ApiError> {
    match arguments.take_command("command") {
        None => Err(ApiError::value(
            "parameter 'command' is missing; allowed: a text, which is a script for bash, or a \
             list of a program and its arguments, as in [\"ls\", \"-l\"]",
        )),
        Some(CommandArgument::Program(_)) if shell.is_some() => Err(ApiError::value(
            "parameter 'shell' does not go with a list as 'command', which no shell interprets; \
             allowed: shell with a text",
        )),
        Some(CommandArgument::Program(words)) => {
            let mut words = words.into_iter().map(ByteString::from);
            Ok(Command::Argv {
                program: words.next().unwrap_or_default(),
                args: words.collect(),
            })
        }
        Some(CommandArgument::Script(script)) => {
            check_script(&script)?;
            Ok(Command::Shell {
                shell: ByteString::from(shell.unwrap_or(SHELL)),
                script: script.into(),
            })
        }
    }
}

/// Refuses a script that no shell can be given: the engine would name the argument it becomes.
fn check_script(script: &str) -> Result<(), ApiError> {
    if script.contains('\0') {
        return Err(ApiError::value(
            "the script in 'command' contains a NUL byte",
        ));
    }
    if script.len() > SCRIPT_BYTES {
        let message = format!(
            "the script in 'command' is {} bytes long, at most {SCRIPT_BYTES} are allowed",
            script.len()
        );
        let hint = "write a longer script to a file and run that";
        return Err(ApiError::value(message).with_hint(hint));
    }
    Ok(())
}

/// Chooses an installed shell for a script. Must be called when the request's environment is
/// complete.
pub(in crate::tools) fn choose_shell(call: ToolCall<'_>, request: &mut StartRequest) {
    if !matches!(request.command, Command::Shell { .. }) || call.engine.has_program(request, SHELL)
    {
        return;
    }
    if let Command::Shell { shell, .. } = &mut request.command {
        *shell = ByteString::from(OTHER_SHELL);
    }
}
