//! Whether a dependency satisfies its condition, and waiting until it does.

use std::time::Duration;

use ostler_model::duration;
use ostler_model::{DependencyCondition, ServiceStage, State};

use super::diagnosis::describe_output;
use super::format;
use crate::execution::ExecutionHandle;

/// The most lines of a failed dependency that are read.
const LINES: u64 = 200;

/// The status of a dependency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DependencyStatus {
    /// Its condition is satisfied.
    Met,
    /// Its condition may become satisfied.
    Waiting,
    /// Its condition will not be satisfied in its present state.
    Failed(String),
}

/// The status of a dependency, by its state.
pub(crate) fn dependency_status(state: &State, condition: DependencyCondition) -> DependencyStatus {
    if let Some(ending) = &state.ending {
        return match (condition, ending.is_success()) {
            (DependencyCondition::Completed, true) => DependencyStatus::Met,
            (DependencyCondition::Completed, false) => {
                DependencyStatus::Failed(format!("ended badly: {}", ending.describe()))
            }
            (
                DependencyCondition::Started
                | DependencyCondition::Listening
                | DependencyCondition::Ready,
                _,
            ) => {
                let required = format::condition_name(condition);
                let ended = if was_met(state, condition) {
                    format!("was {required} and ended")
                } else {
                    format!("ended before it was {required}")
                };
                DependencyStatus::Failed(format!("{ended}: {}", ending.describe()))
            }
        };
    }
    let met = match condition {
        DependencyCondition::Started => state.attempt > 0 && state.backoff_until.is_none(),
        DependencyCondition::Listening => !state.ports.is_empty() || is_listening(state.stage),
        DependencyCondition::Ready => is_ready(state.stage),
        DependencyCondition::Completed => false,
    };
    match (condition, state.healthy) {
        (DependencyCondition::Listening | DependencyCondition::Ready, Some(false)) => {
            let detail = state.health.as_deref().unwrap_or("no reason is known");
            DependencyStatus::Failed(format!("lives but is not well: {detail}"))
        }
        _ if met => DependencyStatus::Met,
        _ => DependencyStatus::Waiting,
    }
}

/// Whether the newest attempt, which ended, satisfied the condition.
const fn was_met(state: &State, condition: DependencyCondition) -> bool {
    let was_ready = state.ready_evidence.is_some();
    match condition {
        DependencyCondition::Started => state.pid.is_some(),
        DependencyCondition::Listening => was_ready || !state.ports.is_empty(),
        DependencyCondition::Ready => was_ready,
        DependencyCondition::Completed => false,
    }
}

const fn is_listening(stage: Option<ServiceStage>) -> bool {
    match stage {
        Some(ServiceStage::Listening | ServiceStage::Responding | ServiceStage::Ready) => true,
        Some(ServiceStage::Running) | None => false,
    }
}

const fn is_ready(stage: Option<ServiceStage>) -> bool {
    match stage {
        Some(ServiceStage::Running | ServiceStage::Ready) => true,
        Some(ServiceStage::Listening | ServiceStage::Responding) | None => false,
    }
}

/// Waits until the condition is satisfied.
///
/// # Errors
/// Why it will not be: a clause about the dependency.
pub(crate) async fn wait(
    entry: &ExecutionHandle,
    condition: DependencyCondition,
    timeout: Duration,
) -> Result<(), String> {
    let mut live = entry.live.subscribe();
    let outcome = async {
        loop {
            let status = dependency_status(&live.borrow_and_update().state, condition);
            match status {
                DependencyStatus::Met => return Ok(()),
                DependencyStatus::Failed(reason) => return Err(reason),
                DependencyStatus::Waiting => {}
            }
            if live.changed().await.is_err() {
                return Err("is gone".to_owned());
            }
        }
    };
    match tokio::time::timeout(timeout, outcome).await {
        Ok(Err(reason)) => Err(with_last_line(entry, reason)),
        Ok(Ok(())) => Ok(()),
        Err(_) => {
            let waits_for = entry.live.borrow().waiting_for.clone();
            let waits_for = waits_for.map(|it| format!("; it waits for {it}"));
            Err(format!(
                "was not {} within {} and still runs as {}{}",
                format::condition_name(condition),
                duration::rounded(timeout),
                entry.id.short(),
                waits_for.unwrap_or_default()
            ))
        }
    }
}

fn with_last_line(entry: &ExecutionHandle, reason: String) -> String {
    let lines = format::last_lines(entry, LINES);
    let rule = entry.spec.lifetime.plan().map(|it| it.ready.clone());
    let output = describe_output(&rule.unwrap_or_default(), &lines);
    format!("{reason}{output}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_model::termination::WaitStatus;
    use ostler_model::{Termination, TerminationCause};

    fn at(stage: Option<ServiceStage>) -> State {
        State {
            attempt: 1,
            stage,
            ..State::default()
        }
    }

    fn ended(code: i32) -> State {
        State {
            ending: Some(Termination::new(
                TerminationCause::Exited,
                WaitStatus::Code(code),
            )),
            ..at(None)
        }
    }

    #[test]
    fn each_condition_is_met_by_what_it_says() {
        use DependencyCondition::{Completed, Listening, Ready, Started};
        let table = [
            (None, [true, false, false, false]),
            (Some(ServiceStage::Listening), [true, true, false, false]),
            (Some(ServiceStage::Responding), [true, true, false, false]),
            (Some(ServiceStage::Running), [true, false, true, false]),
            (Some(ServiceStage::Ready), [true, true, true, false]),
        ];
        for (stage, expected) in table {
            let found = [Started, Listening, Ready, Completed]
                .map(|condition| dependency_status(&at(stage), condition) == DependencyStatus::Met);
            assert_eq!(found, expected, "{stage:?}");
        }
        assert_eq!(
            dependency_status(&ended(0), Completed),
            DependencyStatus::Met
        );
        assert_eq!(
            dependency_status(&State::default(), Started),
            DependencyStatus::Waiting
        );
    }

    #[test]
    fn death_and_illness_end_a_wait() {
        let actual = |state: &State, condition| match dependency_status(state, condition) {
            DependencyStatus::Failed(why) => why,
            other @ (DependencyStatus::Met | DependencyStatus::Waiting) => panic!("{other:?}"),
        };
        assert_eq!(
            actual(&ended(0), DependencyCondition::Ready),
            "ended before it was ready: exit code 0"
        );
        let mut was_ready = ended(0);
        was_ready.ready_evidence = Some("a line".to_owned());
        assert_eq!(
            actual(&was_ready, DependencyCondition::Ready),
            "was ready and ended: exit code 0"
        );
        assert_eq!(
            actual(&ended(3), DependencyCondition::Completed),
            "ended badly: exit code 3"
        );
        let mut ill = at(Some(ServiceStage::Listening));
        (ill.healthy, ill.health) = (Some(false), Some("EADDRINUSE".to_owned()));
        assert_eq!(
            actual(&ill, DependencyCondition::Ready),
            "lives but is not well: EADDRINUSE"
        );
        assert_eq!(
            dependency_status(&ill, DependencyCondition::Started),
            DependencyStatus::Met
        );
    }
}
