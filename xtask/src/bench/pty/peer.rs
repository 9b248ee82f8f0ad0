//! The peer: node-pty, the terminal of editors and of most tools written for Node.

use std::path::PathBuf;

use anyhow::Result;

use super::super::orders::Orders;
use super::super::run::Bench;
use crate::{setup, sh, ui};

/// Its host, if setup could build it; the reason is said where not.
pub(super) fn open(bench: &Bench) -> Result<Option<Orders>> {
    let dir = bench.workspace.root().join(setup::PEERS);
    if !dir
        .join("node_modules/node-pty/build/Release/pty.node")
        .exists()
    {
        ui::say(format_args!(
            "node-pty is left out: it is not built here; `cargo xtask setup --full` does"
        ));
        return Ok(None);
    }
    // Any Node will do here, unlike for the clients.
    let node = setup::node(bench.workspace).unwrap_or_else(|_| PathBuf::from("node"));
    Orders::start(sh::command(node, &dir).arg("node-pty.mjs")).map(Some)
}
