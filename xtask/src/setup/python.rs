//! A virtual environment below the target directory, with the packages the tests name.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::sh;
use crate::workspace::Workspace;

/// The packages and their versions.
const REQUIREMENTS: &str = "tests/python/requirements.txt";

/// The environment the tests run in.
pub(super) fn ensure(workspace: &Workspace) -> Result<()> {
    let asked = workspace.root().join(REQUIREMENTS);
    renew(workspace, &asked, &workspace.target().join("venv"))
}

/// Makes or renews an environment when what is asked differs from what its stamp says.
pub(super) fn renew(workspace: &Workspace, requirements: &Path, venv: &Path) -> Result<()> {
    let asked =
        fs::read_to_string(requirements).with_context(|| requirements.display().to_string())?;
    let stamp = venv.join("requirements.stamp");
    let here = venv.join("bin/python").exists();
    if here && fs::read_to_string(&stamp).is_ok_and(|has| has == asked) {
        return Ok(());
    }
    install(workspace.root(), requirements, venv)?;
    fs::write(&stamp, asked).with_context(|| stamp.display().to_string())
}

fn install(root: &Path, requirements: &Path, venv: &Path) -> Result<()> {
    sh::run(
        sh::command("python3", root)
            .args(["-m", "venv", "--clear"])
            .arg(venv),
    )?;
    let mut pip = sh::command(venv.join("bin/python"), root);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    sh::run(pip.arg("-r").arg(requirements))
}
