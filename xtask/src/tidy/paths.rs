//! Nothing checked in names a place on somebody's machine.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::diagnostic::Diagnostic;
use super::source::files_below;

/// What is text here.
const TEXT: &[&str] = &[
    "rs", "toml", "md", "py", "sh", "yml", "yaml", "json", "ts", "tsx", "html", "css", "txt",
];

/// Directories of a developer's own below the home directory.
const OWN: &[&str] = &[".cargo", ".rustup", ".cache", ".local/share", ".config"];

/// Every line of every text file against this machine's own places.
pub(super) fn check(root: &Path) -> Result<Vec<Diagnostic>> {
    let places = own_places(root, std::env::var_os("HOME").map(PathBuf::from).as_deref());
    let mut findings = Vec::new();
    for path in files_below(root, TEXT)? {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let place = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
        findings.extend(check_text(&place, &text, &places));
    }
    Ok(findings)
}

/// The paths that only exist here.
pub(super) fn own_places(root: &Path, home: Option<&Path>) -> Vec<String> {
    // A checkout directly below `/` has too short a name to look for.
    let checkout = (root.components().count() > 2).then(|| root.to_string_lossy().into_owned());
    let of_home = home
        .into_iter()
        .flat_map(|home| OWN.iter().map(|own| home.join(own)));
    checkout
        .into_iter()
        .chain(of_home.map(|path| path.to_string_lossy().into_owned()))
        .collect()
}

/// The lines of a text that name one of these places.
pub(super) fn check_text(place: &str, text: &str, own: &[String]) -> Vec<Diagnostic> {
    let named = |line: &str| own.iter().any(|path| line.contains(path.as_str()));
    let lines = text.lines().enumerate().filter(|(_, line)| named(line));
    lines
        .map(|(index, _)| Diagnostic::failure(place, index + 1, "names a path of this machine"))
        .collect()
}
