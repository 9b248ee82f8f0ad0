//! The list of steps, in order.

use std::path::PathBuf;

use anyhow::Result;

use super::counts::TestCounts;
use super::{clients, conformance, steps, vm};
use crate::setup::Tier;
use crate::workspace::{Profile, Workspace};

/// The context of a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepContext<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) tier: Tier,
}

impl StepContext<'_> {
    /// The binary under test: in the quick tier the one that the unit tests are built with, so that
    /// nothing is compiled twice; in the full tier the release build.
    pub(super) fn ostler(self) -> PathBuf {
        self.workspace.ostler(match self.tier {
            Tier::Quick => Profile::Dev,
            Tier::Full => Profile::Dist,
        })
    }
}

#[derive(Debug)]
pub(super) struct TestStep {
    /// The name, for `--only` and the table.
    pub(super) name: &'static str,
    /// The first tier that runs it.
    pub(super) tier: Tier,
    /// Runs it. `Err` is a step that could not be run at all.
    pub(super) run: fn(StepContext<'_>) -> Result<TestCounts>,
}

const fn step(
    name: &'static str,
    tier: Tier,
    act: fn(StepContext<'_>) -> Result<TestCounts>,
) -> TestStep {
    TestStep {
        name,
        tier,
        run: act,
    }
}

/// Cheap checks first, so that a typing error is reported within a minute.
pub(super) const STEPS: &[TestStep] = &[
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
    step("guest", Tier::Full, vm::run),
    step("fuzz", Tier::Full, steps::fuzz),
    step("deny", Tier::Full, steps::deny),
];
