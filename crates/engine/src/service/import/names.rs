//! Turns names of other runners into valid service names.

use std::collections::BTreeMap;

use crate::service_names;

/// The length of the longest name, in characters.
const CHARS: usize = 63;

/// The new names of services by their original names; each is unique.
#[derive(Debug, Default)]
pub(super) struct AssignedNames {
    assigned: BTreeMap<String, String>,
}

impl AssignedNames {
    /// Chooses a valid and unused name for a service.
    pub(super) fn assign(&mut self, original: &str) -> String {
        let base = sanitize(original);
        let mut name = base.clone();
        let mut number = 1;
        while self.assigned.values().any(|it| *it == name) {
            number += 1;
            let end = format!("-{number}");
            let prefix: String = base.chars().take(CHARS - end.len()).collect();
            name = prefix + &end;
        }
        self.assigned.insert(original.to_owned(), name.clone());
        name
    }

    /// The name assigned to a service.
    pub(super) fn get(&self, original: &str) -> Option<&String> {
        self.assigned.get(original)
    }
}

fn sanitize(original: &str) -> String {
    let lower = original.to_lowercase();
    let allowed = |c: char| {
        if c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c) {
            c
        } else {
            '-'
        }
    };
    let all: String = lower.chars().map(allowed).collect();
    let trimmed = all.trim_start_matches(['_', '.', '-']);
    let name: String = trimmed.chars().take(CHARS).collect();
    if service_names::check(&name).is_ok() {
        name
    } else {
        "service".to_owned()
    }
}
