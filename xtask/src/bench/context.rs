//! What every measurement is given.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::report::ReportRow;
use crate::shell;
use crate::test_env::TestEnv;
use crate::workspace::Workspace;

/// The context of every measurement.
#[derive(Debug)]
pub(super) struct BenchContext<'a> {
    pub(super) workspace: &'a Workspace,
    /// The number of measured rounds.
    pub(super) rounds: u32,
    pub(super) brief: bool,
    /// The measured binary.
    pub(super) binary: PathBuf,
    /// Where state is kept.
    pub(super) dir: PathBuf,
}

/// The divisor of counts in a brief run.
const BRIEF_DIVISOR: usize = 10;

impl BenchContext<'_> {
    /// A new test environment on the chosen file system, its daemon running.
    pub(super) fn started_env(&self) -> Result<TestEnv> {
        let env = self.idle_env()?;
        env.list()?;
        Ok(env)
    }

    /// A new test environment in which nothing runs yet.
    pub(super) fn idle_env(&self) -> Result<TestEnv> {
        TestEnv::new(&self.dir, &self.binary)
    }

    /// The measured binary.
    pub(super) fn ostler(&self) -> &Path {
        &self.binary
    }

    /// The count, or a fraction of it in a brief run.
    pub(super) fn count(&self, full: usize) -> usize {
        if self.brief {
            full.div_ceil(BRIEF_DIVISOR)
        } else {
            full
        }
    }

    /// Builds this program with optimization, unless the run is brief; returns its path. The
    /// packages are always the same ones: with another selection cargo may select other features
    /// of their dependencies, and compile all of them again.
    pub(super) fn build(&self, name: &str) -> Result<PathBuf> {
        let mut cargo = shell::command("cargo", self.workspace.root());
        cargo.args(["build", "--quiet", "--bin", name]);
        cargo.args(["--package", "ostler-cli", "--package", "ostler-bench"]);
        if !self.brief {
            cargo.args(["--profile", "dist"]);
        }
        shell::run(&mut cargo)?;
        let profile = if self.brief { "debug" } else { "dist" };
        Ok(self.workspace.target().join(profile).join(name))
    }
}

pub(super) type Measure = fn(&BenchContext<'_>) -> Result<Vec<ReportRow>>;
