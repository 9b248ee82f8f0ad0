//! All rules over the whole repository.

use std::path::PathBuf;

use anyhow::Result;

#[cfg(test)]
use super::diagnostic::Diagnostic;
use super::diagnostic::Severity;
use super::sizes::{FUNCTION_AIM, Sizes, percentile};
use super::source::{SourceFile, files_below};
use super::{crate_deps, forbidden, mod_files, paths, requirements};
use crate::console::{CheckResult, print_line};
use crate::workspace::Workspace;

/// What tidy can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct TidyArgs {}

/// Says every finding; fails on any failure.
pub(crate) fn run(workspace: &Workspace, _: &TidyArgs) -> Result<CheckResult> {
    let mut findings = crate_deps::check(&workspace.metadata);
    findings.extend(paths::check(workspace.root())?);
    findings.extend(requirements::check(workspace.root())?);
    let mut sizes = Sizes::default();
    for source in sources(workspace)? {
        findings.extend(sizes.measure(&source));
        findings.extend(mod_files::check(&source));
        findings.extend(forbidden::check(&source));
    }
    findings.sort();
    for finding in &findings {
        print_line(format_args!("{finding}"));
    }
    print_sizes(&mut sizes);
    let failures = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Failure)
        .count();
    print_line(format_args!(
        "tidy: {failures} failures, {} warnings",
        findings.len() - failures
    ));
    Ok(CheckResult::from_success(failures == 0))
}

fn sources(workspace: &Workspace) -> Result<Vec<SourceFile>> {
    let mut sources = Vec::new();
    for package in workspace.metadata.workspace_packages() {
        let dir = package
            .manifest_path
            .parent()
            .map_or_else(PathBuf::new, Into::into);
        for path in files_below(&dir, &["rs"])? {
            sources.push(SourceFile::read(workspace.root(), &path, &package.name)?);
        }
    }
    Ok(sources)
}

fn print_sizes(sizes: &mut Sizes) {
    let files = (
        percentile(&mut sizes.files, 50),
        percentile(&mut sizes.files, 95),
    );
    let functions = (
        percentile(&mut sizes.functions, 50),
        percentile(&mut sizes.functions, 95),
    );
    let (median, p95) = FUNCTION_AIM;
    print_line(format_args!(
        "functions: {} of them, median {} lines (aim {median}), p95 {} (aim {p95})",
        sizes.functions.len(),
        functions.0,
        functions.1
    ));
    print_line(format_args!(
        "files: {} of them, median {} lines without tests, p95 {} (aim 500)",
        sizes.files.len(),
        files.0,
        files.1
    ));
}

/// The failures among findings, as text; for the tests of the rules.
#[cfg(test)]
pub(super) fn failures(findings: &[Diagnostic]) -> Vec<String> {
    let failing = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Failure);
    failing.map(ToString::to_string).collect()
}
