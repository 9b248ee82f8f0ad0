//! Invariants that must hold after a kill.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use super::plan::CommandPlan;
use crate::test_env::{CliInfo, TestEnv};

/// The timeout for the process tree of a dead shim or of a stopped command, in milliseconds.
const TREE_GONE_MS: u64 = 5_000;

/// Whether all output must be there, or gaps may be reported instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputGuarantee {
    /// Every line, once.
    Complete,
    /// The disk was full for a while: the first lines, each once, and a report that others are
    /// missing.
    CompleteOrDegraded,
}

/// Checks a command that completed in spite of the kill: every line once, and its own exit code.
pub(super) fn check_finished(
    env: &TestEnv,
    id: &str,
    plan: &CommandPlan,
    lines: u32,
    guarantee: OutputGuarantee,
) -> Result<CliInfo> {
    let info = env.wait(id)?;
    let code = Some(i32::from(plan.code));
    let status = if plan.code == 0 {
        "completed"
    } else {
        "failed"
    };
    ensure!(
        info.exit_code == code && info.status == status,
        "{id} returned {code:?} but is told as {} {:?} ({:?})",
        info.status,
        info.exit_code,
        info.error_message
    );
    let (output, expected) = (env.output(id)?, CommandPlan::output(lines));
    if guarantee == OutputGuarantee::CompleteOrDegraded && output != expected && info.is_degraded()
    {
        check_contiguous(id, &output)?;
        return Ok(info);
    }
    ensure!(
        output == expected,
        "{id}: {}",
        difference(&output, &expected)
    );
    Ok(info)
}

/// Checks a command that ran until it was stopped: lines without gaps or duplicates.
pub(super) fn check_stopped(env: &TestEnv, id: &str) -> Result<CliInfo> {
    env.stop(id)?;
    let info = env.info(id)?;
    ensure!(
        info.status == "terminated",
        "{id} was stopped but is told as {} ({:?})",
        info.status,
        info.error_message
    );
    check_contiguous(id, &env.output(id)?)?;
    Ok(info)
}

/// Checks a command whose shim was killed: its tree is dead, and no exit code is invented.
pub(super) fn check_lost(env: &TestEnv, id: &str, before: &CliInfo) -> Result<()> {
    let info = env.wait(id)?;
    ensure!(
        info.status == "error" && info.exit_code.is_none(),
        "{id} lost its shim but is told as {} {:?}",
        info.status,
        info.exit_code
    );
    check_contiguous(id, &env.output(id)?)?;
    check_tree_gone(id, before)
}

/// Checks that no process has the execution's id in its environment any more.
pub(super) fn check_tree_gone(id: &str, info: &CliInfo) -> Result<()> {
    let deadline = Instant::now() + Duration::from_millis(TREE_GONE_MS);
    for member in TestEnv::members(info) {
        ensure!(member.wait_gone(deadline), "{id} left process {member}");
    }
    let remaining = TestEnv::members(info);
    ensure!(
        remaining.is_empty(),
        "{id} left {} processes",
        remaining.len()
    );
    Ok(())
}

/// Checks numbered lines from 1 on, the last of them possibly torn by the kill.
fn check_contiguous(id: &str, output: &str) -> Result<()> {
    let whole = output.rfind('\n').map_or("", |end| &output[..=end]);
    let count = u32::try_from(whole.lines().count())?;
    let expected = CommandPlan::output(count);
    if whole != expected {
        bail!("{id}: {}", difference(whole, &expected));
    }
    let (partial, next) = (&output[whole.len()..], format!("line {}", count + 1));
    ensure!(
        next.starts_with(partial),
        "{id}: the torn line is {partial:?}, not a part of {next:?}"
    );
    Ok(())
}

/// Where two outputs differ, for people.
fn difference(output: &str, expected: &str) -> String {
    let mut pairs = output.lines().zip(expected.lines()).enumerate();
    let (got, wanted) = (output.lines().count(), expected.lines().count());
    match pairs.find(|(_, (a, b))| a != b) {
        Some((at, (a, b))) => format!("line {} is {a:?}, not {b:?}", at + 1),
        None => format!(
            "{got} lines ({} bytes), not {wanted} ({})",
            output.len(),
            expected.len()
        ),
    }
}
