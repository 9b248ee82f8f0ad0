//! [`BudgetedMatcher`]: all searches of one query within one time budget.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::{BudgetExceeded, MatchEngine, Pattern};

/// Matches a pattern within a time budget.
///
/// Clones share the budget.
#[derive(Debug, Clone)]
pub(crate) struct BudgetedMatcher {
    budget: Duration,
    used: Rc<Cell<Duration>>,
}

impl BudgetedMatcher {
    pub(crate) fn new(budget: Duration) -> Self {
        Self {
            budget,
            used: Rc::default(),
        }
    }

    pub(crate) fn is_match(&self, pattern: &Pattern, line: &[u8]) -> Result<bool, BudgetExceeded> {
        let decoded = pattern
            .decoding_for(line)
            .map(|encoding| encoding.decode(line));
        let text = decoded.as_ref().map_or(line, String::as_bytes);
        if self.is_match_in(pattern, text)? {
            return Ok(true);
        }
        match pattern.plain_text_of(text) {
            Some(plain) => self.is_match_in(pattern, &plain),
            None => Ok(false),
        }
    }

    fn is_match_in(&self, pattern: &Pattern, text: &[u8]) -> Result<bool, BudgetExceeded> {
        match &pattern.inner.engine {
            MatchEngine::Linear(linear) => self.run_timed(|deadline| {
                let found = linear.find(text, 0, true, deadline);
                found.map(|found| found.is_some()).ok()
            }),
            MatchEngine::Backtracking(backtracking) => self.run_timed(|deadline| {
                let found = backtracking.find(text, 0, deadline);
                found.map(|found| found.is_some()).ok()
            }),
        }
    }

    /// A line as it reads, where the pattern matches only that.
    pub(crate) fn plain_text_match(
        &self,
        pattern: &Pattern,
        line: &[u8],
    ) -> Result<Option<Vec<u8>>, BudgetExceeded> {
        let Some(plain) = pattern.plain_text_of(line) else {
            return Ok(None);
        };
        let is_raw_match = self.find_at(pattern, line, 0)?.is_some();
        Ok((!is_raw_match).then_some(plain))
    }

    /// The offset in the first of these whole lines that may match.
    pub(crate) fn candidate(
        &self,
        pattern: &Pattern,
        lines: &[u8],
    ) -> Result<Option<usize>, BudgetExceeded> {
        match pattern.prefilter() {
            Some(filter) => self.run_timed(|_deadline| Some(filter.candidate(lines))),
            None => Ok(Some(0)),
        }
    }

    /// The first match at or after `from`.
    pub(crate) fn find_at(
        &self,
        pattern: &Pattern,
        line: &[u8],
        from: usize,
    ) -> Result<Option<Range<usize>>, BudgetExceeded> {
        let Some(encoding) = pattern.decoding_for(line) else {
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
            MatchEngine::Linear(linear) => {
                self.run_timed(|deadline| linear.find(text, from, false, deadline).ok())
            }
            MatchEngine::Backtracking(backtracking) => {
                self.run_timed(|deadline| backtracking.find(text, from, deadline).ok())
            }
        }
    }

    /// Runs a search with a deadline and subtracts its time; `search` returns none where it did not
    /// end.
    fn run_timed<T>(&self, search: impl FnOnce(Instant) -> Option<T>) -> Result<T, BudgetExceeded> {
        let exceeded = BudgetExceeded {
            budget: self.budget,
        };
        let remaining = self.budget.saturating_sub(self.used.get());
        if remaining.is_zero() {
            return Err(exceeded);
        }
        let started = Instant::now();
        let result = search(started + remaining);
        self.used.set(self.used.get() + started.elapsed());
        result.ok_or(exceeded)
    }
}
