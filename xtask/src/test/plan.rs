//! Which steps there are, and in which order.

use std::path::PathBuf;

use anyhow::Result;

use super::tally::Tally;
use super::{clients, conformance, guest, steps};
use crate::setup::Tier;
use crate::workspace::{Profile, Workspace};

/// What a step needs to know.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    /// Where things are.
    pub(super) workspace: &'a Workspace,
    /// How much is asked.
    pub(super) tier: Tier,
}

impl Context<'_> {
    /// The binary that is tested: in the quick tier the one that the unit tests are built with,
    /// so that nothing is compiled twice; in the full tier the one that ships.
    pub(super) fn ostler(self) -> PathBuf {
        self.workspace.ostler(match self.tier {
            Tier::Quick => Profile::Dev,
            Tier::Full => Profile::Release,
        })
    }
}

/// One step.
#[derive(Debug)]
pub(super) struct Step {
    /// Its name, for `--only` and the table.
    pub(super) name: &'static str,
    /// The first tier that runs it.
    pub(super) tier: Tier,
    /// Does it. `Err` is a step that could not be done at all.
    pub(super) act: fn(Context<'_>) -> Result<Tally>,
}

const fn step(name: &'static str, tier: Tier, act: fn(Context<'_>) -> Result<Tally>) -> Step {
    Step { name, tier, act }
}

/// Cheap checks first, so that a typing error is told within a minute.
pub(super) const STEPS: &[Step] = &[
    step("setup", Tier::Quick, steps::setup),
    step("fmt", Tier::Quick, steps::fmt),
    step("tidy", Tier::Quick, steps::tidy),
    step("clippy", Tier::Quick, steps::clippy),
    step("doc", Tier::Quick, steps::doc),
    step("build", Tier::Quick, steps::build),
    step("unit", Tier::Quick, steps::unit),
    step("doctest", Tier::Quick, steps::doctest),
    step("python", Tier::Quick, steps::python),
    step("conformance", Tier::Quick, conformance::run),
    step("clients", Tier::Quick, clients::run),
    step("chaos", Tier::Quick, steps::chaos),
    step("guest", Tier::Full, guest::run),
    step("fuzz", Tier::Full, steps::fuzz),
    step("deny", Tier::Full, steps::deny),
];
