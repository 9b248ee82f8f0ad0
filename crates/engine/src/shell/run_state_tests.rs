//! Tables of shell transcripts, and random walks over all inputs.

use fastrand::Rng;

use super::run_state::RunInput::{
    self, CommandEnded, CommandStarted, DirectoryReported, Inspected, Output, PromptShown,
    SessionOver, TimedOut,
};
use super::run_state::ShellInspection::{AtPrompt, NotWaiting, Question, Replaced};
use super::run_state::{RunOutcome, RunProgress};

const fn ended(from: u64, status: i32) -> RunInput {
    CommandEnded {
        from,
        status: Some(status),
    }
}

const C: RunInput = CommandStarted { to: 10 };
const MORE: RunInput = RunInput::ContinuationPrompt;

/// The outcome, and the number of observations that it took.
fn fold(mut progress: RunProgress, facts: &[RunInput]) -> (Option<RunOutcome>, usize, RunProgress) {
    for (at, fact) in facts.iter().enumerate() {
        if let Some(verdict) = progress.handle(*fact) {
            return (Some(verdict), at + 1, progress);
        }
    }
    (None, facts.len(), progress)
}

/// The outcome, which must come with the last observation and not before.
fn verdict(whole: bool, facts: &[RunInput]) -> RunOutcome {
    let (found, at, _) = fold(RunProgress::after_typing(whole), facts);
    let found = found.unwrap_or_else(|| panic!("nothing known after {facts:?}"));
    assert_eq!(at, facts.len(), "{found:?} too early in {facts:?}");
    found
}

fn nothing(whole: bool, facts: &[RunInput]) {
    assert_eq!(
        fold(RunProgress::after_typing(whole), facts).0,
        None,
        "{facts:?}"
    );
}

const fn finished(status: i32) -> RunOutcome {
    RunOutcome::Finished { status }
}

#[test]
fn a_command_that_ends() {
    let all = [
        Output,
        C,
        Output,
        ended(20, 3),
        DirectoryReported,
        ended(30, 3),
        PromptShown,
    ];
    assert_eq!(verdict(true, &all), finished(3));
    let (_, _, progress) = fold(RunProgress::after_typing(true), &all);
    assert_eq!(
        (progress.output_start(), progress.output_end()),
        (Some(10), Some(20))
    );
    assert!(progress.has_directory() && progress.is_prompt_back() && !progress.is_refused());
}

#[test]
fn a_prompt_that_is_painted_again_ends_nothing() {
    nothing(
        true,
        &[Output, ended(1, 0), PromptShown, Inspected(NotWaiting)],
    );
    let runs = [
        Output,
        ended(1, 0),
        PromptShown,
        C,
        Output,
        ended(20, 4),
        DirectoryReported,
        PromptShown,
    ];
    assert_eq!(verdict(true, &runs), finished(4));
    let refused = [
        Output,
        ended(1, 0),
        PromptShown,
        ended(7, 2),
        DirectoryReported,
        ended(8, 2),
        PromptShown,
    ];
    assert_eq!(verdict(true, &refused), finished(2));
    // A directory printed by a program is ignored.
    nothing(
        true,
        &[
            C,
            DirectoryReported,
            Inspected(NotWaiting),
            DirectoryReported,
            PromptShown,
        ],
    );
}

#[test]
fn lines_that_are_typed_one_by_one() {
    let first = [C, ended(20, 0), DirectoryReported, PromptShown];
    nothing(false, &first);
    assert_eq!(verdict(true, &first), finished(0));
    let both = [
        C,
        ended(20, 0),
        DirectoryReported,
        PromptShown,
        CommandStarted { to: 40 },
        ended(50, 1),
        DirectoryReported,
        PromptShown,
    ];
    nothing(false, &both);
    let all = [&both[..], &[Output, Inspected(AtPrompt)]].concat();
    assert_eq!(verdict(false, &all), finished(1));
    let (_, _, progress) = fold(RunProgress::after_typing(false), &all);
    assert_eq!(
        (progress.output_start(), progress.output_end()),
        (Some(10), Some(50))
    );
    nothing(false, &[C, MORE, Inspected(NotWaiting)]);
    let open = [
        C,
        ended(20, 0),
        DirectoryReported,
        PromptShown,
        MORE,
        Inspected(AtPrompt),
    ];
    assert_eq!(verdict(false, &open), RunOutcome::Incomplete);
    assert_eq!(
        verdict(false, &[MORE, Inspected(AtPrompt)]),
        RunOutcome::Incomplete
    );
    assert_eq!(verdict(true, &[MORE]), RunOutcome::Incomplete);
}

#[test]
fn want_of_marks_means_something_after_two_looks() {
    let look = Inspected(AtPrompt);
    assert_eq!(
        verdict(true, &[Output, C, Output, look, look]),
        RunOutcome::NoMarker
    );
    nothing(
        true,
        &[Output, C, look, Output, look, Inspected(NotWaiting), look],
    );
    // The prompt is back and no command began.
    assert_eq!(
        verdict(true, &[Output, ended(1, 0), PromptShown, look, look]),
        RunOutcome::NoMarker
    );
    // The shell accepted the text and waits for more.
    assert_eq!(verdict(true, &[Output, look, look]), RunOutcome::Incomplete);
    // The shell did not accept the text.
    nothing(true, &[look, look, look]);
    // An end without a prompt after it.
    assert_eq!(
        verdict(true, &[C, ended(20, 5), DirectoryReported, look]),
        finished(5)
    );
    // An end without a status.
    let end = CommandEnded {
        from: 20,
        status: None,
    };
    assert_eq!(verdict(true, &[C, end, PromptShown]), RunOutcome::NoMarker);
}

#[test]
fn what_else_ends_a_wait() {
    assert_eq!(
        verdict(true, &[C, Inspected(NotWaiting), Inspected(Question)]),
        RunOutcome::Question
    );
    assert_eq!(verdict(true, &[Inspected(Question)]), RunOutcome::Question);
    assert_eq!(
        verdict(true, &[C, ended(20, 0), Inspected(Question)]),
        finished(0)
    );
    assert_eq!(
        verdict(true, &[C, Inspected(Replaced)]),
        RunOutcome::ShellEnded
    );
    assert_eq!(
        verdict(true, &[C, ended(20, 0), SessionOver]),
        RunOutcome::ShellEnded
    );
    assert_eq!(verdict(true, &[C, TimedOut]), RunOutcome::TimedOut);
    assert_eq!(verdict(true, &[C, ended(20, 6), TimedOut]), finished(6));
}

#[test]
fn what_fish_refuses_stays_at_its_prompt() {
    let facts = [
        Output,
        ended(9, 127),
        DirectoryReported,
        Output,
        Inspected(AtPrompt),
    ];
    let (found, _, progress) = fold(RunProgress::after_typing(true), &facts);
    assert_eq!(found, Some(finished(127)));
    assert!(progress.is_refused() && !progress.is_prompt_back());
}

#[test]
fn what_goes_on_is_waited_for_again() {
    let (found, _, progress) = fold(
        RunProgress::resume(10),
        &[Output, ended(20, 1), DirectoryReported, PromptShown],
    );
    assert_eq!(found, Some(finished(1)));
    assert_eq!(progress.output_start(), Some(10));
    // The command had not begun at the timeout.
    let facts = [
        CommandStarted { to: 15 },
        ended(20, 1),
        DirectoryReported,
        PromptShown,
    ];
    let (_, _, progress) = fold(RunProgress::resume(10), &facts);
    assert_eq!(
        (progress.output_start(), progress.output_end()),
        (Some(15), Some(20))
    );
}

#[test]
fn the_first_prompt_ends_no_command_that_is_waited_for() {
    let first_prompt = [
        CommandEnded {
            from: 5,
            status: None,
        },
        DirectoryReported,
        ended(6, 0),
        PromptShown,
    ];
    let command = [
        CommandStarted { to: 15 },
        ended(20, 1),
        DirectoryReported,
        PromptShown,
    ];
    let facts = [&first_prompt[..], &command].concat();
    let (found, _, progress) = fold(RunProgress::resume(0), &facts);
    assert_eq!(found, Some(finished(1)));
    assert_eq!(progress.output_start(), Some(15));
}

fn any(rng: &mut Rng, at: u64) -> RunInput {
    let status = i32::try_from(rng.u64(..256)).ok().filter(|it| *it < 250);
    match rng.u64(..12) {
        0 | 1 => Output,
        2 => CommandStarted { to: at + 1 },
        3 | 4 => CommandEnded { from: at, status },
        5 => DirectoryReported,
        6 => PromptShown,
        7 => MORE,
        8 => Inspected(AtPrompt),
        9 => Inspected(NotWaiting),
        10 => Inspected(if rng.u64(..4) == 0 {
            Replaced
        } else {
            Question
        }),
        _ => Inspected(NotWaiting),
    }
}

#[test]
fn walks_keep_the_rules() {
    for seed in 0..20_000 {
        let mut rng = Rng::with_seed(seed);
        let whole = rng.bool();
        let mut progress = RunProgress::after_typing(whole);
        let (mut ends, mut began) = (Vec::new(), false);
        for at in (0..400).step_by(10) {
            let fact = any(&mut rng, at);
            if let CommandEnded {
                status: Some(status),
                ..
            } = fact
            {
                ends.push(status);
            }
            began |= matches!(fact, CommandStarted { .. });
            let found = progress.handle(fact);
            if let (Some(from), Some(to)) = (progress.output_start(), progress.output_end()) {
                assert!(from <= to, "{seed}: {from} {to}");
            }
            match found {
                // The status is one that was reported.
                Some(RunOutcome::Finished { status }) => assert!(ends.contains(&status), "{seed}"),
                Some(RunOutcome::Question) => assert_eq!(fact, Inspected(Question), "{seed}"),
                Some(RunOutcome::ShellEnded) => assert_eq!(fact, Inspected(Replaced), "{seed}"),
                Some(RunOutcome::TimedOut) => panic!("{seed}: the time was not up"),
                Some(RunOutcome::Incomplete | RunOutcome::NoMarker) | None => {}
            }
            assert_eq!(progress.output_start().is_some(), began, "{seed}");
            if found.is_some() {
                break;
            }
        }
        // In every state a timeout and the shell's end finish the wait, and so does a shell that
        // stays at its prompt after output.
        assert!(progress.clone().handle(TimedOut).is_some());
        assert!(progress.clone().handle(SessionOver).is_some());
        let sits = [Output, Inspected(AtPrompt), Inspected(AtPrompt)];
        assert!(fold(progress, &sits).0.is_some(), "{seed}");
    }
}
