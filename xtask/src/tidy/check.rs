//! Applies all rules to the repository.

use anyhow::Result;

use super::diagnostic::{Diagnostic, Severity};
use super::sizes::{FUNCTION_AIM, Sizes, percentile};
use super::source::SourcePackage;
use super::type_names::TypeNames;
use super::{
    banned_words, crate_deps, forbidden, hosts, mod_files, module_cycles, orphans, paths,
    requirements, tuple_params,
};
use crate::console::{CheckResult, print_line};
use crate::openapi;
use crate::workspace::Workspace;

/// What tidy can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct TidyArgs {}

/// Prints every finding; fails on any failure.
pub(crate) fn run(workspace: &Workspace, _: &TidyArgs) -> Result<CheckResult> {
    let mut findings = crate_deps::check(&workspace.metadata);
    findings.extend(paths::check(workspace.root())?);
    findings.extend(hosts::check(workspace.root())?);
    findings.extend(requirements::check(workspace.root())?);
    let document = openapi::check(workspace)?;
    findings.extend(document.map(|it| Diagnostic::failure(openapi::PATH, 0, it)));
    let mut sizes = Sizes::default();
    let mut types = TypeNames::default();
    for package in packages(workspace)? {
        findings.extend(orphans::check(&package.dir, &package.sources));
        findings.extend(module_cycles::check(&package));
        findings.extend(tuple_params::check(&package));
        for source in &package.sources {
            findings.extend(sizes.measure(source));
            findings.extend(mod_files::check(source));
            findings.extend(forbidden::check(source));
            findings.extend(banned_words::check(source));
            types.read(source);
        }
    }
    findings.extend(types.check());
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

/// The Rust files of each crate.
fn packages(workspace: &Workspace) -> Result<Vec<SourcePackage>> {
    let packages = workspace.metadata.workspace_packages();
    packages
        .into_iter()
        .map(|package| {
            let manifest = package.manifest_path.as_std_path();
            SourcePackage::read(workspace.root(), manifest, &package.name)
        })
        .collect()
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
