//! Words that say nothing to a reader who knows the field, and the terms that do.

use std::collections::BTreeSet;

use super::diagnostic::Diagnostic;
use super::source::SourceFile;

/// `(word, what to write instead)`, for a part of any identifier, module or file name.
const ANYWHERE: &[(&str, &str)] = &[
    ("asked", "requested, or the noun: request, query"),
    ("antechamber", "proxy_netns"),
    ("begun", "started, or the noun: StartGuard"),
    ("birth", "spawn"),
    ("born", "spawned"),
    ("burial", "reaping"),
    ("bury", "reap"),
    ("clerk", "the noun of what it does: starter, service"),
    ("desk", "state, service"),
    ("disappoint", "fail"),
    ("doorkeeper", "hooks"),
    ("ears", "queue"),
    ("errand", "task, job"),
    ("facade", "api"),
    ("farewell", "close"),
    ("heard", "received, or the noun: message, output"),
    ("heed", "handle"),
    ("stillbirth", "SpawnError"),
    ("told", "reported, notified, rendered"),
    ("upbringing", "config"),
    ("walls", "restrictions, isolation"),
    ("warden", "init"),
    ("wish", "request, options"),
    ("wishes", "requests, flags"),
];

/// The same for the whole name of a type: words that say when a value arose, not what it is.
const TYPE_NAMES: &[&str] = &[
    "Ear", "Eyes", "Fallen", "Found", "Given", "Hands", "Held", "Kept", "Known", "Left", "Looked",
    "Parted", "Seen", "Shown", "Taken", "Typed", "Waited", "Wanted", "What", "Which", "Who", "Why",
];

/// Identifiers and the file's own name.
pub(super) fn check(source: &SourceFile) -> Vec<Diagnostic> {
    let mut findings: Vec<_> = source
        .place
        .split(['/', '.', '_', '-'])
        .filter_map(|part| advice(part).map(|instead| (part, instead)))
        .map(|(part, instead)| Diagnostic::failure(&source.place, 0, message(part, instead)))
        .collect();
    // Names of tests are sentences: in them, only a word that is the whole name counts.
    let named = source
        .words
        .iter()
        .filter(|word| !source.is_test(word.line) || advice(&word.text).is_some());
    let names: BTreeSet<_> = named.map(|word| (word.line, word.text.as_str())).collect();
    for (line, name) in names {
        let instead = parts(name).into_iter().filter_map(|part| {
            let instead = advice(&part)?;
            Some(message(&part, instead))
        });
        findings.extend(instead.map(|text| Diagnostic::failure(&source.place, line, text)));
    }
    findings.extend(type_names(source));
    findings
}

/// Definitions of types whose whole name is no noun.
fn type_names(source: &SourceFile) -> Vec<Diagnostic> {
    let definitions = source.words.windows(2).filter(|pair| {
        matches!(pair[0].text.as_str(), "struct" | "enum" | "trait" | "type")
            && TYPE_NAMES.contains(&pair[1].text.as_str())
    });
    definitions
        .map(|pair| {
            let (name, line) = (&pair[1].text, pair[1].line);
            let message = format!("`{name}` says when a value arose; name what it is");
            Diagnostic::failure(&source.place, line, message)
        })
        .collect()
}

fn message(word: &str, instead: &str) -> String {
    format!("`{word}` is not a term of the field; write {instead}")
}

fn advice(part: &str) -> Option<&'static str> {
    let found = ANYWHERE.iter().find(|(word, _)| *word == part);
    found.map(|(_, instead)| *instead)
}

/// The words of `snake_case`, `UPPER_CASE` and `CamelCase`, in lower case.
pub(super) fn parts(name: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for piece in name.split('_').filter(|piece| !piece.is_empty()) {
        let mut part = String::new();
        let mut lower = false;
        for letter in piece.chars() {
            if letter.is_uppercase() && lower {
                parts.push(std::mem::take(&mut part));
            }
            lower = letter.is_lowercase() || letter.is_numeric();
            part.extend(letter.to_lowercase());
        }
        parts.push(part);
    }
    parts
}
