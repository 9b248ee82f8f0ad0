use std::time::Duration;

use ostler_model::Timestamp;

use super::{
    ContextDecision, ContextEnd, ContextInput, ContextLifecycle, ContextRefusal, ContextState,
};

const IDLE: Duration = Duration::from_secs(1_800);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).expect("a valid second")
}

fn idle() -> ContextLifecycle {
    ContextLifecycle::adopted(IDLE, 0, at(0))
}

fn failed_check() -> ContextInput {
    ContextInput::CheckFailed {
        problem: "it is a link".to_owned(),
    }
}

#[test]
fn it_is_used_again_until_it_was_idle_for_its_time() {
    let mut context = ContextLifecycle::new(IDLE);
    let refused = context.handle(at(0), ContextInput::Enter);
    assert_eq!(refused, ContextDecision::Refuse(ContextRefusal::Creating));
    assert_eq!(
        context.handle(at(0), ContextInput::Created),
        ContextDecision::Nothing
    );
    for start in [10, 1_000] {
        assert_eq!(
            context.handle(at(start), ContextInput::Enter),
            ContextDecision::Admit
        );
        assert_eq!(
            context.handle(at(100_000), ContextInput::Tick),
            ContextDecision::Nothing
        );
        assert_eq!(
            context.handle(at(start + 5), ContextInput::Leave),
            ContextDecision::Nothing
        );
    }
    assert_eq!(context.idle_deadline(), Some(at(1_005 + 1_800)));
    assert_eq!(
        context.handle(at(2_804), ContextInput::Tick),
        ContextDecision::Nothing
    );
    assert_eq!(
        context.handle(at(2_805), ContextInput::Tick),
        ContextDecision::RemoveFiles
    );
    // A start that comes while its files are removed.
    assert_eq!(
        context.handle(at(2_805), ContextInput::Enter),
        ContextDecision::Refuse(ContextRefusal::Ending)
    );
    assert_eq!(
        context.handle(at(2_806), ContextInput::Removed),
        ContextDecision::Forget
    );
}

#[test]
fn a_removal_needs_force_while_it_is_in_use() {
    let mut context = ContextLifecycle::adopted(IDLE, 2, at(0));
    assert_eq!(
        context.handle(at(1), ContextInput::Remove { force: false }),
        ContextDecision::Refuse(ContextRefusal::InUse)
    );
    assert_eq!(
        context.handle(at(1), ContextInput::Remove { force: true }),
        ContextDecision::StopUses
    );
    assert_eq!(
        context.handle(at(2), ContextInput::Leave),
        ContextDecision::Nothing
    );
    assert_eq!(
        context.handle(at(3), ContextInput::Leave),
        ContextDecision::RemoveFiles
    );
}

#[test]
fn one_that_fails_its_check_ends_after_its_last_use() {
    let mut context = idle();
    assert_eq!(
        context.handle(at(1), failed_check()),
        ContextDecision::RemoveFiles
    );
    let mut context = ContextLifecycle::adopted(IDLE, 1, at(0));
    assert_eq!(
        context.handle(at(1), failed_check()),
        ContextDecision::Nothing
    );
    assert_eq!(
        context.handle(at(1), ContextInput::Enter),
        ContextDecision::Refuse(ContextRefusal::Ending)
    );
    assert_eq!(
        context.handle(at(2), ContextInput::Leave),
        ContextDecision::RemoveFiles
    );
}

#[test]
fn files_that_could_not_be_removed_are_tried_again_on_request() {
    let mut context = idle();
    let remove = ContextInput::Remove { force: false };
    assert_eq!(
        context.handle(at(1), remove.clone()),
        ContextDecision::RemoveFiles
    );
    let problem = "a mount".to_owned();
    let failed = ContextInput::RemovalFailed { problem };
    assert_eq!(context.handle(at(2), failed), ContextDecision::Nothing);
    assert_eq!(
        context.handle(at(3), ContextInput::Enter),
        ContextDecision::Refuse(ContextRefusal::Failed)
    );
    assert_eq!(context.handle(at(4), remove), ContextDecision::RemoveFiles);
}

#[test]
fn what_an_earlier_engine_began_is_finished() {
    let (context, decision) = ContextLifecycle::resumed(IDLE, 0, ContextEnd::NotCreated);
    assert_eq!(decision, ContextDecision::RemoveFiles);
    assert!(!context.state().is_warm());
    let (mut context, decision) = ContextLifecycle::resumed(IDLE, 1, ContextEnd::Requested);
    assert_eq!(decision, ContextDecision::StopUses);
    assert_eq!(
        context.handle(at(1), ContextInput::Leave),
        ContextDecision::RemoveFiles
    );
}

#[test]
fn a_failed_creation_is_forgotten() {
    let mut context = ContextLifecycle::new(IDLE);
    assert_eq!(
        context.handle(at(0), ContextInput::CreationFailed),
        ContextDecision::Forget
    );
    let end = ContextEnd::NotCreated;
    assert_eq!(*context.state(), ContextState::Ended { end });
}
