//! A virtual environment below the target directory, with the packages the tests name.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::sh;
use crate::workspace::Workspace;

/// The packages and their versions.
const REQUIREMENTS: &str = "tests/python/requirements.txt";

/// Makes or renews the environment when what is asked differs from what its stamp says.
pub(super) fn ensure(workspace: &Workspace) -> Result<()> {
    let asked = fs::read_to_string(workspace.root().join(REQUIREMENTS)).context(REQUIREMENTS)?;
    let venv = workspace.target().join("venv");
    let stamp = venv.join("requirements.stamp");
    if workspace.python().exists() && fs::read_to_string(&stamp).is_ok_and(|has| has == asked) {
        return Ok(());
    }
    install(workspace, &venv)?;
    fs::write(&stamp, asked).with_context(|| format!("{}", stamp.display()))
}

fn install(workspace: &Workspace, venv: &Path) -> Result<()> {
    let root = workspace.root();
    sh::run(
        sh::command("python3", root)
            .args(["-m", "venv", "--clear"])
            .arg(venv),
    )?;
    let mut pip = sh::command(workspace.python(), root);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    sh::run(pip.args(["-r", REQUIREMENTS]))
}
