//! The queue for slots within the quota: first come, first served, without starvation.

use std::collections::{BTreeMap, BTreeSet};

use ostler_model::{ExecutionId, Principal, SessionName};
use proptest::prelude::*;

use super::quota::{QueuePosition, QuotaKey, QuotaTable, QuotaTicket, WAITING_STARTS};
use crate::settings::Quotas;

const LIMIT: u32 = 3;
const QUOTAS: Quotas = Quotas {
    finite_per_session: LIMIT,
    others_per_principal: LIMIT,
};

fn share(n: u8) -> QuotaKey {
    let principal = Principal("uid:1".to_owned());
    match n {
        0 | 1 => QuotaKey::Finite(principal, SessionName(format!("s{n}"))),
        _ => QuotaKey::Other(principal),
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Ask,
    /// A start with or without a slot leaves the queue.
    Leave(usize),
    /// A start with a slot becomes an execution.
    Seat(usize),
    /// An execution ends.
    End(usize),
    /// The session ends.
    Dismiss,
    /// An execution is adopted regardless of the limit.
    Adopt,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Ask),
        3 => any::<usize>().prop_map(Step::Leave),
        6 => any::<usize>().prop_map(Step::Seat),
        6 => any::<usize>().prop_map(Step::End),
        1 => Just(Step::Dismiss),
        1 => Just(Step::Adopt),
    ]
}

/// The expected state of one quota.
#[derive(Debug, Default)]
struct Model {
    waiting: Vec<QuotaTicket>,
    granted: BTreeSet<QuotaTicket>,
    held: BTreeSet<ExecutionId>,
    /// The newest ticket that was ever granted.
    served: Option<QuotaTicket>,
}

impl Model {
    fn taken(&self) -> usize {
        self.held.len() + self.granted.len()
    }

    fn serve(&mut self, ticket: QuotaTicket) {
        assert!(self.served < Some(ticket), "nobody overtakes");
        self.served = Some(ticket);
        assert!(self.granted.insert(ticket), "a place once");
    }

    /// Checks that these tickets received a slot.
    fn granted(&mut self, now: Vec<QuotaTicket>) {
        for ticket in now {
            assert_eq!(self.waiting.first(), Some(&ticket), "the first one gets it");
            self.waiting.remove(0);
            self.serve(ticket);
        }
        assert!(
            self.waiting.is_empty() || self.taken() >= LIMIT as usize,
            "nobody waits while a place is free"
        );
    }
}

fn pick<T: Copy>(from: &[T], n: usize) -> Option<T> {
    (!from.is_empty()).then(|| from[n % from.len()])
}

fn apply(places: &mut QuotaTable, share: &QuotaKey, model: &mut Model, step: Step) {
    match step {
        Step::Ask => match places.enter_queue(share, None) {
            QueuePosition::Granted(ticket) => {
                assert!(model.waiting.is_empty() && model.taken() < LIMIT as usize);
                model.serve(ticket);
            }
            QueuePosition::Waiting(ticket) => {
                assert!(model.taken() >= LIMIT as usize, "a place was free");
                model.waiting.push(ticket);
            }
            QueuePosition::Full => panic!("few wait"),
        },
        Step::Leave(n) => {
            let all: Vec<_> = model
                .waiting
                .iter()
                .chain(&model.granted)
                .copied()
                .collect();
            let Some(ticket) = pick(&all, n) else { return };
            model.waiting.retain(|it| *it != ticket);
            model.granted.remove(&ticket);
            model.granted(places.leave_queue(share, ticket));
        }
        Step::Seat(n) => {
            let granted: Vec<_> = model.granted.iter().copied().collect();
            let Some(ticket) = pick(&granted, n) else {
                return;
            };
            let id = ExecutionId::mint();
            assert!(places.assign(share, ticket, id));
            model.granted.remove(&ticket);
            model.held.insert(id);
            model.granted(places.leave_queue(share, ticket));
        }
        Step::End(n) => {
            let held: Vec<_> = model.held.iter().copied().collect();
            let Some(id) = pick(&held, n) else { return };
            model.held.remove(&id);
            model.granted(places.release(share, id));
        }
        Step::Dismiss => {
            assert_eq!(
                places.drop_waiters(share, |_| true),
                std::mem::take(&mut model.waiting)
            );
        }
        Step::Adopt => {
            let id = ExecutionId::mint();
            places.force_acquire(share.clone(), id);
            model.held.insert(id);
        }
    }
}

proptest! {
    /// Three quotas at once: each is an independent queue.
    #[test]
    fn first_come_first_served(steps in proptest::collection::vec((0_u8..3, step()), 0..400)) {
        let mut places = QuotaTable::new(QUOTAS);
        let mut models: BTreeMap<u8, Model> = BTreeMap::new();
        for (n, step) in steps {
            let model = models.entry(n).or_default();
            apply(&mut places, &share(n), model, step);
            let held: usize = models.values().map(|it| it.held.len()).sum();
            prop_assert_eq!(places.running_count(), held);
        }
        for (n, mut model) in models {
            let share = share(n);
            while let Some(id) = model.held.pop_first() {
                model.granted(places.release(&share, id));
            }
            while let Some(ticket) = model.granted.pop_first() {
                model.granted(places.leave_queue(&share, ticket));
            }
            prop_assert!(model.waiting.is_empty(), "everybody is served in the end");
        }
        prop_assert!(places.is_empty(), "nothing is left behind");
    }
}

#[test]
fn as_many_wait_as_may() {
    let mut places = QuotaTable::new(QUOTAS);
    let (one, other) = (share(0), share(1));
    let mut waiting = Vec::new();
    for n in 0..LIMIT as usize + WAITING_STARTS {
        match places.enter_queue(&one, None) {
            QueuePosition::Granted(_) => assert!(n < LIMIT as usize),
            QueuePosition::Waiting(ticket) => waiting.push(ticket),
            QueuePosition::Full => panic!("{n} are few"),
        }
    }
    assert_eq!(places.enter_queue(&one, None), QueuePosition::Full);
    assert!(matches!(
        places.enter_queue(&other, None),
        QueuePosition::Granted(_)
    ));
    places.leave_queue(&one, waiting[0]);
    assert!(matches!(
        places.enter_queue(&one, None),
        QueuePosition::Waiting(_)
    ));
}

#[test]
fn a_start_knows_how_many_are_served_before_it() {
    let mut places = QuotaTable::new(QUOTAS);
    let share = share(0);
    for _ in 0..LIMIT + 2 {
        places.enter_queue(&share, None);
    }
    let id = ExecutionId::mint();
    assert_eq!(places.waiting_ticket(&share, id), None);
    places.enter_queue(&share, Some(id));
    let ticket = places.waiting_ticket(&share, id).unwrap();
    assert_eq!(places.ahead(&share, ticket), Some(2));
    let other = ExecutionId::mint();
    places.enter_queue(&share, Some(other));
    assert_eq!(places.drop_waiters(&share, |it| it == ticket), [ticket]);
    assert_eq!(places.ahead(&share, ticket), None);
    let other = places.waiting_ticket(&share, other).unwrap();
    assert_eq!(places.ahead(&share, other), Some(2));
}
