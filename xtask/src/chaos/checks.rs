//! What must hold after a kill.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use super::plan::Plan;
use crate::lab::{Info, Lab};

/// How long the tree of a dead shim, or of a stopped command, may take to go, in milliseconds.
const TREE_GONE_MS: u64 = 5_000;

/// Whether everything must be there, or what is missing may be told instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeping {
    /// Every line, once.
    Everything,
    /// The disk was full for a while: the first lines, each once, and that others are missing.
    OrTold,
}

/// A command that ran to its end in spite of the kill: every line once, its own status.
pub(super) fn finished(
    lab: &Lab,
    id: &str,
    plan: &Plan,
    lines: u32,
    keeping: Keeping,
) -> Result<Info> {
    let info = lab.wait(id)?;
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
    let (output, expected) = (lab.output(id)?, Plan::output(lines));
    if keeping == Keeping::OrTold && output != expected && info.is_degraded() {
        unbroken(id, &output)?;
        return Ok(info);
    }
    ensure!(
        output == expected,
        "{id}: {}",
        difference(&output, &expected)
    );
    Ok(info)
}

/// A command that ran until it was stopped: lines without a gap or a double.
pub(super) fn stopped(lab: &Lab, id: &str) -> Result<Info> {
    lab.stop(id)?;
    let info = lab.info(id)?;
    ensure!(
        info.status == "terminated",
        "{id} was stopped but is told as {}",
        info.status
    );
    unbroken(id, &lab.output(id)?)?;
    Ok(info)
}

/// A command whose shim was killed: its tree is dead, and nobody invents how it ended.
pub(super) fn lost(lab: &Lab, id: &str, before: &Info) -> Result<()> {
    let info = lab.wait(id)?;
    ensure!(
        info.status == "error" && info.exit_code.is_none(),
        "{id} lost its shim but is told as {} {:?}",
        info.status,
        info.exit_code
    );
    unbroken(id, &lab.output(id)?)?;
    nobody_left(id, before)
}

/// No process carries the execution's id any more.
pub(super) fn nobody_left(id: &str, info: &Info) -> Result<()> {
    let deadline = Instant::now() + Duration::from_millis(TREE_GONE_MS);
    for member in Lab::members(info) {
        ensure!(member.wait_gone(deadline), "{id} left process {member}");
    }
    let left = Lab::members(info);
    ensure!(left.is_empty(), "{id} left {} processes", left.len());
    Ok(())
}

/// Numbered lines from 1 on, the last of them possibly torn by the kill.
fn unbroken(id: &str, output: &str) -> Result<()> {
    let whole = output.rfind('\n').map_or("", |end| &output[..=end]);
    let count = u32::try_from(whole.lines().count())?;
    let expected = Plan::output(count);
    if whole != expected {
        bail!("{id}: {}", difference(whole, &expected));
    }
    let (torn, next) = (&output[whole.len()..], format!("line {}", count + 1));
    ensure!(
        next.starts_with(torn),
        "{id}: the torn line is {torn:?}, not a part of {next:?}"
    );
    Ok(())
}

/// Where two outputs part, for people.
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
