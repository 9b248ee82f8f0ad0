//! State transitions by table, and random walks over marks.

use proptest::prelude::*;

use super::ShellState;
use crate::control_sequences::{ControlEvent, LocatedEvent};

const END: ControlEvent = ControlEvent::CommandEnd {
    is_trusted: true,
    status: Some(3),
};
const PROMPT: ControlEvent = ControlEvent::PromptStart {
    is_trusted: true,
    continuation: false,
};
const MORE: ControlEvent = ControlEvent::PromptStart {
    is_trusted: true,
    continuation: true,
};
const START: ControlEvent = ControlEvent::CommandStart { is_trusted: true };

fn at(from: u64, mark: ControlEvent) -> LocatedEvent {
    LocatedEvent {
        from,
        to: from + 5,
        event: mark,
    }
}

fn fold(marks: impl IntoIterator<Item = ControlEvent>) -> ShellState {
    let mut state = ShellState::default();
    for (place, mark) in (0_u64..).step_by(10).zip(marks) {
        state.apply(&at(place, mark));
    }
    state
}

fn directory(path: &str) -> ControlEvent {
    ControlEvent::Directory(path.as_bytes().to_vec())
}

#[test]
fn from_prompt_to_prompt() {
    let first = ControlEvent::CommandEnd {
        is_trusted: true,
        status: None,
    };
    let mut events = vec![first, directory("/a"), PROMPT];
    let prompt = ShellState::Prompt {
        since: 0,
        status: None,
        cwd: Some("/a".to_owned()),
    };
    assert_eq!(fold(events.clone()), prompt);
    events.push(START);
    let running = ShellState::Running {
        since: 35,
        cwd: Some("/a".to_owned()),
    };
    assert_eq!(fold(events.clone()), running);
    // What a program prints changes nothing.
    events.push(directory("/forged"));
    assert_eq!(fold(events.clone()), running);
    events.extend([END, directory("/b"), END, PROMPT]);
    let after = ShellState::Prompt {
        since: 50,
        status: Some(3),
        cwd: Some("/b".to_owned()),
    };
    assert_eq!(fold(events.clone()), after);
    // A prompt that is painted again does not end a command again.
    events.extend([END, PROMPT]);
    assert_eq!(fold(events.clone()), after);
    events.push(directory("/late"));
    assert_eq!(fold(events), after);
}

#[test]
fn an_open_command_and_a_lost_end() {
    let open = fold([END, directory("/a"), PROMPT, MORE]);
    let cwd = || Some("/a".to_owned());
    assert_eq!(open, ShellState::Incomplete { cwd: cwd() });
    let lost = fold([END, directory("/a"), PROMPT, START, PROMPT]);
    let expected = ShellState::Prompt {
        since: 40,
        status: None,
        cwd: cwd(),
    };
    assert_eq!(lost, expected);
}

#[test]
fn it_has_the_documented_json_form() {
    let json = serde_json::to_value(fold([START])).expect("serializable");
    assert_eq!(
        json,
        serde_json::json!({"state": "running", "since": 5, "cwd": null})
    );
    let unknown = serde_json::to_value(ShellState::Unknown).expect("serializable");
    assert_eq!(unknown, serde_json::json!({"state": "unknown"}));
}

fn any_mark() -> impl Strategy<Value = ControlEvent> {
    let status = || proptest::option::of(0..256_i32);
    prop_oneof![
        (any::<bool>(), any::<bool>()).prop_map(|(is_trusted, continuation)| {
            ControlEvent::PromptStart {
                is_trusted,
                continuation,
            }
        }),
        any::<bool>().prop_map(|is_trusted| ControlEvent::PromptEnd { is_trusted }),
        any::<bool>().prop_map(|is_trusted| ControlEvent::CommandStart { is_trusted }),
        (any::<bool>(), status())
            .prop_map(|(is_trusted, status)| ControlEvent::CommandEnd { is_trusted, status }),
        "/[a-c]".prop_map(|path| directory(&path)),
    ]
}

const fn is_trusted(mark: &ControlEvent) -> bool {
    match mark {
        ControlEvent::PromptStart {
            is_trusted: believed,
            ..
        }
        | ControlEvent::PromptEnd {
            is_trusted: believed,
        }
        | ControlEvent::CommandStart {
            is_trusted: believed,
        }
        | ControlEvent::CommandEnd {
            is_trusted: believed,
            ..
        } => *believed,
        ControlEvent::Directory(_) | ControlEvent::Title(_) | ControlEvent::Modes(_) => false,
    }
}

proptest! {
    /// No event without the nonce changes the state, except a directory between end and prompt.
    #[test]
    fn only_what_is_believed_counts(marks in proptest::collection::vec(any_mark(), 0..40)) {
        let mut state = ShellState::default();
        for (place, mark) in (0_u64..).step_by(10).zip(marks) {
            let before = state.clone();
            let marked = at(place, mark);
            state.apply(&marked);
            let between = matches!(before, ShellState::Ended { .. });
            let counts = matches!(marked.event, ControlEvent::Directory(_)) && between;
            if !counts && !is_trusted(&marked.event) {
                prop_assert_eq!(&state, &before);
            }
            if is_trusted(&marked.event) && !matches!(marked.event, ControlEvent::CommandEnd { .. }) {
                prop_assert_eq!(state.cwd(), before.cwd());
            }
        }
    }

    /// The state is written to disk with checkpoints and read back equal.
    #[test]
    fn it_survives_json(marks in proptest::collection::vec(any_mark(), 0..20)) {
        let state = fold(marks);
        let json = serde_json::to_string(&state).expect("serializable");
        prop_assert_eq!(serde_json::from_str::<ShellState>(&json).expect("readable"), state);
    }
}
