//! Random walks: inputs in any order, and the invariants. A failing walk prints its seed; set
//! `OSTLER_WALK_SEED` to repeat it.

use std::time::Duration;

use fastrand::Rng;
use ostler_model::Timestamp;

use super::{ContextDecision, ContextInput, ContextLifecycle, ContextState};

const WALKS: u64 = 20_000;
const STEPS: u64 = 32;
const IDLE: Duration = Duration::from_secs(10);

/// A context, and what its manager knows of it.
struct Walk {
    context: ContextLifecycle,
    now: Timestamp,
    uses: u32,
    is_removing: bool,
    is_over: bool,
}

fn any_input(rng: &mut Rng) -> ContextInput {
    let problem = || "a problem".to_owned();
    match rng.u8(0..11) {
        0 => ContextInput::Created,
        1 => ContextInput::CreationFailed,
        2..=4 => ContextInput::Enter,
        5 | 6 => ContextInput::Leave,
        7 => ContextInput::CheckFailed { problem: problem() },
        8 => ContextInput::Tick,
        9 => ContextInput::Remove { force: rng.bool() },
        _ if rng.bool() => ContextInput::Removed,
        _ => ContextInput::RemovalFailed { problem: problem() },
    }
}

impl Walk {
    /// Whether the manager would send it: nothing leaves that did not enter, and a removal ends
    /// that began.
    fn is_possible(&self, input: &ContextInput) -> bool {
        match input {
            ContextInput::Leave => self.uses > 0,
            ContextInput::Removed | ContextInput::RemovalFailed { .. } => self.is_removing,
            ContextInput::Created
            | ContextInput::CreationFailed
            | ContextInput::Enter
            | ContextInput::CheckFailed { .. }
            | ContextInput::Tick
            | ContextInput::Remove { .. } => true,
        }
    }

    fn step(&mut self, input: ContextInput) -> Result<(), String> {
        let was_warm = self.context.state().is_warm();
        let decision = self.context.handle(self.now, input.clone());
        match input {
            ContextInput::Leave => self.uses -= 1,
            ContextInput::Removed | ContextInput::RemovalFailed { .. } => self.is_removing = false,
            ContextInput::Created
            | ContextInput::CreationFailed
            | ContextInput::Enter
            | ContextInput::CheckFailed { .. }
            | ContextInput::Tick
            | ContextInput::Remove { .. } => {}
        }
        match decision {
            _ if self.is_over && decision == ContextDecision::Admit => {
                return Err("a use after the end".to_owned());
            }
            ContextDecision::Admit if !was_warm => return Err("a use of a cold one".to_owned()),
            ContextDecision::Admit => self.uses += 1,
            ContextDecision::RemoveFiles if self.uses > 0 => {
                return Err("files are removed under a use".to_owned());
            }
            ContextDecision::RemoveFiles if self.is_removing => {
                return Err("files are removed twice at once".to_owned());
            }
            ContextDecision::RemoveFiles => self.is_removing = true,
            ContextDecision::StopUses if self.uses == 0 => return Err("no use to stop".to_owned()),
            ContextDecision::Forget if self.is_over || self.uses > 0 => {
                return Err("forgotten twice, or in use".to_owned());
            }
            ContextDecision::Forget => self.is_over = true,
            ContextDecision::Nothing | ContextDecision::Refuse(_) | ContextDecision::StopUses => {}
        }
        self.check()
    }

    fn check(&self) -> Result<(), String> {
        let state = self.context.state();
        if state.uses() != self.uses {
            return Err(format!("{} uses, and the state is {state:?}", self.uses));
        }
        let waits_for_removal = matches!(state, ContextState::Ending { uses: 0, .. });
        if waits_for_removal != self.is_removing {
            return Err(format!("nothing removes the files of {state:?}"));
        }
        if matches!(state, ContextState::Ended { .. }) != self.is_over {
            return Err(format!("ended, and not forgotten: {state:?}"));
        }
        let is_idle = matches!(state, ContextState::Idle { .. });
        if is_idle != self.context.idle_deadline().is_some() {
            return Err("idle without an end".to_owned());
        }
        Ok(())
    }
}

fn walk(seed: u64) -> Result<(), String> {
    let mut rng = Rng::with_seed(seed);
    let mut walk = Walk {
        context: ContextLifecycle::new(IDLE),
        now: Timestamp::from_second(1_700_000_000).expect("a valid second"),
        uses: 0,
        is_removing: false,
        is_over: false,
    };
    for _ in 0..STEPS {
        walk.now += Duration::from_secs(rng.u64(0..8));
        let input = any_input(&mut rng);
        if walk.is_possible(&input) {
            walk.step(input)?;
        }
    }
    Ok(())
}

#[test]
fn no_walk_breaks_an_invariant() {
    let repeated = std::env::var("OSTLER_WALK_SEED").ok();
    let seeds = match repeated.and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..WALKS,
    };
    for seed in seeds {
        if let Err(problem) = walk(seed) {
            panic!("OSTLER_WALK_SEED={seed}: {problem}");
        }
    }
}
