//! The effect of a changed `ostler.toml` on running services.

use std::collections::BTreeMap;

/// Names by what became of their definitions, each in alphabetical order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ManifestChanges {
    /// Runs, and is defined otherwise now: to be restarted.
    pub changed: Vec<String>,
    /// Is defined and does not run: left alone.
    pub added: Vec<String>,
    /// Runs and is defined no more: goes on.
    pub removed: Vec<String>,
}

/// Compares what runs with what is defined now: names with the
/// [fingerprints](super::super::ServiceDefinition::fingerprint) of their definitions.
#[must_use]
pub fn diff(
    running: &BTreeMap<String, String>,
    defined: &BTreeMap<String, String>,
) -> ManifestChanges {
    let names = |is_selected: &dyn Fn(&str, &str) -> bool,
                 definitions: &BTreeMap<String, String>| {
        let named = definitions
            .iter()
            .filter(|(name, print)| is_selected(name, print));
        named.map(|(name, _)| name.clone()).collect()
    };
    ManifestChanges {
        changed: names(
            &|name, print| defined.get(name).is_some_and(|now| now != print),
            running,
        ),
        added: names(&|name, _| !running.contains_key(name), defined),
        removed: names(&|name, _| !defined.contains_key(name), running),
    }
}
