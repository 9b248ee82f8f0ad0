//! Cargo tools. Compiling one takes minutes, so only the full tier does.

use anyhow::Result;

use super::steps::Tier;
use crate::shell;
use crate::workspace::Workspace;

/// `(crate, version, program)`, installed below the target directory.
const TOOLS: &[(&str, &str, &str)] = &[
    ("cargo-nextest", "0.9.143", "cargo-nextest"),
    ("cargo-deny", "0.20.2", "cargo-deny"),
];

/// Installs what is neither on the path nor below the target directory.
pub(super) fn ensure(workspace: &Workspace, tier: Tier) -> Result<()> {
    if tier == Tier::Quick {
        return Ok(());
    }
    let here = |program: &str| {
        shell::is_on_path(program) || workspace.tools().join("bin").join(program).exists()
    };
    for (name, version, _) in TOOLS.iter().filter(|(.., program)| !here(program)) {
        let mut cargo = shell::command("cargo", workspace.root());
        cargo.args(["install", "--locked", name, "--version", version, "--root"]);
        shell::run(cargo.arg(workspace.tools()))?;
    }
    Ok(())
}
