//! An NFA simulation that follows all states of a pattern at once, byte by byte (Thompson 1968;
//! Pike's order of priorities), and ends when its time is up. The library has the same without a
//! deadline.

use std::ops::Range;
use std::time::Instant;

use regex_automata::nfa::thompson::{NFA, State};
use regex_automata::util::primitives::StateID;

/// The number of steps between two reads of the clock.
const STEPS: u32 = 16 * 1024;

/// The error for a search that took longer than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeadlinePassed;

/// The active states of a search at one position.
struct ThreadList {
    /// In the order of priority, the preferred match first.
    states: Vec<StateID>,
    /// For each state of the pattern: where its match begins, and the position after the one where
    /// it was entered last.
    entered: Vec<(usize, usize)>,
}

struct NfaSimulation<'a> {
    nfa: &'a NFA,
    text: &'a [u8],
    /// The states still to be entered at one position.
    stack: Vec<StateID>,
    steps: u32,
    deadline: Instant,
}

/// The leftmost match at or after `from`, of several there the one a backtracking search would
/// find; with `earliest`, its end is the first known.
pub(super) fn find(
    nfa: &NFA,
    text: &[u8],
    from: usize,
    earliest: bool,
    deadline: Instant,
) -> Result<Option<Range<usize>>, DeadlinePassed> {
    let mut search = NfaSimulation {
        nfa,
        text,
        stack: Vec::new(),
        steps: 0,
        deadline,
    };
    let mut current = ThreadList::new(nfa);
    let mut next = ThreadList::new(nfa);
    let mut found = None;
    for at in from..=text.len() {
        if found.is_none() {
            search.add_thread(&mut current, nfa.start_anchored(), at, at)?;
        } else if current.states.is_empty() {
            break;
        }
        if let Some(range) = search.step(&current, &mut next, at)? {
            found = Some(range);
            if earliest {
                break;
            }
        }
        std::mem::swap(&mut current, &mut next);
        next.states.clear();
    }
    Ok(found)
}

impl ThreadList {
    fn new(nfa: &NFA) -> Self {
        Self {
            states: Vec::new(),
            entered: vec![(0, 0); nfa.states().len()],
        }
    }
}

impl NfaSimulation<'_> {
    /// Consumes the byte at a position. A match that ends there excludes those of lower priority.
    fn step(
        &mut self,
        now: &ThreadList,
        next: &mut ThreadList,
        at: usize,
    ) -> Result<Option<Range<usize>>, DeadlinePassed> {
        for &state in &now.states {
            let (start, _) = now.entered[state];
            let next_state = match self.nfa.state(state) {
                State::Match { .. } => return Ok(Some(start..at)),
                State::ByteRange { trans } => trans.matches(self.text, at).then_some(trans.next),
                State::Sparse(sparse) => sparse.matches(self.text, at),
                State::Dense(dense) => dense.matches(self.text, at),
                State::Look { .. }
                | State::Union { .. }
                | State::BinaryUnion { .. }
                | State::Capture { .. }
                | State::Fail => None,
            };
            self.count_step()?;
            if let Some(follows) = next_state {
                self.add_thread(next, follows, at + 1, start)?;
            }
        }
        Ok(None)
    }

    /// Enters a state and all that are reached from it by empty transitions.
    fn add_thread(
        &mut self,
        threads: &mut ThreadList,
        state: StateID,
        at: usize,
        start: usize,
    ) -> Result<(), DeadlinePassed> {
        self.stack.push(state);
        while let Some(state) = self.stack.pop() {
            if threads.entered[state].1 == at + 1 {
                continue;
            }
            self.count_step()?;
            threads.entered[state] = (start, at + 1);
            threads.states.push(state);
            match self.nfa.state(state) {
                State::Look { look, next } => {
                    let matcher = self.nfa.look_matcher();
                    if matcher.matches(*look, self.text, at) {
                        self.stack.push(*next);
                    }
                }
                State::Union { alternates } => self.stack.extend(alternates.iter().rev()),
                State::BinaryUnion { alt1, alt2 } => self.stack.extend([*alt2, *alt1]),
                State::Capture { next, .. } => self.stack.push(*next),
                State::ByteRange { .. }
                | State::Sparse(_)
                | State::Dense(_)
                | State::Fail
                | State::Match { .. } => {}
            }
        }
        Ok(())
    }

    fn count_step(&mut self) -> Result<(), DeadlinePassed> {
        self.steps += 1;
        if self.steps < STEPS {
            return Ok(());
        }
        self.steps = 0;
        match Instant::now() < self.deadline {
            true => Ok(()),
            false => Err(DeadlinePassed),
        }
    }
}
