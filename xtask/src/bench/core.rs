//! .
use crate::{ui::Verdict, workspace::Workspace};
use anyhow::{Result, bail};
/// .
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}
pub(crate) fn run(_: &Workspace, _: &Args) -> Result<Verdict> {
    bail!("not yet")
}
