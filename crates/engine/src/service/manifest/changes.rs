//! What a new version of the file means for what runs.

use std::collections::BTreeMap;

/// Names by what became of their definitions, each in alphabetical order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// Runs, and is defined otherwise now: to be started anew.
    pub changed: Vec<String>,
    /// Is defined and does not run: left alone.
    pub added: Vec<String>,
    /// Runs and is defined no more: goes on.
    pub removed: Vec<String>,
}

/// Compares what runs with what is defined now: names with the
/// [fingerprints](super::super::Definition::fingerprint) of their definitions.
#[must_use]
pub fn diff(running: &BTreeMap<String, String>, defined: &BTreeMap<String, String>) -> Changes {
    let names = |wanted: &dyn Fn(&str, &str) -> bool, of: &BTreeMap<String, String>| {
        let named = of.iter().filter(|(name, print)| wanted(name, print));
        named.map(|(name, _)| name.clone()).collect()
    };
    Changes {
        changed: names(
            &|name, print| defined.get(name).is_some_and(|now| now != print),
            running,
        ),
        added: names(&|name, _| !running.contains_key(name), defined),
        removed: names(&|name, _| !defined.contains_key(name), running),
    }
}
