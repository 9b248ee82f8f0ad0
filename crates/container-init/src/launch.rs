//! Turns a launch request into a running tree.

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::os::fd::{AsFd, BorrowedFd};

use ostler_model::ByteString;
use ostler_sandbox::spawn::memory::Pages;
use ostler_sandbox::spawn::{self, CArray, STACK_BYTES, SpawnSpec, SpawnStep, SpawnedChild};
use ostler_sandbox::stdio::{Channels, Stdio, failing_step};
use ostler_sandbox::tree::{EXECUTION_VARIABLE, marker};
use ostler_sys::signals;
use rustix::io::Errno;

use crate::launch_error::LaunchError;
use crate::program;
use crate::protocol::{LaunchRequest, LaunchStdio, TreeEvent};
use crate::secret_files::SecretFiles;

/// A command that runs.
#[derive(Debug)]
pub(crate) struct RunningCommand {
    /// The leader.
    pub(crate) child: SpawnedChild,
    /// The shim's ends of its standard streams.
    pub(crate) channels: Channels,
    /// Its secrets that are files.
    pub(crate) secrets: SecretFiles,
}

/// Spawns the command, right after the shim was sent its ends of the streams: from then on the
/// command may have run, even if it ends this process before that is reported.
pub(crate) fn launch(
    request: &LaunchRequest,
    own_environment: &[(OsString, OsString)],
    send_channels: impl FnOnce(&Channels) -> Result<(), Errno>,
) -> Result<RunningCommand, LaunchError> {
    let secrets = SecretFiles::write(&request.secret_files)?;
    let stdio = stdio(&request.stdio);
    let channels = Channels::open(stdio).map_err(LaunchError::at(failing_step(stdio)))?;
    let environment = environment(own_environment, &request.env);
    let cwd = request.cwd.as_path();
    let path = environment.get(&ByteString::from("PATH"));
    let mut argv = request.argv.clone();
    let found = program::find(&request.program, path, cwd);
    let found = match (found, &request.fallback) {
        (Err(Errno::NOENT), Some(fallback)) => {
            let found = program::find(fallback, path, cwd);
            if let (Ok(_), Some(zeroth)) = (&found, argv.first_mut()) {
                zeroth.clone_from(fallback);
            }
            found
        }
        (found, _) => found,
    };
    let program = found.map_err(LaunchError::at(SpawnStep::Exec.name()))?;
    send_channels(&channels).map_err(LaunchError::at(SpawnStep::Stdio.name()))?;
    let child = spawn_child(request, &channels, &program.into(), argv, environment)?;
    Ok(RunningCommand {
        child,
        channels,
        secrets,
    })
}

fn spawn_child(
    request: &LaunchRequest,
    channels: &Channels,
    program: &ByteString,
    argv: Vec<ByteString>,
    mut environment: BTreeMap<ByteString, ByteString>,
) -> Result<SpawnedChild, LaunchError> {
    environment.remove(&ByteString::from(EXECUTION_VARIABLE));
    let variables = environment
        .into_iter()
        .map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat())
        .chain(std::iter::once(marker(request.id)));
    let env: Result<Vec<_>, _> = variables.map(c_string).collect();
    let argv: Result<Vec<_>, _> = argv
        .into_iter()
        .map(|it| c_string(it.into_bytes()))
        .collect();
    let program = c_string(program.as_bytes())?;
    let cwd = c_string(request.cwd.as_bytes())?;
    let reset_signals: Vec<i32> = signals::ALL.collect();
    let spec = SpawnSpec {
        program: &program,
        expected: None,
        argv: &CArray::new(argv?),
        env: &CArray::new(env?),
        cwd: &cwd,
        stdio: channels.child.each_ref().map(AsFd::as_fd),
        terminal: channels.terminal,
        leads_session: false,
        cgroup_procs: &[],
        cgroup: None,
        dies_with_parent: false,
        reset_signals: &reset_signals,
        soft_open_files: None,
        rlimits: &request.rlimits,
        jail: None,
        restrictions: None,
    };
    let mut stack = Pages::map(STACK_BYTES).map_err(LaunchError::at(SpawnStep::Clone.name()))?;
    spawn::spawn(&spec, &mut stack)
        .map_err(|error| LaunchError::of_spawn(&error, request.cwd.as_path()))
}

fn stdio(requested: &LaunchStdio) -> Stdio<'_> {
    match requested {
        LaunchStdio::Null => Stdio::Null,
        LaunchStdio::Bytes(bytes) => Stdio::Bytes(bytes.as_bytes()),
        LaunchStdio::Piped => Stdio::Piped,
        LaunchStdio::Terminal(size) => Stdio::Terminal(*size),
    }
}

/// The container's environment with what the request replaces and adds.
fn environment(
    own: &[(OsString, OsString)],
    requested: &[(ByteString, ByteString)],
) -> BTreeMap<ByteString, ByteString> {
    let own = own.iter().cloned();
    let own = own.map(|(name, value)| (ByteString::from(name), ByteString::from(value)));
    own.chain(requested.iter().cloned()).collect()
}

fn c_string(bytes: impl Into<Vec<u8>>) -> Result<CString, LaunchError> {
    CString::new(bytes).map_err(|_| LaunchError::at(SpawnStep::Exec.name())(Errno::INVAL))
}

/// The descriptors that a shim is sent, each with its message.
pub(crate) fn messages(channels: &Channels) -> Vec<(TreeEvent, BorrowedFd<'_>)> {
    let outputs = channels.sources.iter();
    let outputs = outputs.map(|(stream, source)| (TreeEvent::Output(*stream), source.as_fd()));
    let input = channels.input.iter();
    let input = input.map(|input| (TreeEvent::Input, input.as_fd()));
    outputs.chain(input).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_variables_replace_the_container_s() {
        let own = [("A", "1"), ("B", "2")].map(|(name, value)| (name.into(), value.into()));
        let requested = [("B".into(), "3".into()), ("C".into(), "4".into())];
        let all = environment(&own, &requested);
        let all: Vec<_> = all.iter().map(|(a, b)| format!("{a}={b}")).collect();
        assert_eq!(all, ["A=1", "B=3", "C=4"]);
    }
}
