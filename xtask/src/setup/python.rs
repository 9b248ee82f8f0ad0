//! Python virtual environments below the target directory: one with the packages of the tests, one
//! with the peers of the benchmarks.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::npm::PEERS;
use super::steps::Tier;
use crate::console::print_line;
use crate::shell;
use crate::workspace::Workspace;

/// The packages and their versions.
const REQUIREMENTS: &str = "tests/python/requirements.txt";

/// Installs the environment of the tests, and for the full tier that of the peers.
pub(super) fn ensure(workspace: &Workspace, tier: Tier) -> Result<()> {
    let requirements = workspace.root().join(REQUIREMENTS);
    renew(workspace, &requirements, &workspace.target().join("venv"))?;
    if tier == Tier::Full {
        let requirements = workspace.root().join(PEERS).join("requirements.txt");
        // Benchmarks skip a peer that cannot be installed: no test needs one.
        if let Err(error) = renew(workspace, &requirements, &peers(workspace)) {
            print_line(format_args!(
                "setup: {} is left out: {error:#}",
                requirements.display()
            ));
        }
    }
    Ok(())
}

/// The environment of the peers from PyPI.
pub(crate) fn peers(workspace: &Workspace) -> PathBuf {
    workspace.target().join("peers")
}

/// Creates or renews an environment if the requirements differ from its stamp.
pub(super) fn renew(workspace: &Workspace, requirements: &Path, venv: &Path) -> Result<()> {
    let requirements_text =
        fs::read_to_string(requirements).with_context(|| requirements.display().to_string())?;
    let stamp = venv.join("requirements.stamp");
    let here = venv.join("bin/python").exists();
    if here && fs::read_to_string(&stamp).is_ok_and(|has| has == requirements_text) {
        return Ok(());
    }
    install(workspace.root(), requirements, venv)?;
    fs::write(&stamp, requirements_text).with_context(|| stamp.display().to_string())
}

fn install(root: &Path, requirements: &Path, venv: &Path) -> Result<()> {
    shell::run(
        shell::command("python3", root)
            .args(["-m", "venv", "--clear"])
            .arg(venv),
    )?;
    let mut pip = shell::command(venv.join("bin/python"), root);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    shell::run(pip.arg("-r").arg(requirements))
}
