//! Runs the tests as an unprivileged user, without cgroup delegation.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use crate::test_env::{CliEnv, CommandOutput, to_output};

/// A user id that owns nothing.
const NOBODY: u32 = 65_534;

fn run_as_nobody(cli: &CliEnv, program: &Path, args: &[&str]) -> CommandOutput {
    let mut command = cli.command_for(program, args);
    command.uid(NOBODY).gid(NOBODY);
    to_output(command.output().unwrap())
}

#[test]
fn everything_works_without_privileges() {
    if !rustix::process::geteuid().is_root() {
        // All other tests run in this case already.
        return;
    }
    let cli = CliEnv::new();
    let program = cli.path().join("ostler");
    std::fs::copy(env!("CARGO_BIN_EXE_ostler"), &program).unwrap();
    chown(cli.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    chown(cli.path().join("run"), Some(NOBODY), Some(NOBODY)).unwrap();
    let ostler = |args: &[&str]| run_as_nobody(&cli, &program, args);

    let who = ostler(&["run", "id", "-u"]);
    assert_eq!((who.code, who.out.as_str()), (0, "65534\n"), "{who:?}");
    let id = ostler(&[
        "run",
        "-d",
        "sh",
        "-c",
        "echo up; setsid sleep 300 & exec sleep 300",
    ]);
    let id = id.out.trim();
    assert_eq!(ostler(&["ps", "-q"]).out.trim(), id);
    let stopped = ostler(&["stop", "--grace", "200ms", id]);
    assert_eq!(stopped.code, 0, "{stopped:?}");
    let info = ostler(&["info", "--json", id]);
    let info: serde_json::Value = serde_json::from_str(&info.out).unwrap();
    assert_eq!(info["survivors"], serde_json::json!([]));
    assert_eq!(ostler(&["logs", "--no-time", id]).out, "up\n");
    assert_eq!(ostler(&["shutdown"]).code, 0);
}
