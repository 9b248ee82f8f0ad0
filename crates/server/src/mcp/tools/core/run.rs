//! What is run: a script, or a program and its arguments.

use ostler_engine::StartRequest;
use ostler_model::{Command, Text};

use crate::error::Failure;
use crate::mcp::context::Call;
use crate::params::{Arguments, CommandArgument, Kind, Parameter};

/// The shell of scripts that name none, and the one where that is missing.
const SHELL: &str = "bash";
const OTHER_SHELL: &str = "sh";

pub(in crate::mcp::tools) const COMMAND: Parameter = Parameter::required(
    "command",
    Kind::Command,
    "A text is a bash script: \"cd app && make | tail\". A list is one program and its arguments, \
     no shell: [\"git\",\"log\"]",
);

/// Reads `command`; a script is for `shell`, and for [`SHELL`] where none is named.
pub(in crate::mcp::tools) fn program(
    arguments: &mut Arguments,
    shell: Option<&str>,
) -> Result<Command, Failure> {
    match arguments.run("command") {
        None => Err(Failure::value(
            "parameter 'command' is missing; allowed: a text, which is a script for bash, or a \
             list of a program and its arguments, as in [\"ls\", \"-l\"]",
        )),
        Some(CommandArgument::Program(_)) if shell.is_some() => Err(Failure::value(
            "parameter 'shell' does not go with a list as 'command', which no shell interprets; \
             allowed: shell with a text",
        )),
        Some(CommandArgument::Program(words)) => {
            let mut words = words.into_iter().map(Text::from);
            Ok(Command::Argv {
                program: words.next().unwrap_or_default(),
                args: words.collect(),
            })
        }
        Some(CommandArgument::Script(script)) => Ok(Command::Shell {
            shell: Text::from(shell.unwrap_or(SHELL)),
            script: script.into(),
        }),
    }
}

/// Has a script run by the shell there is. To be called when the request's environment is
/// complete.
pub(in crate::mcp::tools) fn choose_shell(call: Call<'_>, request: &mut StartRequest) {
    if !matches!(request.command, Command::Shell { .. }) || call.engine.finds(request, SHELL) {
        return;
    }
    if let Command::Shell { shell, .. } = &mut request.command {
        *shell = Text::from(OTHER_SHELL);
    }
}
