//! Whether a service is as far as another needs it, and waiting until it is.

use std::time::Duration;

use ostler_model::{Condition, Stage, State};

use super::why::said;
use super::words;
use crate::entry::Entry;

/// Lines of one that failed that are looked at.
const LINES: u64 = 200;

/// How a dependency stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is so.
    Met,
    /// It may become so.
    Waiting,
    /// It will not, as it is.
    Failed(String),
}

/// How far it is.
pub(crate) fn standing(state: &State, condition: Condition) -> Standing {
    if let Some(ending) = &state.ending {
        return match (condition, ending.is_success()) {
            (Condition::Completed, true) => Standing::Met,
            (Condition::Completed, false) => {
                Standing::Failed(format!("ended badly: {}", ending.describe()))
            }
            (Condition::Started | Condition::Listening | Condition::Ready, _) => {
                let far = words::condition(condition);
                Standing::Failed(format!("ended before it was {far}: {}", ending.describe()))
            }
        };
    }
    let met = match condition {
        Condition::Started => state.attempt > 0 && state.backoff_until.is_none(),
        Condition::Listening => !state.ports.is_empty() || is_listening(state.stage),
        Condition::Ready => is_ready(state.stage),
        Condition::Completed => false,
    };
    match (condition, state.healthy) {
        (Condition::Listening | Condition::Ready, Some(false)) => {
            let detail = state.health.as_deref().unwrap_or("no reason is known");
            Standing::Failed(format!("lives but is not well: {detail}"))
        }
        _ if met => Standing::Met,
        _ => Standing::Waiting,
    }
}

const fn is_listening(stage: Option<Stage>) -> bool {
    match stage {
        Some(Stage::Listening | Stage::Responding | Stage::Ready) => true,
        Some(Stage::Running) | None => false,
    }
}

const fn is_ready(stage: Option<Stage>) -> bool {
    match stage {
        Some(Stage::Running | Stage::Ready) => true,
        Some(Stage::Listening | Stage::Responding) | None => false,
    }
}

/// Waits until it is so.
///
/// # Errors
/// Why it will not be: as a clause about the dependency.
pub(crate) async fn wait(
    entry: &Entry,
    condition: Condition,
    at_most: Duration,
) -> Result<(), String> {
    let mut live = entry.live.subscribe();
    let decided = async {
        loop {
            let standing = standing(&live.borrow_and_update().state, condition);
            match standing {
                Standing::Met => return Ok(()),
                Standing::Failed(why) => return Err(why),
                Standing::Waiting => {}
            }
            if live.changed().await.is_err() {
                return Err("is gone".to_owned());
            }
        }
    };
    match tokio::time::timeout(at_most, decided).await {
        Ok(Err(why)) => Err(with_last_line(entry, why)),
        Ok(Ok(())) => Ok(()),
        Err(_) => {
            let waits_for = entry.live.borrow().waits_for.clone();
            let waits_for = waits_for.map(|it| format!("; it waits for {it}"));
            Err(format!(
                "was not {} within {} and still runs as {}{}",
                words::condition(condition),
                words::span(at_most),
                entry.id.short(),
                waits_for.unwrap_or_default()
            ))
        }
    }
}

fn with_last_line(entry: &Entry, why: String) -> String {
    let lines = words::last_lines(entry, LINES);
    let rule = entry.spec.lifetime.plan().map(|it| it.ready.clone());
    let said = said(&rule.unwrap_or_default(), &lines);
    format!("{why}{said}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_model::ending::WaitStatus;
    use ostler_model::{Cause, Ending};

    fn at(stage: Option<Stage>) -> State {
        State {
            attempt: 1,
            stage,
            ..State::default()
        }
    }

    fn ended(code: i32) -> State {
        State {
            ending: Some(Ending::new(Cause::Exited, WaitStatus::Code(code))),
            ..at(None)
        }
    }

    #[test]
    fn each_condition_is_met_by_what_it_says() {
        use Condition::{Completed, Listening, Ready, Started};
        let table = [
            (None, [true, false, false, false]),
            (Some(Stage::Listening), [true, true, false, false]),
            (Some(Stage::Responding), [true, true, false, false]),
            (Some(Stage::Running), [true, false, true, false]),
            (Some(Stage::Ready), [true, true, true, false]),
        ];
        for (stage, expected) in table {
            let found = [Started, Listening, Ready, Completed]
                .map(|condition| standing(&at(stage), condition) == Standing::Met);
            assert_eq!(found, expected, "{stage:?}");
        }
        assert_eq!(standing(&ended(0), Completed), Standing::Met);
        assert_eq!(standing(&State::default(), Started), Standing::Waiting);
    }

    #[test]
    fn death_and_illness_end_a_wait() {
        let told = |state: &State, condition| match standing(state, condition) {
            Standing::Failed(why) => why,
            other @ (Standing::Met | Standing::Waiting) => panic!("{other:?}"),
        };
        assert_eq!(
            told(&ended(0), Condition::Ready),
            "ended before it was ready: exit code 0"
        );
        assert_eq!(
            told(&ended(3), Condition::Completed),
            "ended badly: exit code 3"
        );
        let mut ill = at(Some(Stage::Listening));
        (ill.healthy, ill.health) = (Some(false), Some("EADDRINUSE".to_owned()));
        assert_eq!(
            told(&ill, Condition::Ready),
            "lives but is not well: EADDRINUSE"
        );
        assert_eq!(standing(&ill, Condition::Started), Standing::Met);
    }
}
