//! The list of steps, in order.

use std::path::PathBuf;

use anyhow::Result;

use super::{clients, conformance, rustdoc, steps, vm, web};
use crate::setup::Tier;
use crate::test_counts::TestCounts;
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

/// What a step occupies while it runs: of two steps in one lane, the second waits for the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Cargo's directory, and the browser: most of these steps compute.
    Compute,
    /// The installed programs; most of these steps wait.
    Programs,
    /// The whole machine: such a step measures time or limits.
    Machine,
}

#[derive(Debug)]
pub(super) struct TestStep {
    /// The name, for `--only` and the table.
    pub(super) name: &'static str,
    /// The first tier that runs it.
    pub(super) tier: Tier,
    pub(super) lane: Lane,
    /// The steps that must have ended before it begins, whatever their result. One that the tier does
    /// not have is not waited for.
    pub(super) after: &'static [&'static str],
    /// Runs it. `Err` is a step that could not be run at all.
    pub(super) run: fn(StepContext<'_>) -> Result<TestCounts>,
}

const fn step(
    name: &'static str,
    tier: Tier,
    lane: Lane,
    after: &'static [&'static str],
    run: fn(StepContext<'_>) -> Result<TestCounts>,
) -> TestStep {
    TestStep {
        name,
        tier,
        lane,
        after,
        run,
    }
}

/// Cheap checks first, so that a typing error is reported within a minute. While cargo compiles,
/// the programs that later steps need are installed; while the unit tests wait, the Python tests
/// run beside them, and other clients beside the browser.
pub(super) const STEPS: &[TestStep] = &[
    step("setup", Tier::Quick, Lane::Programs, &[], steps::setup),
    step("web", Tier::Quick, Lane::Programs, &["setup"], web::run),
    step("fmt", Tier::Quick, Lane::Compute, &[], steps::fmt),
    step("tidy", Tier::Quick, Lane::Compute, &[], steps::tidy),
    step("build", Tier::Quick, Lane::Compute, &[], steps::build),
    // It embeds the page.
    step("dist", Tier::Full, Lane::Compute, &["web"], steps::dist),
    step(
        "unit",
        Tier::Quick,
        Lane::Compute,
        &["setup", "web"],
        steps::unit,
    ),
    step("doc", Tier::Quick, Lane::Compute, &["build"], rustdoc::run),
    step("doc-all", Tier::Full, Lane::Compute, &[], steps::doc_all),
    // Its tests expect answers within seconds: not beside those of Python.
    step(
        "browser",
        Tier::Quick,
        Lane::Compute,
        &["setup", "web", "build", "dist", "python"],
        web::browser,
    ),
    step(
        "python",
        Tier::Quick,
        Lane::Programs,
        &["setup", "build", "dist"],
        steps::python,
    ),
    step(
        "conformance",
        Tier::Quick,
        Lane::Programs,
        &["setup", "build", "dist"],
        conformance::run,
    ),
    step(
        "clients",
        Tier::Quick,
        Lane::Programs,
        &["setup", "build", "dist"],
        clients::run,
    ),
    step(
        "chaos",
        Tier::Quick,
        Lane::Programs,
        &["build", "dist"],
        steps::chaos,
    ),
    step(
        "measured",
        Tier::Quick,
        Lane::Machine,
        &["setup", "build", "dist"],
        steps::measured,
    ),
    step(
        "guest",
        Tier::Full,
        Lane::Machine,
        &["build", "dist"],
        vm::run,
    ),
    step("fuzz", Tier::Full, Lane::Machine, &[], steps::fuzz),
    step("deny", Tier::Full, Lane::Compute, &["setup"], steps::deny),
];
