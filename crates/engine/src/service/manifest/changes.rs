//! The effect of a changed `ostler.toml` on running services.

use std::collections::BTreeMap;

/// Names of services by how their definitions changed, each in alphabetical order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ManifestChanges {
    /// Running, with a changed definition: to be restarted.
    pub changed: Vec<String>,
    /// Defined but not running: left alone.
    pub added: Vec<String>,
    /// Running but no longer defined: continues.
    pub removed: Vec<String>,
}

/// Compares running services with the definitions: names with the
/// [fingerprints](super::super::ServiceDefinition::fingerprint) of the definitions.
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
