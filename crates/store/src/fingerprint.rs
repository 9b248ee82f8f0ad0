//! Which commands count as the same one.

use std::fmt;
use std::path::{Path, PathBuf};

use ostler_policy::{ListOperator, ListStep, command_list};
use sha2::{Digest, Sha256};

/// Directories of temporary files.
const TEMPORARY_DIRS: [&str; 3] = ["/tmp/", "/var/tmp/", "/dev/shm/"];
/// The fewest hexadecimal digits that count as a hash.
const HASH_DIGITS_MIN: usize = 7;

/// Identifies a command in a directory: equal for commands that differ only in numbers, hashes,
/// temporary paths and values of `--option=value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The fingerprint of a command line (as a shell would read it) in a directory; none where it
    /// has no words.
    #[must_use]
    pub fn of(command: &str, directory: &str) -> Option<Self> {
        let words = normalize(command);
        if words.is_empty() {
            return None;
        }
        // Clients write one directory as `/w`, `/w/` and `/w/.`.
        let directory: PathBuf = Path::new(directory).components().collect();
        let directory = directory.to_string_lossy();
        let mut hasher = Sha256::new();
        for part in std::iter::once(directory.as_ref()).chain(words.iter().map(String::as_str)) {
            hasher.update(part.as_bytes());
            hasher.update([0]);
        }
        let digest = hasher.finalize();
        let first = digest.first_chunk::<8>().copied().unwrap_or_default();
        Some(Self(u64::from_be_bytes(first)))
    }

    pub(crate) const fn to_sql(self) -> i64 {
        self.0.cast_signed()
    }

    pub(crate) const fn from_sql(value: i64) -> Self {
        Self(value.cast_unsigned())
    }
}

impl fmt::Display for Fingerprint {
    /// 16 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The words of a command line as they are compared.
fn normalize(command: &str) -> Vec<String> {
    let Some(list) = command_list(command) else {
        return command.split_whitespace().map(normalize_word).collect();
    };
    let mut words = Vec::new();
    for step in list.steps {
        match step {
            ListStep::Command(command) => {
                let mut command = command.words.iter().map(|word| word.expand(&|_| None));
                if let Some(program) = command.next() {
                    words.push(base_name(&program).to_owned());
                }
                words.extend(command.map(|word| normalize_word(&word)));
            }
            ListStep::Operator(operator) => words.push(operator_text(operator).to_owned()),
            ListStep::SubshellStart => words.push("(".to_owned()),
            ListStep::SubshellEnd => words.push(")".to_owned()),
            ListStep::GroupEnd => words.push("}".to_owned()),
        }
    }
    words
}

const fn operator_text(operator: ListOperator) -> &'static str {
    match operator {
        ListOperator::And => "&&",
        ListOperator::Or => "||",
        ListOperator::Next => ";",
        ListOperator::Background => "&",
        ListOperator::Pipe => "|",
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A word with the parts that vary between runs replaced.
fn normalize_word(word: &str) -> String {
    if let Some(directory) = TEMPORARY_DIRS.iter().find(|dir| word.starts_with(**dir)) {
        return format!("{directory}*");
    }
    if word.starts_with('-')
        && let Some((option, _value)) = word.split_once('=')
    {
        return format!("{option}=*");
    }
    replace_numbers(word)
}

/// Replaces runs of digits, UUIDs, and hexadecimal numbers that are as long as a hash, by `#`.
fn replace_numbers(word: &str) -> String {
    let mut result = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let hex = rest.len()
            - rest
                .trim_start_matches(|c: char| c.is_ascii_hexdigit())
                .len();
        let decimal = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let is_hash = hex >= HASH_DIGITS_MIN
            && rest[..hex].contains(|c: char| c.is_ascii_digit())
            && rest[..hex].contains(|c: char| c.is_ascii_alphabetic());
        let replaced = match uuid_len(rest) {
            Some(length) => length,
            None if is_hash => hex,
            None => decimal,
        };
        if replaced > 0 {
            result.push('#');
            rest = &rest[replaced..];
            continue;
        }
        // The rest of a run of hexadecimal digits that is no hash begins with a letter.
        result.push(first);
        rest = &rest[first.len_utf8()..];
    }
    result
}

/// The length of the UUID that a text begins with.
fn uuid_len(text: &str) -> Option<usize> {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    let mut length = 0;
    for (index, group) in GROUPS.into_iter().enumerate() {
        if index > 0 {
            text.get(length..)?.strip_prefix('-')?;
            length += 1;
        }
        let digits = text.get(length..length + group)?;
        if !digits.chars().all(|c| c.is_ascii_hexdigit()) {
            return None;
        }
        length += group;
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn same(one: &str, other: &str) -> bool {
        Fingerprint::of(one, "/w") == Fingerprint::of(other, "/w")
    }

    #[test]
    fn what_varies_between_runs_does_not_count() {
        for (one, other) in [
            ("cargo test", "/usr/bin/cargo test"),
            ("cargo test", "CI=1 cargo  test"),
            ("make -j4", "make -j16"),
            ("gcc -o /tmp/a.out x.c", "gcc -o /tmp/b/c.out x.c"),
            ("git show 3f2a9bc01d", "git show 00aa11bb22"),
            ("job --id=7f --x", "job --id=name --x"),
            ("serve --port 8080", "serve --port 9090"),
            (
                "run 6f1c2ab4-0d3e-4f5a-8b7c-9d0e1f2a3b4c",
                "run 01234567-89ab-cdef-0123-456789abcdef",
            ),
        ] {
            assert!(same(one, other), "{one} and {other}");
        }
    }

    #[test]
    fn other_commands_differ() {
        for (one, other) in [
            ("cargo test", "cargo build"),
            ("cargo test && cargo doc", "cargo test || cargo doc"),
            ("npm run a", "npm run b"),
            ("cat a b", "cat 'a b'"),
            ("cat deadbeefcafe", "cat feedfacecafe"),
            ("(cd a; make)", "cd a; make"),
        ] {
            assert!(!same(one, other), "{one} and {other}");
        }
        let here = Fingerprint::of("make", "/w");
        assert_ne!(here, Fingerprint::of("make", "/v"));
        for directory in ["/w/", "//w", "/w/."] {
            assert_eq!(here, Fingerprint::of("make", directory), "{directory}");
        }
    }

    #[test]
    fn a_script_that_is_no_list_has_one_too() {
        assert!(same(
            "for i in 1 2; do x $i; done",
            "for i in 3 4; do x $i; done"
        ));
        assert_eq!(Fingerprint::of(" \n", "/w"), None);
    }

    proptest! {
        #[test]
        fn every_text_has_a_stable_one(command in ".{0,200}", directory in ".{0,20}") {
            let first = Fingerprint::of(&command, &directory);
            prop_assert_eq!(first, Fingerprint::of(&command, &directory));
            if let Some(first) = first {
                prop_assert_eq!(first, Fingerprint::from_sql(first.to_sql()));
            }
        }
    }
}
