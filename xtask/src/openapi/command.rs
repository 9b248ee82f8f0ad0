//! `cargo xtask openapi`.

use std::fs;

use anyhow::{Context, Result};

use super::document::document;
use super::json_text::json_text;
use super::rust_items::RustItems;
use crate::console::{CheckResult, print_line};
use crate::workspace::Workspace;

/// The document, from the repository's root.
pub(crate) const PATH: &str = "docs/openapi.json";

/// What the verb can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct OpenApiArgs {}

/// Writes the document.
pub(crate) fn run(workspace: &Workspace, _: &OpenApiArgs) -> Result<CheckResult> {
    let text = generate(workspace)?;
    let path = workspace.root().join(PATH);
    fs::write(&path, &text).with_context(|| path.display().to_string())?;
    print_line(format_args!("{PATH}: {} bytes", text.len()));
    Ok(CheckResult::Holds)
}

/// The document as it should stand in the repository.
pub(crate) fn generate(workspace: &Workspace) -> Result<String> {
    let items = RustItems::read(workspace.root())?;
    let package = workspace.metadata.workspace_packages().into_iter();
    let mut package = package.filter(|package| package.name == "ostler-http");
    let version = package.next().context("there is no crate ostler-http")?;
    let document = document(&items, &version.version.to_string())?;
    Ok(json_text(&document))
}

/// What is wrong with the document in the repository; none where it is what the source says.
pub(crate) fn check(workspace: &Workspace) -> Result<Option<String>> {
    let text = fs::read_to_string(workspace.root().join(PATH)).unwrap_or_default();
    let is_current = text == generate(workspace)?;
    let message = "is not what routes, handlers and bodies say: run `cargo xtask openapi`";
    Ok((!is_current).then(|| message.to_owned()))
}
