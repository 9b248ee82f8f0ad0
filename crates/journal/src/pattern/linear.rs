//! Patterns without look-around and back-references: time is linear in the bytes searched, but the
//! factor is the size of the pattern, and that may be large: `(a{1,200}){1,200}` has 40,000 states.
//!
//! Where pattern and text are small, the library's engines search; they cannot be interrupted. Most
//! patterns search a few lines, once: those that need no automaton do until some kilobytes have been
//! searched. Elsewhere a lazy DFA searches, which gives up when it would have to build too many
//! states, and after it the [`simulation`](super::simulation), which checks the time.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use regex_automata::hybrid::{dfa, regex as lazy};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::pool::Pool;
use regex_automata::{Input, MatchKind, meta};
use regex_syntax::hir::Hir;

use super::simulation::{self, DeadlinePassed};
use super::{PATTERN_BYTES, PatternError, pattern_error};

/// The product of the bytes of a compiled pattern and of a text up to which a search is not
/// interrupted: some 20 ms at worst.
const UNINTERRUPTED: usize = 256 * 1024 * 1024;
/// The largest compiled pattern, in bytes, that searches a block of lines in a second at worst.
const SMALL_BYTES: usize = 128 * 1024;
/// How often a lazy DFA clears its cache in one search before it gives up.
const CACHE_CLEARS: usize = 16;
/// The cache size of a lazy DFA in bytes.
const CACHE_BYTES: usize = 2 * 1024 * 1024;

/// How many bytes are searched without a lazy DFA: to compile one, with its reverse, takes as long
/// as to search some kilobytes without.
const BYTES_WITHOUT_DFA: usize = 4 * 1024;

#[derive(Debug)]
pub(super) struct Linear {
    /// Searches by backtracking within bounds, or by simulation.
    regex: meta::Regex,
    /// The same with a lazy DFA; compiled once enough has been searched.
    with_dfa: OnceLock<meta::Regex>,
    /// The bytes searched so far, up to [`BYTES_WITHOUT_DFA`].
    searched: AtomicUsize,
    parsed: Hir,
    /// Compiled when a search may take long; none where the library refuses it.
    interruptible: OnceLock<Option<Box<InterruptibleSearch>>>,
}

/// The engines for searches that may take long.
#[derive(Debug)]
struct InterruptibleSearch {
    nfa: NFA,
    automaton: Option<LazyAutomaton>,
}

/// A lazy DFA, which is compiled during the search.
#[derive(Debug)]
struct LazyAutomaton {
    automaton: Arc<lazy::Regex>,
    caches: Pool<lazy::Cache, Box<dyn Fn() -> lazy::Cache + Send + Sync>>,
}

impl Linear {
    pub(super) fn new(parsed: Hir) -> Result<Self, PatternError> {
        Ok(Self {
            regex: compile_regex(&parsed, false)?,
            with_dfa: OnceLock::new(),
            searched: AtomicUsize::new(0),
            parsed,
            interruptible: OnceLock::new(),
        })
    }

    /// Whether a search of that many bytes ends soon, whatever they are.
    pub(super) fn is_quick(&self, bytes: usize) -> bool {
        self.compiled_bytes().saturating_mul(bytes) <= UNINTERRUPTED
    }

    /// Whether many lines may be searched at once, without an interruption.
    pub(super) fn is_small(&self) -> bool {
        self.compiled_bytes() <= SMALL_BYTES
    }

    /// The bytes of the pattern compiled for both directions, about.
    fn compiled_bytes(&self) -> usize {
        self.regex.memory_usage().saturating_mul(2)
    }

    /// The engine for a text of this many bytes that is not interrupted.
    fn regex_for(&self, bytes: usize) -> &meta::Regex {
        let searched = self.searched.load(Ordering::Relaxed);
        if searched <= BYTES_WITHOUT_DFA {
            let searched = searched.saturating_add(bytes);
            self.searched.store(searched, Ordering::Relaxed);
            if searched <= BYTES_WITHOUT_DFA {
                return &self.regex;
            }
        }
        self.with_dfa.get_or_init(|| {
            // The reverse of a pattern can be larger than the pattern.
            compile_regex(&self.parsed, true).unwrap_or_else(|_| self.regex.clone())
        })
    }

    /// The first match at or after `from`; the bytes before it are context. With `earliest`, the
    /// match need not be complete: its end is arbitrary.
    pub(super) fn find(
        &self,
        text: &[u8],
        from: usize,
        earliest: bool,
        deadline: Instant,
    ) -> Result<Option<Range<usize>>, DeadlinePassed> {
        let input = Input::new(text).span(from..text.len()).earliest(earliest);
        let long = match self.is_quick(text.len() - from) {
            true => None,
            false => self.long(),
        };
        let Some(long) = long else {
            let regex = self.regex_for(text.len() - from);
            if earliest {
                // Without a request for the beginning, no second search runs backward.
                let end = regex.search_half(&input);
                return Ok(end.map(|end| from..end.offset()));
            }
            return Ok(regex.find(input).map(|found| found.range()));
        };
        let found = long.automaton.as_ref().ok_or(LazyGaveUp).and_then(|lazy| {
            // Without a request for the beginning, no second search runs backward.
            match earliest {
                true => lazy.find_end(&input).map(|end| end.map(|end| from..end)),
                false => lazy.find_range(&input),
            }
        });
        found.or_else(|LazyGaveUp| simulation::find(&long.nfa, text, from, earliest, deadline))
    }

    fn long(&self) -> Option<&InterruptibleSearch> {
        let compiled = || InterruptibleSearch::new(&self.parsed).map(Box::new);
        self.interruptible.get_or_init(compiled).as_deref()
    }
}

/// A lazy DFA met an assertion it cannot decide, or had to build too many states.
struct LazyGaveUp;

impl InterruptibleSearch {
    fn new(parsed: &Hir) -> Option<Self> {
        let nfa = compile_nfa(parsed, false)?;
        let lazy = LazyAutomaton::new(parsed, &nfa);
        Some(Self {
            nfa,
            automaton: lazy,
        })
    }
}

impl LazyAutomaton {
    fn new(parsed: &Hir, nfa: &NFA) -> Option<Self> {
        let forward = build_lazy_dfa(nfa.clone(), MatchKind::LeftmostFirst)?;
        let backward = build_lazy_dfa(compile_nfa(parsed, true)?, MatchKind::All)?;
        let automaton = Arc::new(lazy::Builder::new().build_from_dfas(forward, backward));
        let creator = Arc::clone(&automaton);
        let caches = Pool::new(Box::new(move || creator.create_cache()) as Box<_>);
        Some(Self { automaton, caches })
    }

    fn find_range(&self, input: &Input<'_>) -> Result<Option<Range<usize>>, LazyGaveUp> {
        let mut cache = self.caches.get();
        let found = self.automaton.try_search(&mut cache, input);
        found
            .map(|found| found.map(|found| found.range()))
            .map_err(|_| LazyGaveUp)
    }

    fn find_end(&self, input: &Input<'_>) -> Result<Option<usize>, LazyGaveUp> {
        let mut cache = self.caches.get();
        let (forward, _) = cache.as_parts_mut();
        let found = self.automaton.forward().try_search_fwd(forward, input);
        found
            .map(|found| found.map(|found| found.offset()))
            .map_err(|_| LazyGaveUp)
    }
}

/// Compiles without fully compiled DFAs: a lazy DFA is as fast.
fn compile_regex(parsed: &Hir, lazy_dfa: bool) -> Result<meta::Regex, PatternError> {
    let config = meta::Config::new()
        .utf8_empty(false)
        .nfa_size_limit(Some(PATTERN_BYTES))
        .hybrid(lazy_dfa)
        .dfa(false)
        .onepass(false);
    let built = meta::Builder::new()
        .configure(config)
        .build_from_hir(parsed);
    built.map_err(|error| match error.size_limit() {
        Some(limit) => pattern_error(
            format!("the pattern takes more than {limit} bytes once compiled"),
            0,
        ),
        None => pattern_error(error, 0),
    })
}

fn compile_nfa(parsed: &Hir, reverse: bool) -> Option<NFA> {
    let config = thompson::Config::new()
        .utf8(false)
        .reverse(reverse)
        .which_captures(WhichCaptures::None)
        .nfa_size_limit(Some(PATTERN_BYTES));
    let built = thompson::Compiler::new()
        .configure(config)
        .build_from_hir(parsed);
    built.ok()
}

fn build_lazy_dfa(nfa: NFA, kind: MatchKind) -> Option<dfa::DFA> {
    let config = dfa::Config::new()
        .match_kind(kind)
        .unicode_word_boundary(true)
        .cache_capacity(CACHE_BYTES)
        .skip_cache_capacity_check(true)
        .minimum_cache_clear_count(Some(CACHE_CLEARS));
    let built = dfa::Builder::new().configure(config).build_from_nfa(nfa);
    built.ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::pattern::{AnchorMode, parse};

    fn linear(pattern: &str) -> Linear {
        let parsed = parse(pattern, AnchorMode::Text).expect("a pattern");
        Linear::new(parsed).expect("small enough")
    }

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    fn patterns() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("a".to_owned()),
            Just("b".to_owned()),
            Just("[^a]".to_owned()),
            Just(".".to_owned()),
            Just(r"\b".to_owned()),
            Just("^".to_owned()),
            Just("$".to_owned()),
            Just("ä".to_owned()),
            Just(r"\w".to_owned()),
            Just(String::new()),
        ];
        leaf.prop_recursive(4, 24, 3, |inner| {
            prop_oneof![
                (inner.clone(), inner.clone()).prop_map(|(one, two)| format!("{one}{two}")),
                (inner.clone(), inner.clone()).prop_map(|(one, two)| format!("(?:{one}|{two})")),
                inner.clone().prop_map(|one| format!("(?:{one})*")),
                inner.clone().prop_map(|one| format!("(?:{one})+?")),
                inner.clone().prop_map(|one| format!("(?:{one})?")),
                inner.prop_map(|one| format!("(?:{one}){{1,3}}")),
            ]
        })
    }

    fn texts() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![
            Just(b"a".to_vec()),
            Just(b"b".to_vec()),
            Just(b" ".to_vec()),
            Just("ä".as_bytes().to_vec()),
            Just(vec![0xff]),
        ];
        proptest::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn every_way_to_search_finds_the_same(pattern in patterns(), text in texts(), from in 0usize..8) {
            let from = from.min(text.len());
            let linear = linear(&pattern);
            let input = Input::new(&text).span(from..text.len());
            let want = linear.regex.find(input.clone()).map(|found| found.range());
            let with_dfa = compile_regex(&linear.parsed, true).expect("small enough");
            prop_assert_eq!(with_dfa.find(input.clone()).map(|found| found.range()), want.clone());
            let found = linear.find(&text, from, true, later()).unwrap();
            prop_assert_eq!(found.is_some(), want.is_some());
            let long = linear.long().expect("compiled");
            prop_assert_eq!(simulation::find(&long.nfa, &text, from, false, later()).unwrap(), want.clone());
            let any = simulation::find(&long.nfa, &text, from, true, later()).unwrap();
            prop_assert_eq!(any.is_some(), want.is_some());
            let lazy = long.automaton.as_ref().expect("compiled");
            if let Ok(found) = lazy.find_range(&input) {
                prop_assert_eq!(found, want.clone());
            }
            if let Ok(found) = lazy.find_end(&input.earliest(true)) {
                prop_assert_eq!(found.is_some(), want.is_some());
            }
        }
    }

    #[test]
    fn a_large_pattern_over_a_long_text_ends_at_its_deadline() {
        let linear = linear("(a{1,200}){1,200}b");
        let text = vec![b'a'; 8 * 1024 * 1024];
        for earliest in [false, true] {
            let deadline = Instant::now() + Duration::from_millis(50);
            let found = linear.find(&text, 0, earliest, deadline);
            assert_eq!(found, Err(DeadlinePassed));
        }
    }

    #[test]
    fn patterns_of_daily_use_are_quick_in_lines_and_found_in_long_texts() {
        let mut text = "ä word ".repeat(300_000).into_bytes();
        let place = text.len();
        text.extend_from_slice(b"error[E0308]: mismatched types at 10:24");
        for pattern in [
            r"error(\[E\d+\])?: \w+",
            r"(?i)\berror\b",
            r"[Ee]rror|fatal|panicked at|Traceback",
            r"error\S* (\w+ ){1,3}at \d{1,2}:\d{2}$",
        ] {
            let linear = linear(pattern);
            assert!(linear.is_quick(256), "{pattern}");
            assert!(!linear.is_quick(text.len()), "{pattern}");
            let found = linear.find(&text, 0, false, later()).unwrap();
            assert_eq!(found.expect(pattern).start, place, "{pattern}");
        }
    }
}
