//! No file in the repository may name a path of a developer's machine.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::diagnostic::Diagnostic;
use crate::repository_files::files_below;

/// Endings of text files.
const TEXT: &[&str] = &[
    "rs", "toml", "md", "py", "sh", "yml", "yaml", "json", "ts", "tsx", "html", "css", "txt",
];

/// A developer's own directories below the home directory.
const OWN: &[&str] = &[".cargo", ".rustup", ".cache", ".local/share", ".config"];

/// Checks every line of every text file against the paths of this machine.
pub(super) fn check(root: &Path) -> Result<Vec<Diagnostic>> {
    let places = own_paths(root, std::env::var_os("HOME").map(PathBuf::from).as_deref());
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

/// The paths that exist on this machine only.
pub(super) fn own_paths(root: &Path, home: Option<&Path>) -> Vec<String> {
    // The path of a checkout directly below `/` is too short to search for.
    let checkout = (root.components().count() > 2).then(|| root.to_string_lossy().into_owned());
    let of_home = home
        .into_iter()
        .flat_map(|home| OWN.iter().map(|own| home.join(own)));
    checkout
        .into_iter()
        .chain(of_home.map(|path| path.to_string_lossy().into_owned()))
        .collect()
}

/// Checks the lines of a text for these paths.
pub(super) fn check_text(place: &str, text: &str, own: &[String]) -> Vec<Diagnostic> {
    let named = |line: &str| own.iter().any(|path| line.contains(path.as_str()));
    let lines = text.lines().enumerate().filter(|(_, line)| named(line));
    lines
        .map(|(index, _)| Diagnostic::failure(place, index + 1, "names a path of this machine"))
        .collect()
}
