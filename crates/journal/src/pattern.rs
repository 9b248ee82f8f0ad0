//! Perl-style patterns over bytes: linear time where possible, and a time budget for all of them.
//!
//! A pattern is matched against one line at a time. For linear patterns a second matcher, compiled
//! so that it cannot match across lines, finds candidates in whole blocks; the first matcher then
//! decides about each candidate line.

mod backtracking;
mod budgeted_matcher;
mod linear;
mod simulation;

use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use grep_matcher::{LineMatchKind, Matcher};
use regex_syntax::hir::{Hir, Look};
use thiserror::Error;

use self::backtracking::Backtracking;
pub(crate) use self::budgeted_matcher::BudgetedMatcher;
use self::linear::Linear;
use crate::decode::Encoding;

/// The most bytes of a compiled pattern.
const PATTERN_BYTES: usize = 10 * 1024 * 1024;
/// The most characters of a pattern.
pub const PATTERN_CHARS: usize = 10_000;
/// The default time budget for all pattern searches of a query, in milliseconds.
pub const PATTERN_BUDGET_MS: u64 = 10_000;
/// The same for a pattern with look-around or back-references, in milliseconds.
pub const BACKTRACKING_BUDGET_MS: u64 = 2_000;

/// A compiled pattern; cheap to clone. Unicode mode is on; the bytes searched need not be UTF-8.
#[derive(Debug, Clone)]
pub struct Pattern {
    inner: Arc<CompiledPattern>,
    /// The encoding from which lines are decoded before they are matched; none for UTF-8.
    encoding: Option<Encoding>,
    /// How lines read, where they are matched as they read, too.
    plain_text: Option<PlainText>,
}

#[derive(Debug)]
struct CompiledPattern {
    source: String,
    engine: MatchEngine,
    /// Compiled when blocks are first searched: waiting for a pattern may never need it.
    prefilter: OnceLock<Option<Prefilter>>,
}

#[derive(Debug)]
enum MatchEngine {
    Linear(Box<Linear>),
    Backtracking(Box<Backtracking>),
}

/// Finds candidate lines in a block of whole lines.
#[derive(Debug)]
pub(crate) struct Prefilter(grep_regex::RegexMatcher);

/// Returns a line, without its newline, as it reads on a screen.
pub type PlainText = fn(&[u8]) -> Vec<u8>;

const ESCAPE: u8 = 0x1b;
const BACKSPACE: u8 = 0x08;

/// Why a text is not a valid pattern.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message} at position {position}")]
pub struct PatternError {
    /// The error, as text.
    pub message: String,
    /// The byte offset of the error, from 0.
    pub position: usize,
}

/// The error for a search that took more steps or time than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the pattern takes too long: it used up its budget of {} ms; look-around, back-references and \
     repetitions of repetitions make it slow, and very long lines", budget.as_millis()
)]
pub struct BudgetExceeded {
    /// The time budget.
    pub budget: Duration,
}

impl Pattern {
    /// Compiles a Perl-style pattern.
    ///
    /// # Errors
    /// When it is invalid, or too large.
    pub fn new(perl: &str) -> Result<Self, PatternError> {
        if let Some((position, _)) = perl.char_indices().nth(PATTERN_CHARS) {
            return Err(PatternError {
                message: format!("the pattern is longer than {PATTERN_CHARS} characters"),
                position,
            });
        }
        let engine = match parse(perl, AnchorMode::Text) {
            Ok(parsed) => MatchEngine::Linear(Box::new(Linear::new(parsed)?)),
            Err(refusal) => MatchEngine::Backtracking(Box::new(Backtracking::new(perl, refusal)?)),
        };
        Ok(Self {
            inner: Arc::new(CompiledPattern {
                source: perl.to_owned(),
                engine,
                prefilter: OnceLock::new(),
            }),
            encoding: None,
            plain_text: None,
        })
    }

    /// A pattern that matches this text, or with `whole_word` where no letter, digit or underscore
    /// adjoins one of it.
    ///
    /// # Errors
    /// When it is too large.
    pub fn literal(text: &str, whole_word: bool, ignore_case: bool) -> Result<Self, PatternError> {
        let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let boundary = |c| if whole_word && is_word(c) { r"\b" } else { "" };
        let case = if ignore_case { "(?i)" } else { "" };
        let (begin, end) = (boundary(text.chars().next()), boundary(text.chars().last()));
        Self::new(&format!("{case}{begin}{}{end}", fancy_regex::escape(text)))
    }

    /// The same pattern, matched against the text of lines decoded from this encoding.
    #[must_use]
    pub fn with_encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = (encoding != Encoding::UTF_8).then_some(encoding);
        self
    }

    /// The same pattern, which also matches a line as it reads on a screen, by this function: without
    /// escape sequences, and after carriage returns and backspaces took effect.
    #[must_use]
    pub const fn with_plain_text(mut self, plain_text: PlainText) -> Self {
        self.plain_text = Some(plain_text);
        self
    }

    /// The pattern as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.inner.source
    }

    /// The default time budget for all searches of one query.
    #[must_use]
    pub fn budget(&self) -> Duration {
        Duration::from_millis(match self.inner.engine {
            MatchEngine::Linear(_) => PATTERN_BUDGET_MS,
            MatchEngine::Backtracking(_) => BACKTRACKING_BUDGET_MS,
        })
    }

    /// Whether a search of that many bytes takes milliseconds at most, whatever they are.
    #[must_use]
    pub fn is_quick(&self, bytes: usize) -> bool {
        match &self.inner.engine {
            MatchEngine::Linear(linear) => linear.is_quick(bytes),
            MatchEngine::Backtracking(_) => false,
        }
    }

    /// The first match in `bytes`, within the default budget. Anchors match at the beginning and
    /// the end of `bytes`.
    ///
    /// # Errors
    /// When the search takes longer than its budget.
    pub fn find(&self, bytes: &[u8]) -> Result<Option<Range<usize>>, BudgetExceeded> {
        self.find_from(bytes, 0, self.budget())
    }

    /// As [`Pattern::find`], at or after `from`; the bytes before it are context, so that `^` does
    /// not match there.
    ///
    /// # Errors
    /// When the search takes longer than `budget`.
    pub fn find_from(
        &self,
        bytes: &[u8],
        from: usize,
        budget: Duration,
    ) -> Result<Option<Range<usize>>, BudgetExceeded> {
        BudgetedMatcher::new(budget).find_at(self, bytes, from)
    }

    /// Whether one of these whole lines may match; much cheaper than matching each.
    #[must_use]
    pub fn may_match(&self, lines: &[u8]) -> bool {
        let may_read_differently = self.plain_text.is_some() && next_control(lines).is_some();
        let may_match = |filter: &Prefilter| filter.candidate(lines).is_some();
        may_read_differently || self.prefilter().is_none_or(may_match)
    }

    /// Whether lines are matched as they read, too.
    pub(crate) const fn matches_plain_text(&self) -> bool {
        self.plain_text.is_some()
    }

    /// The text of a line as it reads, where that differs.
    fn plain_text_of(&self, line: &[u8]) -> Option<Vec<u8>> {
        let plain_text = self.plain_text?;
        next_control(line)?;
        Some(plain_text(line))
    }

    pub(crate) fn prefilter(&self) -> Option<&Prefilter> {
        match &self.inner.engine {
            MatchEngine::Linear(linear) if self.encoding.is_none() && linear.is_small() => {
                self.inner.prefilter()
            }
            MatchEngine::Linear(_) | MatchEngine::Backtracking(_) => None,
        }
    }

    /// The encoding from which a line must be decoded first, if any.
    fn decoding_for(&self, line: &[u8]) -> Option<Encoding> {
        self.encoding
            .filter(|encoding| !encoding.is_utf8_identical(line))
    }
}

/// The first byte that makes a line read differently.
pub(crate) fn next_control(bytes: &[u8]) -> Option<usize> {
    memchr::memchr3(ESCAPE, BACKSPACE, b'\r', bytes)
}

impl CompiledPattern {
    fn prefilter(&self) -> Option<&Prefilter> {
        let parsed = || parse(&self.source, AnchorMode::Lines).ok();
        let compiled = || Prefilter::new(&self.source, &parsed()?);
        self.prefilter.get_or_init(compiled).as_ref()
    }
}

impl Prefilter {
    /// None where anchors of the whole text or a newline in the pattern would make matches in
    /// blocks differ from matches in lines.
    fn new(perl: &str, lines: &Hir) -> Option<Self> {
        let looks = lines.properties().look_set();
        if looks.contains(Look::Start) || looks.contains(Look::End) {
            return None;
        }
        grep_regex::RegexMatcherBuilder::new()
            .multi_line(true)
            .line_terminator(Some(b'\n'))
            .build(perl)
            .ok()
            .map(Self)
    }

    /// The offset in the first line that may match. `block` begins with a line.
    pub(crate) fn candidate(&self, block: &[u8]) -> Option<usize> {
        let candidate = self.0.find_candidate_line(block).ok().flatten()?;
        Some(match candidate {
            LineMatchKind::Confirmed(place) | LineMatchKind::Candidate(place) => place,
        })
    }
}

/// Why the linear engine refused a pattern.
#[derive(Debug)]
struct LinearRejection {
    error: PatternError,
    /// Whether the pattern needs backtracking.
    needs_backtracking: bool,
}

/// What `^` and `$` match; `\A` and `\z` always match at the ends of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnchorMode {
    Text,
    Lines,
}

fn parse(perl: &str, anchors: AnchorMode) -> Result<Hir, LinearRejection> {
    use regex_syntax::ast::ErrorKind;
    let mut parser = regex_syntax::ParserBuilder::new()
        .utf8(false)
        .multi_line(anchors == AnchorMode::Lines)
        .build();
    parser.parse(perl).map_err(|error| match error {
        regex_syntax::Error::Parse(error) => LinearRejection {
            needs_backtracking: matches!(
                error.kind(),
                ErrorKind::UnsupportedLookAround
                    | ErrorKind::UnsupportedBackreference
                    | ErrorKind::EscapeUnrecognized
                    | ErrorKind::FlagUnrecognized
            ),
            error: pattern_error(error.kind(), error.span().start.offset),
        },
        regex_syntax::Error::Translate(error) => LinearRejection {
            needs_backtracking: false,
            error: pattern_error(error.kind(), error.span().start.offset),
        },
        other => LinearRejection {
            needs_backtracking: false,
            error: pattern_error(other, 0),
        },
    })
}

fn pattern_error(message: impl std::fmt::Display, position: usize) -> PatternError {
    PatternError {
        message: message.to_string(),
        position,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, bytes: &[u8]) -> Option<Range<usize>> {
        Pattern::new(pattern).unwrap().find(bytes).unwrap()
    }

    #[test]
    fn lines_in_other_encodings_are_matched_as_the_text_they_show() {
        let gbk = crate::decode::encoding_for_label("gbk").unwrap();
        let line = b"\xc7\xb0\xc2\xd2\xc2\xeb\xba\xf3 ascii";
        for (pattern, place) in [("乱码", 2..6), ("(?<=前)乱.", 2..6), ("asc", 9..12)] {
            let pattern = Pattern::new(pattern).unwrap();
            assert_eq!(
                pattern.find(line).unwrap().is_some(),
                pattern.as_str() == "asc"
            );
            let pattern = pattern.with_encoding(gbk);
            assert_eq!(pattern.find(line).unwrap(), Some(place));
            assert!(pattern.prefilter().is_none());
        }
        assert_eq!(found("乱码", "乱码".as_bytes()), Some(0..6));
    }

    #[test]
    fn perl_style_patterns_match() {
        assert_eq!(found(r"\d+", b"abc 123"), Some(4..7));
        assert_eq!(found(r"(?i)GR\u{fc}n", "ein grün".as_bytes()), Some(4..9));
        assert_eq!(found(r"b", b"\xff\xfeb\xff"), Some(2..3));
        assert_eq!(found(r"(?<=a)b", b"\xff\xfeab\xff"), Some(3..4));
        assert_eq!(found(r"(\w)\1", b"abccd"), Some(2..4));
        assert_eq!(found(r"a(?!b)", b"abac"), Some(2..3));
    }

    #[test]
    fn only_what_must_backtrack_does() {
        let is_linear = |pattern| {
            let pattern = Pattern::new(pattern).unwrap();
            matches!(pattern.inner.engine, MatchEngine::Linear(_))
        };
        assert!(is_linear(r"^\s*error: (.*)$"));
        assert!(!is_linear(r"(?=a)b"));
        assert!(!is_linear(r"(a)\1"));
    }

    #[test]
    fn errors_say_where() {
        for (pattern, position) in [
            ("ab(c", 2),
            ("a[z-b]", 2),
            ("x{3,1}", 1),
            (r"\p{Nope}", 0),
            ("(?<n", 4),
        ] {
            let error = Pattern::new(pattern).unwrap_err();
            assert_eq!(error.position, position, "{pattern}: {error}");
            assert!(!error.message.is_empty());
        }
        assert!(Pattern::new("(?=a").is_err());
        assert!(Pattern::new(&"a".repeat(PATTERN_CHARS)).is_ok());
        assert_eq!(
            Pattern::new(&"a".repeat(PATTERN_CHARS + 1))
                .unwrap_err()
                .position,
            PATTERN_CHARS
        );
        assert!(
            Pattern::new(r"\w{999}{999}")
                .unwrap_err()
                .message
                .contains("bytes")
        );
    }

    #[test]
    fn a_catastrophe_is_an_error() {
        let pattern = Pattern::new(r"^(a|a)*(?=b)\1$").unwrap();
        let error = pattern.find(&[b'a'; 64]).unwrap_err();
        assert_eq!(error.budget, Duration::from_millis(BACKTRACKING_BUDGET_MS));
    }

    #[test]
    fn a_used_up_budget_is_an_error() {
        let pattern = Pattern::new(r"(?=x)x").unwrap();
        let watch = BudgetedMatcher::new(Duration::ZERO);
        assert!(watch.is_match(&pattern, b"x").is_err());
    }
}
