//! Classifies a line as a failure line.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use regex::bytes::{Regex, RegexSet, RegexSetBuilder};

use super::rules::{HARMLESS_LINES, NEGATED_FAILURES, RULES};

/// From this weight on a line states a failure; below, it is only a hint.
pub const STRONG_WEIGHT: u8 = 60;

/// Bytes of a line examined; a failure is stated at its beginning.
const CLASSIFIED_BYTES: usize = 1_024;
/// The most memory of the compiled table, in bytes.
const TABLE_BYTES: usize = 16 * 1024 * 1024;

/// The classification of a failure line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureLine {
    /// Its significance, to 100.
    pub weight: u8,
    /// Lines before it that belong to it.
    pub before: usize,
    /// Lines after it that belong to it.
    pub after: usize,
}

/// The tables, compiled.
struct CompiledRules {
    rules: RegexSet,
    harmless: RegexSet,
    negated: Regex,
}

static COMPILED: LazyLock<CompiledRules> = LazyLock::new(|| {
    const WHY: &str = "the tables are constants, compiled in every test";
    let set = |patterns: &mut dyn Iterator<Item = &'static str>| {
        let mut builder = RegexSetBuilder::new(patterns);
        builder.size_limit(TABLE_BYTES).dfa_size_limit(TABLE_BYTES);
        builder.build().expect(WHY)
    };
    CompiledRules {
        rules: set(&mut RULES.iter().map(|rule| rule.pattern)),
        harmless: set(&mut HARMLESS_LINES.iter().copied()),
        negated: Regex::new(NEGATED_FAILURES).expect(WHY),
    }
});

/// Classifies a line without colours; none where it is no failure line.
#[must_use]
pub fn classify(line: &str) -> Option<FailureLine> {
    let line = beginning(line.trim_end());
    let line = line.as_bytes();
    let first = COMPILED.rules.matches(line).iter().next()?;
    if COMPILED.harmless.is_match(line) {
        return None;
    }
    let without_negated = COMPILED.negated.replace_all(line, b"");
    let first = match without_negated {
        Cow::Borrowed(_) => first,
        Cow::Owned(rest) => COMPILED.rules.matches(&rest).iter().next()?,
    };
    let rule = &RULES[first];
    Some(FailureLine {
        weight: rule.weight,
        before: usize::from(rule.lines_before),
        after: usize::from(rule.lines_after),
    })
}

/// A hash shared by lines that differ only in their numbers.
#[must_use]
pub fn line_shape(line: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut in_number = false;
    for c in beginning(line.trim()).chars() {
        if c.is_ascii_digit() {
            if !in_number {
                '#'.hash(&mut hasher);
            }
            in_number = true;
        } else {
            in_number = false;
            c.hash(&mut hasher);
        }
    }
    hasher.finish()
}

fn beginning(line: &str) -> &str {
    &line[..line.floor_char_boundary(CLASSIFIED_BYTES)]
}

#[cfg(test)]
#[path = "weigh_tests.rs"]
mod tests;
