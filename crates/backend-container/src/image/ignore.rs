//! `.dockerignore`: which files of a context are not sent. Pure.
//!
//! A pattern matches a path or a directory that it is in: `*` and `?` within a name, `**` any number
//! of directories. The last one that matches decides, and `!` includes again. Classes (`[a-z]`) are
//! taken literally.

use std::path::Path;

/// The name of the file.
pub(super) const IGNORE_FILE: &str = ".dockerignore";

/// The patterns of one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct IgnoreRules {
    rules: Vec<IgnoreRule>,
}

#[derive(Debug, PartialEq, Eq)]
struct IgnoreRule {
    /// Its parts between slashes.
    parts: Vec<String>,
    includes: bool,
}

impl IgnoreRules {
    /// Reads a file.
    pub(super) fn parse(text: &str) -> Self {
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let rules = lines.filter_map(|line| {
            let included = line.strip_prefix('!');
            let pattern = included.map_or(line, str::trim);
            let parts = pattern.split('/').filter(|it| !it.is_empty() && *it != ".");
            let parts: Vec<String> = parts.map(str::to_owned).collect();
            let includes = included.is_some();
            (!parts.is_empty()).then_some(IgnoreRule { parts, includes })
        });
        Self {
            rules: rules.collect(),
        }
    }

    /// Whether a file, by its path in the context, is left out.
    pub(super) fn ignores(&self, path: &Path) -> bool {
        let names: Vec<String> = path
            .iter()
            .map(|it| it.to_string_lossy().into_owned())
            .collect();
        let decides = self.rules.iter().rev().find(|rule| rule.matches(&names));
        decides.is_some_and(|rule| !rule.includes)
    }

    /// Whether something in an ignored directory may be included again.
    pub(super) fn has_exceptions(&self) -> bool {
        self.rules.iter().any(|rule| rule.includes)
    }
}

impl IgnoreRule {
    fn matches(&self, path: &[String]) -> bool {
        (1..=path.len()).any(|length| matches_parts(&self.parts, &path[..length]))
    }
}

fn matches_parts(pattern: &[String], path: &[String]) -> bool {
    match (pattern, path) {
        ([], []) => true,
        ([first, rest @ ..], _) if first == "**" => {
            (0..=path.len()).any(|skipped| matches_parts(rest, &path[skipped..]))
        }
        ([first, rest @ ..], [name, path @ ..]) => {
            matches_name(first.as_bytes(), name.as_bytes()) && matches_parts(rest, path)
        }
        ([], [_, ..]) | ([_, ..], []) => false,
    }
}

/// Whether a name matches. Goes back to the last `*` only, whose length is all that can differ.
fn matches_name(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut position) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while position < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, position));
                at += 1;
            }
            Some(letter) if *letter == b'?' || *letter == name[position] => {
                at += 1;
                position += 1;
            }
            _ => {
                let Some((star_at, matched)) = star else {
                    return false;
                };
                star = Some((star_at, matched + 1));
                at = star_at + 1;
                position = matched + 1;
            }
        }
    }
    pattern[at..].iter().all(|it| *it == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_pattern_that_matches_decides() {
        let text = "# comment\n/target/\n*.log\n**/node_modules\n!keep.log\nsrc/?.txt\n";
        let rules = IgnoreRules::parse(text);
        for (path, ignored) in [
            ("target", true),
            ("target/debug/x", true),
            ("sub/target", false),
            ("a.log", true),
            ("keep.log", false),
            ("sub/a.log", false),
            ("node_modules/x", true),
            ("web/deep/node_modules/x", true),
            ("src/a.txt", true),
            ("src/ab.txt", false),
            ("README", false),
        ] {
            assert_eq!(rules.ignores(Path::new(path)), ignored, "{path}");
        }
        assert!(rules.has_exceptions());
    }

    #[test]
    fn a_star_is_any_number_of_letters() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("a*b*c", "aXbXbYc", true),
            ("a*b*c", "aXbXbY", false),
            ("**a", "a", true),
            ("a?", "a", false),
            ("", "", true),
        ] {
            let matched = matches_name(pattern.as_bytes(), name.as_bytes());
            assert_eq!(matched, expected, "{pattern} {name}");
        }
    }

    #[test]
    fn nothing_is_ignored_without_rules() {
        let rules = IgnoreRules::parse("\n# nothing\n/\n");
        assert!(!rules.ignores(Path::new("a")));
        assert_eq!(rules, IgnoreRules::default());
    }
}
