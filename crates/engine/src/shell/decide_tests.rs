//! Tables of what happens in shells, and random walks over everything that could.

use super::decide::Fact::{self, Asked, Ended, Over, Printed, Seen, Started, TimeUp, Told};
use super::decide::Seen::{AtPrompt, Nobody, Question, Replaced};
use super::decide::{Progress, Verdict};

const fn ended(from: u64, status: i32) -> Fact {
    Ended {
        from,
        status: Some(status),
    }
}

const C: Fact = Started { to: 10 };
const MORE: Fact = Fact::WantsMore;

/// The verdict, and how many facts it took.
fn fold(mut progress: Progress, facts: &[Fact]) -> (Option<Verdict>, usize, Progress) {
    for (at, fact) in facts.iter().enumerate() {
        if let Some(verdict) = progress.take(*fact) {
            return (Some(verdict), at + 1, progress);
        }
    }
    (None, facts.len(), progress)
}

/// The verdict that comes with the last fact, and not before.
fn verdict(whole: bool, facts: &[Fact]) -> Verdict {
    let (found, at, _) = fold(Progress::typed(whole), facts);
    let found = found.unwrap_or_else(|| panic!("nothing known after {facts:?}"));
    assert_eq!(at, facts.len(), "{found:?} too early in {facts:?}");
    found
}

fn nothing(whole: bool, facts: &[Fact]) {
    assert_eq!(fold(Progress::typed(whole), facts).0, None, "{facts:?}");
}

const fn finished(status: i32) -> Verdict {
    Verdict::Finished { status }
}

#[test]
fn a_command_that_ends() {
    let all = [Printed, C, Printed, ended(20, 3), Told, ended(30, 3), Asked];
    assert_eq!(verdict(true, &all), finished(3));
    let (_, _, progress) = fold(Progress::typed(true), &all);
    assert_eq!((progress.started(), progress.ended()), (Some(10), Some(20)));
    assert!(progress.told() && progress.is_back() && !progress.is_refused());
}

#[test]
fn a_prompt_that_is_painted_again_ends_nothing() {
    nothing(true, &[Printed, ended(1, 0), Asked, Seen(Nobody)]);
    let runs = [
        Printed,
        ended(1, 0),
        Asked,
        C,
        Printed,
        ended(20, 4),
        Told,
        Asked,
    ];
    assert_eq!(verdict(true, &runs), finished(4));
    let refused = [
        Printed,
        ended(1, 0),
        Asked,
        ended(7, 2),
        Told,
        ended(8, 2),
        Asked,
    ];
    assert_eq!(verdict(true, &refused), finished(2));
    // A directory that a program prints tells nothing.
    nothing(true, &[C, Told, Seen(Nobody), Told, Asked]);
}

#[test]
fn lines_that_are_typed_one_by_one() {
    let first = [C, ended(20, 0), Told, Asked];
    nothing(false, &first);
    assert_eq!(verdict(true, &first), finished(0));
    let both = [
        C,
        ended(20, 0),
        Told,
        Asked,
        Started { to: 40 },
        ended(50, 1),
        Told,
        Asked,
    ];
    nothing(false, &both);
    let all = [&both[..], &[Printed, Seen(AtPrompt)]].concat();
    assert_eq!(verdict(false, &all), finished(1));
    let (_, _, progress) = fold(Progress::typed(false), &all);
    assert_eq!((progress.started(), progress.ended()), (Some(10), Some(50)));
    nothing(false, &[C, MORE, Seen(Nobody)]);
    let open = [C, ended(20, 0), Told, Asked, MORE, Seen(AtPrompt)];
    assert_eq!(verdict(false, &open), Verdict::Incomplete);
    assert_eq!(verdict(false, &[MORE, Seen(AtPrompt)]), Verdict::Incomplete);
    assert_eq!(verdict(true, &[MORE]), Verdict::Incomplete);
}

#[test]
fn want_of_marks_means_something_after_two_looks() {
    let look = Seen(AtPrompt);
    assert_eq!(
        verdict(true, &[Printed, C, Printed, look, look]),
        Verdict::Silent
    );
    nothing(true, &[Printed, C, look, Printed, look, Seen(Nobody), look]);
    // The prompt is back and nothing began.
    assert_eq!(
        verdict(true, &[Printed, ended(1, 0), Asked, look, look]),
        Verdict::Silent
    );
    // It took the text and stays with it.
    assert_eq!(verdict(true, &[Printed, look, look]), Verdict::Incomplete);
    // It did not even take it.
    nothing(true, &[look, look, look]);
    // An end whose prompt does not come.
    assert_eq!(verdict(true, &[C, ended(20, 5), Told, look]), finished(5));
    // An end without a status.
    let end = Ended {
        from: 20,
        status: None,
    };
    assert_eq!(verdict(true, &[C, end, Asked]), Verdict::Silent);
}

#[test]
fn what_else_ends_a_wait() {
    assert_eq!(
        verdict(true, &[C, Seen(Nobody), Seen(Question)]),
        Verdict::Question
    );
    assert_eq!(verdict(true, &[Seen(Question)]), Verdict::Question);
    assert_eq!(
        verdict(true, &[C, ended(20, 0), Seen(Question)]),
        finished(0)
    );
    assert_eq!(verdict(true, &[C, Seen(Replaced)]), Verdict::ShellEnded);
    assert_eq!(verdict(true, &[C, ended(20, 0), Over]), Verdict::ShellEnded);
    assert_eq!(verdict(true, &[C, TimeUp]), Verdict::AtMost);
    assert_eq!(verdict(true, &[C, ended(20, 6), TimeUp]), finished(6));
}

#[test]
fn what_fish_refuses_stays_at_its_prompt() {
    let facts = [Printed, ended(9, 127), Told, Printed, Seen(AtPrompt)];
    let (found, _, progress) = fold(Progress::typed(true), &facts);
    assert_eq!(found, Some(finished(127)));
    assert!(progress.is_refused() && !progress.is_back());
}

#[test]
fn what_goes_on_is_waited_for_again() {
    let (found, _, progress) = fold(Progress::resumed(10), &[Printed, ended(20, 1), Told, Asked]);
    assert_eq!(found, Some(finished(1)));
    assert_eq!(progress.started(), Some(10));
    // It had not begun when the time was up.
    let facts = [Started { to: 15 }, ended(20, 1), Told, Asked];
    let (_, _, progress) = fold(Progress::resumed(10), &facts);
    assert_eq!((progress.started(), progress.ended()), (Some(15), Some(20)));
}

/// A linear congruential generator: walks that can be walked again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn any(dice: &mut Dice, at: u64) -> Fact {
    let status = i32::try_from(dice.roll(256)).ok().filter(|it| *it < 250);
    match dice.roll(12) {
        0 | 1 => Printed,
        2 => Started { to: at + 1 },
        3 | 4 => Ended { from: at, status },
        5 => Told,
        6 => Asked,
        7 => MORE,
        8 => Seen(AtPrompt),
        9 => Seen(Nobody),
        10 => Seen(if dice.roll(4) == 0 {
            Replaced
        } else {
            Question
        }),
        _ => Seen(Nobody),
    }
}

#[test]
fn walks_keep_the_rules() {
    for seed in 0..20_000 {
        let mut dice = Dice(seed);
        let whole = dice.roll(2) == 0;
        let mut progress = Progress::typed(whole);
        let (mut ends, mut began) = (Vec::new(), false);
        for at in (0..400).step_by(10) {
            let fact = any(&mut dice, at);
            if let Ended {
                status: Some(status),
                ..
            } = fact
            {
                ends.push(status);
            }
            began |= matches!(fact, Started { .. });
            let found = progress.take(fact);
            if let (Some(from), Some(to)) = (progress.started(), progress.ended()) {
                assert!(from <= to, "{seed}: {from} {to}");
            }
            match found {
                // No status is made up.
                Some(Verdict::Finished { status }) => assert!(ends.contains(&status), "{seed}"),
                Some(Verdict::Question) => assert_eq!(fact, Seen(Question), "{seed}"),
                Some(Verdict::ShellEnded) => assert_eq!(fact, Seen(Replaced), "{seed}"),
                Some(Verdict::AtMost) => panic!("{seed}: the time was not up"),
                Some(Verdict::Incomplete | Verdict::Silent) | None => {}
            }
            assert_eq!(progress.started().is_some(), began, "{seed}");
            if found.is_some() {
                break;
            }
        }
        // Whatever was seen: time and the shell's end end every wait, and so does a shell that
        // sits at its prompt with something printed.
        assert!(progress.clone().take(TimeUp).is_some());
        assert!(progress.clone().take(Over).is_some());
        let sits = [Printed, Seen(AtPrompt), Seen(AtPrompt)];
        assert!(fold(progress, &sits).0.is_some(), "{seed}");
    }
}
