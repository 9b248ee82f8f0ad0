//! Dependencies between crates, and the crates that may use a third-party crate.

use cargo_metadata::{Dependency, DependencyKind, Metadata, Package};

use super::diagnostic::Diagnostic;

/// `(crate, the workspace crates that it may use)`.
const ALLOWED_DEPS: &[(&str, &[&str])] = &[
    ("ostler-model", &[]),
    ("ostler-escape", &[]),
    ("ostler-sys", &["ostler-model"]),
    ("ostler-sandbox", &["ostler-model", "ostler-sys"]),
    ("ostler-journal", &["ostler-model"]),
    ("ostler-report", &["ostler-model", "ostler-escape"]),
    (
        "ostler-export",
        &["ostler-model", "ostler-journal", "ostler-report"],
    ),
    ("ostler-backend", &["ostler-model", "ostler-journal"]),
    (
        "ostler-egress",
        &["ostler-model", "ostler-sys", "ostler-sandbox"],
    ),
    (
        "ostler-backend-local",
        &[
            "ostler-backend",
            "ostler-model",
            "ostler-journal",
            "ostler-sys",
            "ostler-sandbox",
            "ostler-egress",
            "ostler-container-init",
        ],
    ),
    (
        "ostler-container-init",
        &["ostler-model", "ostler-sys", "ostler-sandbox"],
    ),
    ("ostler-terminal", &["ostler-model", "ostler-escape"]),
    ("ostler-policy", &["ostler-model"]),
    ("ostler-template", &["ostler-model"]),
    ("ostler-lifecycle", &["ostler-model", "ostler-escape"]),
    ("ostler-detect", &["ostler-model", "ostler-policy"]),
    (
        "ostler-engine",
        &[
            "ostler-model",
            "ostler-sys",
            "ostler-escape",
            "ostler-journal",
            "ostler-export",
            "ostler-backend",
            "ostler-backend-local",
            "ostler-terminal",
            "ostler-policy",
            "ostler-lifecycle",
            "ostler-detect",
        ],
    ),
    (
        "ostler-store",
        &["ostler-model", "ostler-journal", "ostler-policy"],
    ),
    ("ostler-api", &["ostler-model"]),
    (
        "ostler-render",
        &["ostler-model", "ostler-journal", "ostler-escape"],
    ),
    (
        "ostler-interface",
        &[
            "ostler-model",
            "ostler-journal",
            "ostler-engine",
            "ostler-policy",
            "ostler-terminal",
            "ostler-api",
            "ostler-render",
            "ostler-store",
            "ostler-template",
        ],
    ),
    (
        "ostler-http",
        &[
            "ostler-model",
            "ostler-sys",
            "ostler-journal",
            "ostler-export",
            "ostler-engine",
            "ostler-terminal",
            "ostler-api",
            "ostler-render",
            "ostler-report",
            "ostler-interface",
            "ostler-store",
        ],
    ),
    (
        "ostler-mcp",
        &[
            "ostler-model",
            "ostler-sys",
            "ostler-escape",
            "ostler-journal",
            "ostler-engine",
            "ostler-terminal",
            "ostler-api",
            "ostler-render",
            "ostler-interface",
            "ostler-store",
        ],
    ),
    ("ostler-interface-tests", &["ostler-http", "ostler-mcp"]),
    (
        "ostler",
        &[
            "ostler-model",
            "ostler-journal",
            "ostler-export",
            "ostler-backend",
            "ostler-backend-local",
            "ostler-terminal",
            "ostler-engine",
        ],
    ),
    ("ostler-fuzz", &[]),
    ("ostler-web", &[]),
    ("ostler-testkit", &["ostler-model", "ostler-backend"]),
    (
        "ostler-backend-container",
        &[
            "ostler-backend",
            "ostler-backend-local",
            "ostler-container-init",
            "ostler-model",
            "ostler-sys",
        ],
    ),
    (
        "ostler-backend-slurm",
        &["ostler-model", "ostler-journal", "ostler-backend"],
    ),
    (
        "ostler-cli",
        &[
            "ostler-model",
            "ostler-sys",
            "ostler-escape",
            "ostler-terminal",
            "ostler-journal",
            "ostler-export",
            "ostler-sandbox",
            "ostler-policy",
            "ostler-backend",
            "ostler-backend-local",
            "ostler-engine",
            "ostler-store",
            "ostler-template",
            "ostler-api",
            "ostler-render",
            "ostler-interface",
            "ostler-http",
            "ostler-mcp",
            "ostler-web",
            "ostler-backend-container",
            "ostler-backend-slurm",
        ],
    ),
    // The programs of the benchmarks.
    (
        "ostler-bench",
        &[
            "ostler",
            "ostler-model",
            "ostler-sandbox",
            "ostler-backend",
            "ostler-backend-local",
            "ostler-journal",
            "ostler-store",
            "ostler-egress",
            "ostler-terminal",
        ],
    ),
    ("xtask", &[]),
];

/// Dependencies for tests only, besides those above and the test kit: `(crate, crates, why)`.
const ALLOWED_DEV_DEPS: &[(&str, &[&str], &str)] = &[
    (
        "ostler-mcp",
        &["ostler-backend-local", "ostler-http"],
        "the server for the conformance suites mounts MCP as the daemon does",
    ),
    (
        "ostler-interface-tests",
        &[
            "ostler-api",
            "ostler-backend-local",
            "ostler-engine",
            "ostler-interface",
            "ostler-journal",
            "ostler-model",
            "ostler-render",
            "ostler-sys",
        ],
        "the tests send requests to an engine that runs real commands on a LocalBackend",
    ),
    (
        "ostler-cli",
        &["ostler-terminal"],
        "its tests look at our window as a terminal shows it",
    ),
];

/// Crates with helper programs and the fake backend; never a normal dependency.
const FOR_TESTS: [&str; 2] = ["ostler-fuzz", "ostler-testkit"];

/// `(third-party crate, the only crates that may depend on it)`.
const RESTRICTED_CRATES: &[(&str, &[&str])] = &[
    ("apache-avro", &["ostler-export"]),
    ("avt", &["ostler-terminal", "ostler-bench"]),
    ("bollard", &["ostler-backend-container"]),
    ("tar", &["ostler-backend-container"]),
    ("vte", &["ostler-escape"]),
    ("rmcp", &["ostler-mcp"]),
    ("schemars", &["ostler-mcp"]),
    (
        "axum",
        &[
            "ostler-interface",
            "ostler-http",
            "ostler-mcp",
            "ostler-interface-tests",
        ],
    ),
    ("rusqlite", &["ostler-store"]),
    ("tokio-postgres", &["ostler-store"]),
    ("clap", &["ostler-cli", "ostler-testkit", "xtask"]),
    ("anyhow", &["ostler-cli", "ostler-testkit", "xtask"]),
];

/// `(crate, third-party crates it must never use)`.
const FORBIDDEN_CRATES: &[(&str, &[&str])] = &[
    ("ostler-sys", &["hyper", "axum"]),
    ("ostler-sandbox", &["tokio", "hyper"]),
    ("ostler-journal", &["hyper", "axum"]),
    ("ostler-export", &["tokio", "hyper", "axum"]),
    ("ostler-backend", &["hyper", "axum"]),
    ("ostler-egress", &["hyper", "axum"]),
    ("ostler-backend-local", &["hyper", "axum"]),
    ("ostler-escape", &["tokio", "rustix", "regex"]),
    ("ostler-lifecycle", &["tokio", "rustix", "inotify"]),
    ("ostler-template", &["tokio", "rustix", "hyper"]),
    ("ostler-report", &["tokio", "rustix", "regex"]),
    ("ostler-detect", &["tokio", "rustix", "inotify"]),
    ("ostler-store", &["hyper", "axum"]),
];

/// The only third-party crates of the model: serialization, errors, time, identifiers.
const MODEL_MAY_USE: &[&str] = &["serde", "thiserror", "jiff", "uuid", "base64", "strsim"];

/// Checks every dependency of the workspace against the lists.
pub(super) fn check(metadata: &Metadata) -> Vec<Diagnostic> {
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

fn check_package(package: &Package, ours: &[&str]) -> Vec<Diagnostic> {
    let name = package.name.as_str();
    let Some((_, allowed)) = ALLOWED_DEPS.iter().find(|(from, _)| *from == name) else {
        return vec![Diagnostic::failure(
            name,
            0,
            "this crate is not in the list of crates above",
        )];
    };
    let violation = |dependency: &Dependency| {
        let to = dependency.name.as_str();
        if ours.contains(&to) {
            check_internal(name, to, dependency.kind, allowed)
        } else {
            check_external(name, to, dependency.kind)
        }
    };
    let violations = package.dependencies.iter().filter_map(violation);
    violations
        .map(|message| Diagnostic::failure(name, 0, message))
        .collect()
}

/// The error in a dependency between two workspace crates.
pub(super) fn check_internal(
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
            || ALLOWED_DEV_DEPS
                .iter()
                .any(|(name, more, _)| *name == from && more.contains(&to)));
    if allowed.contains(&to) || for_tests {
        return None;
    }
    Some(format!(
        "may not use {to}; allowed: {}",
        join_names(allowed)
    ))
}

/// The error in a dependency on a third-party crate.
pub(super) fn check_external(from: &str, to: &str, kind: DependencyKind) -> Option<String> {
    if kind == DependencyKind::Development {
        return None;
    }
    if let Some((_, homes)) = RESTRICTED_CRATES
        .iter()
        .find(|(name, homes)| *name == to && !homes.contains(&from))
    {
        return Some(format!(
            "may not use {to}; it lives in {}",
            join_names(homes)
        ));
    }
    if FORBIDDEN_CRATES
        .iter()
        .any(|(name, strangers)| *name == from && strangers.contains(&to))
    {
        return Some(format!("must never use {to}"));
    }
    if from == "ostler-model" && !MODEL_MAY_USE.contains(&to) {
        return Some(format!(
            "may not use {to}; the nouns use only {}",
            join_names(MODEL_MAY_USE)
        ));
    }
    None
}

fn join_names(names: &[&str]) -> String {
    if names.is_empty() {
        "nothing".to_owned()
    } else {
        names.join(", ")
    }
}

/// The allowed dependencies of a crate; for the tests of this module.
#[cfg(test)]
pub(super) fn allowed(name: &str) -> &'static [&'static str] {
    ALLOWED_DEPS
        .iter()
        .find(|(from, _)| *from == name)
        .map_or(&[], |(_, to)| to)
}
