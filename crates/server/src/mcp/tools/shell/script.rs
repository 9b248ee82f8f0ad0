//! What a script becomes: a request to run it with `/bin/sh`.

use std::time::Duration;

use ostler_engine::{Face, RetentionRequest, StartRequest};
use ostler_model::{Command, SCRIPT_BYTES, Text};

use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::tools::walls;
use crate::params::Arguments;

/// The POSIX shell; never looked up, so that a `PATH` cannot put another in its place.
const SHELL: &str = "/bin/sh";

/// The request that `arguments` make; without a timeout, which only `sync` has.
pub(super) fn request(call: Call<'_>, arguments: &mut Arguments) -> Result<StartRequest, Failure> {
    let script = arguments.required_text("command");
    check(&script)?;
    let command = Command::Shell {
        shell: Text::from(SHELL),
        script: Text::from(script),
    };
    let mut request = call.start(command, "");
    request.cwd.clone_from(&call.front.cwd);
    request.face = Face::Shell;
    // The front's is for what the tools of document 000 start (A5).
    request.retention = RetentionRequest::Default;
    request.level = walls::level(arguments)?.or(request.level);
    Ok(request)
}

fn check(script: &str) -> Result<(), Failure> {
    const KIB: usize = 1024;
    if script.trim().is_empty() {
        return Err(Failure::value(
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
        return Err(Failure::value(message).with_hint(hint));
    }
    Ok(())
}

/// How long `sync` waits until the script is ended.
pub(super) fn timeout(arguments: &Arguments) -> Option<Duration> {
    arguments.count("timeout").map(Duration::from_secs)
}
