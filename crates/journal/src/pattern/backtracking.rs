//! Patterns with look-around or back-references. Their library cannot be interrupted, so long texts
//! are searched in windows, and the clock is read between two of them.

use std::borrow::Cow;
use std::ops::Range;
use std::time::Instant;

use fancy_regex::{Error, Regex, RegexBuilder};

use super::{LinearRejection, PATTERN_BYTES, PatternError, pattern_error};

/// The most steps for one window; each step may read all of it.
const STEPS: usize = 256 * 1024;
/// The size in bytes of the windows.
const WINDOW_BYTES: usize = 32 * 1024;
/// The overlap of two windows in bytes: the longest match, with its look-around, in a longer text.
const OVERLAP_BYTES: usize = 8 * 1024;

#[derive(Debug)]
pub(super) struct Backtracking(Regex);

/// The error for a search that took more steps or time than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BacktrackingTimeout;

impl Backtracking {
    /// Compiles a pattern that the linear engine refused.
    pub(super) fn new(perl: &str, rejection: LinearRejection) -> Result<Self, PatternError> {
        if !rejection.needs_backtracking {
            return Err(rejection.error);
        }
        let built = RegexBuilder::new(perl)
            .backtrack_limit(STEPS)
            .delegate_size_limit(PATTERN_BYTES)
            .build();
        match built {
            Ok(regex) => Ok(Self(regex)),
            Err(Error::ParseError(position, error)) => Err(pattern_error(error, position)),
            Err(error) => Err(pattern_error(error, rejection.error.position)),
        }
    }

    /// The first match at or after `from`; the bytes before it are context.
    pub(super) fn find(
        &self,
        bytes: &[u8],
        from: usize,
        deadline: Instant,
    ) -> Result<Option<Range<usize>>, BacktrackingTimeout> {
        let text = substitute_invalid(bytes);
        let mut from = text.ceil_char_boundary(from);
        loop {
            let begin = text.floor_char_boundary(from.saturating_sub(OVERLAP_BYTES));
            let end = text.ceil_char_boundary(begin + WINDOW_BYTES);
            let window = &text[begin..end];
            let found = self.0.find_from_pos(window, from - begin);
            let found = found.map_err(|_| BacktrackingTimeout)?;
            let found = found.map(|found| begin + found.start()..begin + found.end());
            let is_last = end == text.len();
            match found {
                // The end of a window looks like the end of the text.
                Some(found) if is_last || found.end < end => return Ok(Some(found)),
                _ if is_last => return Ok(None),
                _ if Instant::now() >= deadline => return Err(BacktrackingTimeout),
                _ => from = text.floor_char_boundary(end - OVERLAP_BYTES),
            }
        }
    }
}

/// Converts bytes to characters: each invalid byte becomes the control character SUBSTITUTE, so
/// that
/// offsets stay the same.
fn substitute_invalid(bytes: &[u8]) -> Cow<'_, str> {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::pattern::{AnchorMode, parse};

    fn find(
        pattern: &str,
        text: &str,
        from: usize,
    ) -> Result<Option<Range<usize>>, BacktrackingTimeout> {
        let refusal = parse(pattern, AnchorMode::Text).expect_err("not linear");
        let compiled = Backtracking::new(pattern, refusal).expect("a pattern");
        let deadline = Instant::now() + Duration::from_secs(60);
        compiled.find(text.as_bytes(), from, deadline)
    }

    #[test]
    fn a_long_text_is_searched_in_windows_that_do_not_show() {
        for fill in ["a", "ä"] {
            let before = fill.repeat(70_000);
            let text = format!("{before}<word word>{before}");
            let at = before.len();
            assert_eq!(
                find(r"(?<=<)(\w+) \1(?=>)", &text, 0),
                Ok(Some(at + 1..at + 10))
            );
            assert_eq!(find(r"(?<=<)(\w+) \1(?=>)", &text, at + 2), Ok(None));
            assert_eq!(
                find(r"^(?=<)<", &text, 0),
                Ok(None),
                "no beginning of the text"
            );
            let last = text.len() - fill.len();
            let end = format!("(?<={fill}){fill}$");
            assert_eq!(find(&end, &text, 0), Ok(Some(last..text.len())));
        }
    }

    #[test]
    fn a_slow_search_of_a_long_text_ends() {
        let text = "a".repeat(8 * 1024 * 1024);
        let pattern = "(?=a)(a|a)*b";
        let refusal = parse(pattern, AnchorMode::Text).expect_err("not linear");
        let compiled = Backtracking::new(pattern, refusal).expect("a pattern");
        let found = compiled.find(text.as_bytes(), 0, Instant::now());
        assert_eq!(found, Err(BacktrackingTimeout));
    }
}
