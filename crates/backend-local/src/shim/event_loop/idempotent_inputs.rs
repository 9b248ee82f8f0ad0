//! Inputs that are written at most once, however often they are sent. The shim keeps the record
//! because it outlives the daemon that sent them. Pure.

use std::collections::VecDeque;

use ostler_backend::{IdempotentInput, InputProgress};
use ostler_model::InputId;

/// The most inputs that are remembered; the oldest is forgotten first.
const INPUTS_MAX: usize = 64;

/// The inputs of one attempt.
#[derive(Debug, Default)]
pub(super) struct IdempotentInputs(VecDeque<InputProgress>);

impl IdempotentInputs {
    /// The progress of an input.
    pub(super) fn get(&self, id: InputId) -> Option<InputProgress> {
        self.0.iter().find(|it| it.input.id == id).copied()
    }

    /// Of `len` bytes of an input from `from` on, how many were accepted before; none where they do
    /// not follow what was accepted of it.
    pub(super) fn accepted_before(
        &mut self,
        input: IdempotentInput,
        from: u64,
        len: usize,
    ) -> Option<usize> {
        let Some(progress) = self.get(input.id) else {
            if from > 0 {
                return None;
            }
            if self.0.len() == INPUTS_MAX {
                self.0.pop_front();
            }
            self.0.push_back(InputProgress { input, accepted: 0 });
            return Some(0);
        };
        if progress.input != input {
            return None;
        }
        let before = progress.accepted.checked_sub(from)?;
        Some(usize::try_from(before).map_or(len, |before| before.min(len)))
    }

    /// Records that this many more bytes were accepted. An input of which nothing was accepted
    /// counts as new.
    pub(super) fn record_accepted(&mut self, id: InputId, accepted: u64) {
        if let Some(progress) = self.0.iter_mut().find(|it| it.input.id == id) {
            progress.accepted += accepted;
        }
        self.0.retain(|it| it.input.id != id || it.accepted > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(len: u64) -> IdempotentInput {
        let id = InputId::mint();
        IdempotentInput {
            id,
            output_end: 7,
            len,
        }
    }

    #[test]
    fn what_was_taken_is_not_taken_again() {
        let (mut inputs, input) = (IdempotentInputs::default(), input(10));
        assert_eq!(inputs.get(input.id), None);
        assert_eq!(inputs.accepted_before(input, 0, 6), Some(0));
        inputs.record_accepted(input.id, 4);
        assert_eq!(inputs.accepted_before(input, 4, 2), Some(0));
        inputs.record_accepted(input.id, 2);
        assert_eq!(inputs.accepted_before(input, 0, 10), Some(6));
        inputs.record_accepted(input.id, 4);
        assert_eq!(inputs.accepted_before(input, 0, 10), Some(10));
        assert_eq!(inputs.accepted_before(input, 0, 6), Some(6));
        assert_eq!(
            inputs.get(input.id),
            Some(InputProgress {
                input,
                accepted: 10
            })
        );
    }

    #[test]
    fn what_does_not_belong_to_it_is_not_taken() {
        let (mut inputs, first) = (IdempotentInputs::default(), input(10));
        assert_eq!(inputs.accepted_before(first, 3, 6), None);
        assert_eq!(inputs.get(first.id), None);
        assert_eq!(inputs.accepted_before(first, 0, 6), Some(0));
        assert_eq!(inputs.accepted_before(first, 3, 6), None);
        let longer = IdempotentInput { len: 11, ..first };
        assert_eq!(inputs.accepted_before(longer, 0, 11), None);
    }

    #[test]
    fn one_of_which_nothing_was_taken_is_new() {
        let (mut inputs, input) = (IdempotentInputs::default(), input(10));
        assert_eq!(inputs.accepted_before(input, 0, 10), Some(0));
        inputs.record_accepted(input.id, 0);
        assert_eq!(inputs.get(input.id), None);
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let mut inputs = IdempotentInputs::default();
        let all: Vec<IdempotentInput> = (0..=INPUTS_MAX).map(|_| input(1)).collect();
        for &input in &all {
            assert_eq!(inputs.accepted_before(input, 0, 1), Some(0));
            inputs.record_accepted(input.id, 1);
        }
        assert_eq!(inputs.get(all[0].id), None);
        assert!(all[1..].iter().all(|it| inputs.get(it.id).is_some()));
    }
}
