//! Cargo, and the build that every step shares.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::plan::StepContext;
use crate::shell;

/// The flags of every build: with the same packages and features, cargo compiles nothing twice. No
/// code is disabled by the feature.
pub(super) const WORKSPACE_FLAGS: &[&str] = &[
    "--workspace",
    "--features",
    "ostler-mcp/conformance-fixtures",
];
/// `-D warnings` in the form that `cargo clippy` hands arguments to its driver.
const DENY_WARNINGS: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";
/// Runs tests without the variables of the build: some of them run cargo themselves.
const TEST_RUNNER: &str = r#"target."cfg(all())".runner=["env", "-u", "RUSTC_WORKSPACE_WRAPPER", "-u", "CLIPPY_ARGS", "-u", "CARGO_INCREMENTAL"]"#;

/// Cargo in the workspace, with the installed tools on its path.
pub(super) fn command(context: StepContext<'_>, args: &[&str]) -> Command {
    let workspace = context.workspace;
    let mut cargo = shell::command("cargo", workspace.root());
    let tools = workspace.tools().join("bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::split_paths(&path).chain([tools]);
    if let Ok(path) = std::env::join_paths(path) {
        cargo.env("PATH", path);
    }
    cargo.args(args);
    cargo
}

/// Cargo with clippy's driver as the compiler of the workspace's crates: it reports lints and
/// generates code in one pass, where `cargo clippy` beside a build analyses every crate twice, which
/// took half of the processor time of both. Without incremental compilation: a clean clone has
/// nothing to reuse, and what it stores is most of a target directory.
///
/// Every step that builds uses this: with another compiler, cargo builds the workspace anew.
pub(super) fn workspace_build(context: StepContext<'_>, args: &[&str]) -> Result<Command> {
    let root = context.workspace.root();
    let sysroot = shell::capture(shell::command("rustc", root).args(["--print", "sysroot"]))?;
    let driver = Path::new(sysroot.trim()).join("bin/clippy-driver");
    let mut cargo = command(context, args);
    cargo
        .args(["--config", TEST_RUNNER])
        .env("RUSTC_WORKSPACE_WRAPPER", driver)
        .env("CLIPPY_ARGS", DENY_WARNINGS)
        .env("CARGO_INCREMENTAL", "0");
    Ok(cargo)
}
