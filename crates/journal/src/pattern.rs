//! Perl-style patterns over bytes: linear time where possible, a budget elsewhere.
//!
//! A pattern is tried on one line at a time. For linear patterns a second matcher, compiled so
//! that it cannot match across lines, finds candidates in whole blocks; each candidate line is
//! then decided by the first.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use grep_matcher::{LineMatchKind, Matcher};
use regex_automata::{Input, meta};
use regex_syntax::hir::{Hir, Look};
use thiserror::Error;

use crate::decode::Encoding;
use crate::query::PATTERN_BUDGET_MS;

/// Bytes a compiled pattern may take.
const PATTERN_BYTES: usize = 10 * 1024 * 1024;
/// Characters a pattern may have.
pub const PATTERN_CHARS: usize = 10_000;
/// Steps a backtracking pattern may take for one line.
const BACKTRACK_STEPS: usize = 1_000_000;

/// A compiled pattern; cheap to clone. Unicode is on; the bytes searched need not be UTF-8.
#[derive(Debug, Clone)]
pub struct Pattern {
    inner: Arc<Inner>,
    /// What lines are decoded from before they are tried; none for UTF-8.
    encoding: Option<Encoding>,
}

#[derive(Debug)]
struct Inner {
    source: String,
    engine: Engine,
    /// Compiled when blocks are first searched: a wait for a pattern may never do that.
    prefilter: OnceLock<Option<Prefilter>>,
}

#[derive(Debug)]
enum Engine {
    Linear(Box<meta::Regex>),
    Backtracking(Box<fancy_regex::Regex>),
}

/// Finds lines that may match in a block of whole lines.
#[derive(Debug)]
pub(crate) struct Prefilter(grep_regex::RegexMatcher);

/// Why a pattern is none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message} at position {position}")]
pub struct PatternError {
    /// What is wrong.
    pub message: String,
    /// The byte at which it is wrong, from 0.
    pub position: usize,
}

/// A look-around or back-reference pattern took more steps or time than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the pattern backtracks too much: it used up its budget of {} ms; look-around and \
     back-references make it slow", budget.as_millis()
)]
pub struct BudgetExceeded {
    /// The time it had.
    pub budget: Duration,
}

impl Pattern {
    /// Compiles a Perl-style pattern.
    ///
    /// # Errors
    /// When it is no pattern, or too large a one.
    pub fn new(perl: &str) -> Result<Self, PatternError> {
        if let Some((position, _)) = perl.char_indices().nth(PATTERN_CHARS) {
            return Err(PatternError {
                message: format!("the pattern is longer than {PATTERN_CHARS} characters"),
                position,
            });
        }
        let engine = match parse(perl, Anchors::Text) {
            Ok(parsed) => linear(&parsed)?,
            Err(refusal) => backtracking(perl, refusal)?,
        };
        Ok(Self {
            inner: Arc::new(Inner {
                source: perl.to_owned(),
                engine,
                prefilter: OnceLock::new(),
            }),
            encoding: None,
        })
    }

    /// The same pattern, tried on the text that lines in this encoding show (A7).
    #[must_use]
    pub fn over(mut self, encoding: Encoding) -> Self {
        self.encoding = (encoding != Encoding::UTF_8).then_some(encoding);
        self
    }

    /// The pattern as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.inner.source
    }

    /// Whether matching takes time linear in the bytes searched, so that no budget is needed.
    #[must_use]
    pub fn is_linear(&self) -> bool {
        matches!(self.inner.engine, Engine::Linear(_))
    }

    /// The first match in `bytes`, within the default budget. Anchors mean the beginning and
    /// the end of `bytes`.
    ///
    /// # Errors
    /// When a backtracking pattern exceeds its budget.
    pub fn find(&self, bytes: &[u8]) -> Result<Option<Range<usize>>, BudgetExceeded> {
        Watch::new(Duration::from_millis(PATTERN_BUDGET_MS)).find_at(self, bytes, 0)
    }

    /// As [`Pattern::find`], at or after `from`; what stands before it is context, so that `^`
    /// does not match there.
    ///
    /// # Errors
    /// When a backtracking pattern exceeds its budget.
    pub fn find_from(
        &self,
        bytes: &[u8],
        from: usize,
    ) -> Result<Option<Range<usize>>, BudgetExceeded> {
        Watch::new(Duration::from_millis(PATTERN_BUDGET_MS)).find_at(self, bytes, from)
    }

    /// Whether one of these whole lines may match; far cheaper than trying each.
    #[must_use]
    pub fn may_match(&self, lines: &[u8]) -> bool {
        self.prefilter()
            .is_none_or(|filter| filter.candidate(lines).is_some())
    }

    pub(crate) fn prefilter(&self) -> Option<&Prefilter> {
        let linear = self.encoding.is_none() && self.is_linear();
        linear.then(|| self.inner.prefilter()).flatten()
    }

    /// How a line must be decoded first, if at all.
    fn decoding(&self, line: &[u8]) -> Option<Encoding> {
        self.encoding.filter(|encoding| !encoding.keeps(line))
    }
}

impl Inner {
    fn prefilter(&self) -> Option<&Prefilter> {
        let parsed = || parse(&self.source, Anchors::Lines).ok();
        let compiled = || Prefilter::new(&self.source, &parsed()?);
        self.prefilter.get_or_init(compiled).as_ref()
    }
}

impl Prefilter {
    /// None where anchors of the whole text or a newline in the pattern would make blocks
    /// answer differently from lines.
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

    /// A place in a line that may match; lines before it do not. `block` begins with a line.
    pub(crate) fn candidate(&self, block: &[u8]) -> Option<usize> {
        let hit = self.0.find_candidate_line(block).ok().flatten()?;
        Some(match hit {
            LineMatchKind::Confirmed(place) | LineMatchKind::Candidate(place) => place,
        })
    }
}

/// Matches within a budget of time, which only backtracking patterns use up.
///
/// Clones draw on the same budget.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    budget: Duration,
    used: Rc<Cell<Duration>>,
}

impl Watch {
    pub(crate) fn new(budget: Duration) -> Self {
        Self {
            budget,
            used: Rc::default(),
        }
    }

    pub(crate) fn is_match(&self, pattern: &Pattern, line: &[u8]) -> Result<bool, BudgetExceeded> {
        let decoded = pattern.decoding(line).map(|encoding| encoding.decode(line));
        let text = decoded.as_ref().map_or(line, String::as_bytes);
        match &pattern.inner.engine {
            Engine::Linear(regex) => Ok(regex.is_match(text)),
            Engine::Backtracking(regex) => self.timed(|| regex.is_match(&*characters(text))),
        }
    }

    /// The first match at or after `from`.
    pub(crate) fn find_at(
        &self,
        pattern: &Pattern,
        line: &[u8],
        from: usize,
    ) -> Result<Option<Range<usize>>, BudgetExceeded> {
        let Some(encoding) = pattern.decoding(line) else {
            return self.find_text(pattern, line, from);
        };
        let text = encoding.decode(line);
        let from = encoding.decode(&line[..from]).len().min(text.len());
        let found = self.find_text(pattern, text.as_bytes(), from)?;
        let place = |at: usize| encoding.encoded_len(&text[..at]).min(line.len());
        Ok(found.map(|found| place(found.start)..place(found.end)))
    }

    fn find_text(
        &self,
        pattern: &Pattern,
        text: &[u8],
        from: usize,
    ) -> Result<Option<Range<usize>>, BudgetExceeded> {
        match &pattern.inner.engine {
            Engine::Linear(regex) => {
                let found = regex.find(Input::new(text).span(from..text.len()));
                Ok(found.map(|found| found.range()))
            }
            Engine::Backtracking(regex) => self.timed(|| {
                let text = characters(text);
                let from = (from..text.len()).find(|&place| text.is_char_boundary(place));
                let found = regex.find_from_pos(&*text, from.unwrap_or(text.len()))?;
                Ok(found.map(|found| found.start()..found.end()))
            }),
        }
    }

    fn timed<T>(
        &self,
        search: impl FnOnce() -> Result<T, fancy_regex::Error>,
    ) -> Result<T, BudgetExceeded> {
        let exceeded = BudgetExceeded {
            budget: self.budget,
        };
        if self.used.get() >= self.budget {
            return Err(exceeded);
        }
        let begun = Instant::now();
        let answer = search();
        self.used.set(self.used.get() + begun.elapsed());
        answer.map_err(|_| exceeded)
    }
}

/// The bytes as the backtracking engine needs them: each one that is no part of a character
/// becomes the control character SUBSTITUTE, so that places stay the same.
fn characters(bytes: &[u8]) -> Cow<'_, str> {
    const SUBSTITUTE: char = '\u{1a}';
    let mut text = match std::str::from_utf8(bytes) {
        Ok(text) => return Cow::Borrowed(text),
        Err(_) => String::with_capacity(bytes.len()),
    };
    for part in bytes.utf8_chunks() {
        text.push_str(part.valid());
        text.extend(part.invalid().iter().map(|_| SUBSTITUTE));
    }
    Cow::Owned(text)
}

/// What is wrong with a pattern in the eyes of the linear engine.
struct Refusal {
    error: PatternError,
    /// Whether it asks for what only backtracking can do.
    backtracks: bool,
}

/// What `^` and `$` mean; `\A` and `\z` always mean the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anchors {
    Text,
    Lines,
}

fn parse(perl: &str, anchors: Anchors) -> Result<Hir, Refusal> {
    use regex_syntax::ast::ErrorKind;
    let mut parser = regex_syntax::ParserBuilder::new()
        .utf8(false)
        .multi_line(anchors == Anchors::Lines)
        .build();
    parser.parse(perl).map_err(|error| match error {
        regex_syntax::Error::Parse(error) => Refusal {
            backtracks: matches!(
                error.kind(),
                ErrorKind::UnsupportedLookAround
                    | ErrorKind::UnsupportedBackreference
                    | ErrorKind::EscapeUnrecognized
                    | ErrorKind::FlagUnrecognized
            ),
            error: refused(error.kind(), error.span().start.offset),
        },
        regex_syntax::Error::Translate(error) => Refusal {
            backtracks: false,
            error: refused(error.kind(), error.span().start.offset),
        },
        other => Refusal {
            backtracks: false,
            error: refused(other, 0),
        },
    })
}

fn refused(what: impl std::fmt::Display, position: usize) -> PatternError {
    PatternError {
        message: what.to_string(),
        position,
    }
}

/// Without the automata that are compiled whole: most patterns are searched for in a few lines,
/// once, and the one that is compiled while it searches is as fast in many.
fn linear(parsed: &Hir) -> Result<Engine, PatternError> {
    let config = meta::Config::new()
        .utf8_empty(false)
        .nfa_size_limit(Some(PATTERN_BYTES))
        .dfa(false)
        .onepass(false);
    let built = meta::Builder::new()
        .configure(config)
        .build_from_hir(parsed);
    match built {
        Ok(regex) => Ok(Engine::Linear(Box::new(regex))),
        Err(error) => Err(match error.size_limit() {
            Some(limit) => refused(
                format!("the pattern takes more than {limit} bytes once compiled"),
                0,
            ),
            None => refused(error, 0),
        }),
    }
}

fn backtracking(perl: &str, refusal: Refusal) -> Result<Engine, PatternError> {
    if !refusal.backtracks {
        return Err(refusal.error);
    }
    let built = fancy_regex::RegexBuilder::new(perl)
        .backtrack_limit(BACKTRACK_STEPS)
        .delegate_size_limit(PATTERN_BYTES)
        .build();
    match built {
        Ok(regex) => Ok(Engine::Backtracking(Box::new(regex))),
        Err(fancy_regex::Error::ParseError(position, error)) => Err(refused(error, position)),
        Err(error) => Err(refused(error, refusal.error.position)),
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
        let gbk = crate::decode::encoding_named("gbk").unwrap();
        let line = b"\xc7\xb0\xc2\xd2\xc2\xeb\xba\xf3 ascii";
        for (pattern, place) in [("乱码", 2..6), ("(?<=前)乱.", 2..6), ("asc", 9..12)] {
            let pattern = Pattern::new(pattern).unwrap();
            assert_eq!(
                pattern.find(line).unwrap().is_some(),
                pattern.as_str() == "asc"
            );
            let pattern = pattern.over(gbk);
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
        assert!(Pattern::new(r"^\s*error: (.*)$").unwrap().is_linear());
        assert!(!Pattern::new(r"(?=a)b").unwrap().is_linear());
        assert!(!Pattern::new(r"(a)\1").unwrap().is_linear());
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
        assert_eq!(error.budget, Duration::from_millis(PATTERN_BUDGET_MS));
    }

    #[test]
    fn a_used_up_budget_is_an_error() {
        let pattern = Pattern::new(r"(?=x)x").unwrap();
        let watch = Watch::new(Duration::ZERO);
        assert!(watch.is_match(&pattern, b"x").is_err());
    }
}
