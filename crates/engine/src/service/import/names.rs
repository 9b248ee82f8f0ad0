//! Names that services can have.

use std::collections::BTreeMap;

use crate::service::names;

/// Characters of the longest name.
const CHARS: usize = 63;

/// The names services get for those they had, each once.
#[derive(Debug, Default)]
pub(super) struct Names {
    given: BTreeMap<String, String>,
}

impl Names {
    /// The name for a service that was called so.
    pub(super) fn give(&mut self, original: &str) -> String {
        let plain = plain(original);
        let mut name = plain.clone();
        let mut number = 1;
        while self.given.values().any(|it| *it == name) {
            number += 1;
            let end = format!("-{number}");
            let kept: String = plain.chars().take(CHARS - end.len()).collect();
            name = kept + &end;
        }
        self.given.insert(original.to_owned(), name.clone());
        name
    }

    /// The name that was given.
    pub(super) fn of(&self, original: &str) -> Option<&String> {
        self.given.get(original)
    }
}

fn plain(original: &str) -> String {
    let lower = original.to_lowercase();
    let allowed = |c: char| {
        if c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c) {
            c
        } else {
            '-'
        }
    };
    let all: String = lower.chars().map(allowed).collect();
    let begun = all.trim_start_matches(['_', '.', '-']);
    let name: String = begun.chars().take(CHARS).collect();
    if names::check(&name).is_ok() {
        name
    } else {
        "service".to_owned()
    }
}
