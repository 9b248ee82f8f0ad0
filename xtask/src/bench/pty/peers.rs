//! The peers: node-pty, the terminal library of editors and of most tools written for Node; and
//! pty-mcp, an MCP server for terminals.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Result;

use super::super::context::BenchContext;
use super::super::line_process::LineProcess;
use crate::test_env::TestEnv;
use crate::{console, setup, shell};

/// The host program of node-pty, if setup could build it; otherwise the reason is printed.
pub(super) fn open(bench: &BenchContext) -> Result<Option<LineProcess>> {
    let dir = bench.workspace.root().join(setup::PEERS);
    if !dir
        .join("node_modules/node-pty/build/Release/pty.node")
        .exists()
    {
        console::print_line(format_args!(
            "node-pty is left out: it is not built here; `cargo xtask setup --full` does"
        ));
        return Ok(None);
    }
    // Any version of Node works here, unlike for the clients.
    let node = setup::node(bench.workspace).unwrap_or_else(|_| PathBuf::from("node"));
    LineProcess::start(shell::command(node, &dir).arg("node-pty.mjs")).map(Some)
}

/// The command that starts pty-mcp, if setup has installed it; otherwise the reason is printed.
pub(super) fn pty_mcp(bench: &BenchContext, env: &TestEnv) -> Option<Command> {
    let program = setup::python_peers(bench.workspace).join("bin/pty-mcp");
    if !program.exists() {
        console::print_line(format_args!(
            "pty-mcp is left out: it is not installed here; `cargo xtask setup --full` does"
        ));
        return None;
    }
    let mut command = shell::command(program, &env.work());
    let state = env.path().join("pty-mcp");
    // What it logs while it starts is not part of a table.
    command
        .env("PTY_MCP_TMUX_CAPTURE_DIR", state)
        .stderr(Stdio::null());
    Some(command)
}
