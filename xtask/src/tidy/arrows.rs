//! The arrows between crates (specification 01 §2), and which third-party crate lives where.

use cargo_metadata::{Dependency, DependencyKind, Metadata, Package};

use super::finding::Finding;

/// `(crate, the workspace crates it may use)`.
const ARROWS: &[(&str, &[&str])] = &[
    ("ostler-model", &[]),
    ("ostler-sandbox", &["ostler-model"]),
    ("ostler-journal", &["ostler-model"]),
    (
        "ostler-process",
        &["ostler-model", "ostler-journal", "ostler-sandbox"],
    ),
    ("ostler-terminal", &["ostler-model"]),
    ("ostler-policy", &["ostler-model"]),
    (
        "ostler-engine",
        &[
            "ostler-model",
            "ostler-journal",
            "ostler-process",
            "ostler-terminal",
            "ostler-policy",
        ],
    ),
    ("ostler-catalog", &["ostler-model", "ostler-journal"]),
    (
        "ostler-server",
        &[
            "ostler-model",
            "ostler-journal",
            "ostler-engine",
            "ostler-terminal",
            "ostler-catalog",
        ],
    ),
    (
        "ostler",
        &[
            "ostler-model",
            "ostler-journal",
            "ostler-process",
            "ostler-terminal",
            "ostler-engine",
        ],
    ),
    ("ostler-fuzz", &[]),
    ("ostler-testkit", &["ostler-model", "ostler-process"]),
    (
        "ostler-place-container",
        &["ostler-model", "ostler-process"],
    ),
    ("ostler-place-cluster", &["ostler-model", "ostler-process"]),
    (
        "ostler-cli",
        &[
            "ostler-model",
            "ostler-journal",
            "ostler-sandbox",
            "ostler-policy",
            "ostler-process",
            "ostler-engine",
            "ostler-catalog",
            "ostler-server",
            "ostler-place-container",
            "ostler-place-cluster",
        ],
    ),
    ("xtask", &[]),
];

/// Arrows for tests only, besides those above and the test kit: `(crate, crates, why)`.
const TEST_ARROWS: &[(&str, &[&str], &str)] = &[
    (
        "ostler-server",
        &["ostler-process"],
        "its tests speak to an engine that runs real commands in a LocalPlace",
    ),
    (
        "ostler-cli",
        &["ostler-terminal"],
        "its tests look at our window as a terminal shows it",
    ),
];

/// The crate with helper programs and the scripted place; never a normal dependency.
const FOR_TESTS: [&str; 2] = ["ostler-fuzz", "ostler-testkit"];

/// `(third-party crate, the only crates that may depend on it)`.
const FENCES: &[(&str, &[&str])] = &[
    ("avt", &["ostler-terminal"]),
    ("rmcp", &["ostler-server"]),
    ("schemars", &["ostler-server"]),
    ("axum", &["ostler-server"]),
    ("rusqlite", &["ostler-catalog"]),
    ("clap", &["ostler-cli", "ostler-testkit", "xtask"]),
    ("anyhow", &["ostler-cli", "ostler-testkit", "xtask"]),
];

/// `(crate, third-party crates it must never use)`.
const STRANGERS: &[(&str, &[&str])] = &[
    ("ostler-sandbox", &["tokio", "hyper"]),
    ("ostler-journal", &["hyper", "axum"]),
    ("ostler-process", &["hyper", "axum"]),
];

/// All the third-party crates the nouns may use: serialisation, errors, time, identifiers.
const MODEL_MAY_USE: &[&str] = &["serde", "thiserror", "jiff", "uuid", "base64"];

/// Every arrow of the workspace against the list.
pub(super) fn check(metadata: &Metadata) -> Vec<Finding> {
    let packages = metadata.workspace_packages();
    let ours: Vec<&str> = packages
        .iter()
        .map(|package| package.name.as_str())
        .collect();
    packages
        .iter()
        .flat_map(|package| check_package(package, &ours))
        .collect()
}

fn check_package(package: &Package, ours: &[&str]) -> Vec<Finding> {
    let name = package.name.as_str();
    let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == name) else {
        return vec![Finding::failure(
            name,
            0,
            "this crate is not in the list of 01 §2",
        )];
    };
    let fault = |dependency: &Dependency| {
        let to = dependency.name.as_str();
        if ours.contains(&to) {
            inside(name, to, dependency.kind, allowed)
        } else {
            outside(name, to, dependency.kind)
        }
    };
    let faults = package.dependencies.iter().filter_map(fault);
    faults
        .map(|message| Finding::failure(name, 0, message))
        .collect()
}

/// What is wrong with an arrow between two of our crates.
pub(super) fn inside(
    from: &str,
    to: &str,
    kind: DependencyKind,
    allowed: &[&str],
) -> Option<String> {
    let in_tests = kind == DependencyKind::Development;
    if FOR_TESTS.contains(&to) && !in_tests {
        return Some(format!("{to} may only stand in [dev-dependencies]"));
    }
    let for_tests = in_tests
        && (FOR_TESTS.contains(&to)
            || TEST_ARROWS
                .iter()
                .any(|(name, more, _)| *name == from && more.contains(&to)));
    if allowed.contains(&to) || for_tests {
        return None;
    }
    Some(format!("may not use {to}; allowed: {}", listed(allowed)))
}

/// What is wrong with an arrow to a third-party crate.
pub(super) fn outside(from: &str, to: &str, kind: DependencyKind) -> Option<String> {
    if kind == DependencyKind::Development {
        return None;
    }
    if let Some((_, homes)) = FENCES
        .iter()
        .find(|(name, homes)| *name == to && !homes.contains(&from))
    {
        return Some(format!("may not use {to}; it lives in {}", listed(homes)));
    }
    if STRANGERS
        .iter()
        .any(|(name, strangers)| *name == from && strangers.contains(&to))
    {
        return Some(format!("must never use {to}"));
    }
    if from == "ostler-model" && !MODEL_MAY_USE.contains(&to) {
        return Some(format!(
            "may not use {to}; the nouns use only {}",
            listed(MODEL_MAY_USE)
        ));
    }
    None
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() {
        "nothing".to_owned()
    } else {
        names.join(", ")
    }
}

/// The arrows that may leave a crate; for the tests of this module.
#[cfg(test)]
pub(super) fn allowed(name: &str) -> &'static [&'static str] {
    ARROWS
        .iter()
        .find(|(from, _)| *from == name)
        .map_or(&[], |(_, to)| to)
}
