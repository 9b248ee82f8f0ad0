use ostler_model::{ExecutionId, ServiceStage, Timestamp};
use proptest::prelude::*;

use super::*;

fn id(number: u8) -> ExecutionId {
    let mut bytes = [7; 16];
    bytes[15] = number;
    ExecutionId::from_bytes(bytes)
}

fn item(number: u8, what: NotificationKind, text: &str) -> AgentNotification {
    AgentNotification {
        at: Timestamp::UNIX_EPOCH,
        id: id(number),
        kind: what,
        failed: false,
        text: text.to_owned(),
        data: None,
    }
}

fn end(number: u8) -> AgentNotification {
    item(
        number,
        NotificationKind::Ended,
        &format!("p{number} exited 0"),
    )
}

#[test]
fn news_are_told_once_in_one_line() {
    let mut ears = NotificationQueue::default();
    assert_eq!(ears.take_line(), None);
    assert!(ears.push(end(1)));
    assert!(ears.push(item(2, NotificationKind::Watched, "p2 printed \"ready\"")));
    let line = "[news: p1 exited 0; p2 printed \"ready\"]";
    assert_eq!(ears.take_line().as_deref(), Some(line));
    assert_eq!(ears.take_line(), None);
    assert_eq!(ears.read_all().len(), 2);
}

#[test]
fn an_end_that_an_answer_told_is_no_news_before_or_after() {
    let mut ears = NotificationQueue::default();
    ears.mark_end_notified(id(1));
    assert!(!ears.push(end(1)));
    assert!(ears.push(end(2)));
    ears.mark_end_notified(id(2));
    assert_eq!(ears.take_line(), None);
    assert!(!ears.push(end(2)));
    assert!(ears.pending_pushes(0).is_empty());
}

#[test]
fn a_match_stays_news_when_the_end_was_told() {
    let mut ears = NotificationQueue::default();
    ears.push(item(1, NotificationKind::Watched, "printed"));
    ears.push(item(1, NotificationKind::Crashed, "crashed"));
    ears.mark_end_notified(id(1));
    assert_eq!(ears.take_line().as_deref(), Some("[news: printed]"));
}

#[test]
fn what_a_call_will_tell_waits_for_its_answer() {
    let mut ears = NotificationQueue::default();
    let bits = [id(1).short_bits(), id(2).short_bits()];
    ears.suppress(&bits);
    assert!(!ears.push(end(1)));
    assert!(!ears.push(end(2)));
    assert!(ears.push(end(3)));
    assert_eq!(ears.take_line().as_deref(), Some("[news: p3 exited 0]"));
    ears.mark_end_notified(id(1));
    assert!(ears.unsuppress(&bits));
    assert!(!ears.unsuppress(&bits));
    assert_eq!(ears.take_line().as_deref(), Some("[news: p2 exited 0]"));
}

fn stands(number: u8, attempt: u32, stage: Option<ServiceStage>, ill: bool) -> AgentNotification {
    let standing = ServiceHealth {
        attempt,
        stage,
        unhealthy: ill,
    };
    item(
        number,
        NotificationKind::Service(standing),
        &format!("p{number} {stage:?} {ill}"),
    )
}

#[test]
fn a_service_is_news_when_it_changes() {
    let (ready, running) = (Some(ServiceStage::Ready), Some(ServiceStage::Running));
    let mut ears = NotificationQueue::default();
    assert!(ears.push(stands(1, 1, ready, false)));
    assert!(!ears.push(stands(1, 1, ready, false)), "told once");
    assert!(ears.push(stands(1, 1, ready, true)), "ill");
    assert!(!ears.push(stands(1, 1, ready, true)), "still ill");
    assert!(ears.push(stands(1, 1, ready, false)), "well again");
    assert!(ears.push(stands(1, 2, ready, false)), "the next attempt");
    assert!(ears.push(stands(2, 1, running, false)), "another one");
    assert!(ears.push(stands(2, 1, ready, false)), "a port opened later");
    assert!(!ears.push(stands(3, 1, None, false)), "on its way");
}

#[test]
fn how_a_service_stands_is_no_news_once_an_answer_showed_it() {
    let ready = Some(ServiceStage::Ready);
    let standing = |stage, ill| ServiceHealth {
        attempt: 1,
        stage,
        unhealthy: ill,
    };
    let mut ears = NotificationQueue::default();
    ears.mark_health_notified(id(1), standing(None, false));
    assert!(ears.push(stands(1, 1, ready, false)), "ready later");
    ears.mark_health_notified(id(1), standing(ready, false));
    assert_eq!(ears.take_line(), None);
    assert!(!ears.push(stands(1, 1, ready, false)));
    ears.suppress(&[id(1).short_bits()]);
    assert!(!ears.push(stands(1, 1, ready, true)), "a call will tell");
    ears.mark_health_notified(id(1), standing(ready, true));
    assert!(!ears.unsuppress(&[id(1).short_bits()]));
    assert_eq!(ears.take_line(), None);
}

#[test]
fn two_calls_about_the_same_both_have_to_be_answered() {
    let mut ears = NotificationQueue::default();
    let bits = [id(1).short_bits()];
    ears.suppress(&bits);
    ears.suppress(&bits);
    ears.push(end(1));
    assert!(!ears.unsuppress(&bits));
    assert!(ears.unsuppress(&bits));
}

#[test]
fn pushes_go_on_where_they_stopped() {
    let mut ears = NotificationQueue::default();
    let bits = [id(1).short_bits()];
    ears.suppress(&bits);
    ears.push(end(1));
    ears.push(end(2));
    let first = ears.pending_pushes(0);
    assert_eq!(first.len(), 1);
    let after = first[0].0;
    assert!(ears.pending_pushes(after).is_empty());
    ears.unsuppress(&bits);
    let then = ears.pending_pushes(after);
    assert_eq!(then.len(), 1);
    assert_eq!(then[0].1.id, id(1));
}

#[test]
fn the_queue_is_bounded_and_says_what_it_lost() {
    for (count, told) in [
        (QUEUE_CAPACITY, 0),
        (QUEUE_CAPACITY + 1, 1),
        (QUEUE_CAPACITY + 40, 40),
    ] {
        let mut ears = NotificationQueue::default();
        for number in 0..count {
            let number = u8::try_from(number).unwrap();
            ears.push(item(number, NotificationKind::Ended, "x"));
        }
        let line = ears.take_line().unwrap();
        let more = format!("; and {told} more]");
        assert_eq!(line.ends_with(&more), told > 0, "{line}");
        assert_eq!(ears.read_all().len(), QUEUE_CAPACITY);
        assert_eq!(ears.take_line(), None);
    }
}

#[test]
fn a_long_line_counts_the_rest() {
    let mut ears = NotificationQueue::default();
    for number in 0..5 {
        ears.push(item(
            number,
            NotificationKind::Ended,
            &"x".repeat(LINE_CHARS / 2 - 2),
        ));
    }
    let line = ears.take_line().unwrap();
    assert!(line.ends_with("; and 3 more]"), "{line}");
    assert!(line.chars().count() <= LINE_CHARS + 32);
    assert_eq!(ears.take_line(), None);
}

#[test]
fn what_was_told_before_is_remembered_so_long() {
    let mut ears = NotificationQueue::default();
    ears.mark_end_notified(id(1));
    for _ in 0..3 {
        ears.mark_end_notified(id(2));
    }
    for number in 0..NOTIFIED_CAPACITY - 2 {
        let mut bytes = [9; 16];
        bytes[..8].copy_from_slice(&(number as u64).to_be_bytes());
        ears.mark_end_notified(ExecutionId::from_bytes(bytes));
    }
    assert!(!ears.is_end_unknown(id(1)));
    ears.mark_end_notified(id(3));
    assert!(ears.is_end_unknown(id(1)));
    assert!(!ears.is_end_unknown(id(2)));
}

#[derive(Debug, Clone)]
enum Step {
    End(u8),
    Told(u8),
    Attend(u8),
    Release(u8),
    Line,
    Push,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..6u8).prop_map(Step::End),
        (0..6u8).prop_map(Step::Told),
        (0..6u8).prop_map(Step::Attend),
        (0..6u8).prop_map(Step::Release),
        Just(Step::Line),
        Just(Step::Push),
    ]
}

proptest! {
    /// Every end is reported exactly once: by an answer or by the line, and never pushed after.
    #[test]
    fn every_end_is_told_once(steps in proptest::collection::vec(step(), 0..60)) {
        let mut ears = NotificationQueue::default();
        let (mut ended, mut told) = ([false; 6], [0; 6]);
        let mut pushed = 0;
        for step in steps {
            match step {
                Step::End(n) => {
                    ears.push(end(n));
                    ended[usize::from(n)] = true;
                }
                Step::Told(n) => {
                    ears.mark_end_notified(id(n));
                    told[usize::from(n)] = told[usize::from(n)].max(1);
                }
                Step::Attend(n) => ears.suppress(&[id(n).short_bits()]),
                Step::Release(n) => { ears.unsuppress(&[id(n).short_bits()]); }
                Step::Line => {
                    let line = ears.take_line().unwrap_or_default();
                    for (n, told) in told.iter_mut().enumerate() {
                        if line.contains(&format!("p{n} ")) {
                            prop_assert_eq!(*told, 0);
                            *told += 1;
                        }
                    }
                }
                Step::Push => for (number, item) in ears.pending_pushes(pushed) {
                    prop_assert!(number > pushed);
                    pushed = number;
                    let n = usize::from(item.id.to_bytes()[15]);
                    prop_assert_eq!(told[n], 0);
                },
            }
        }
        for n in 0..6u8 {
            for _ in 0..60 {
                ears.unsuppress(&[id(n).short_bits()]);
            }
        }
        let line = ears.take_line().unwrap_or_default();
        for n in 0..6 {
            let missing = ended[n] && told[n] == 0;
            prop_assert_eq!(line.contains(&format!("p{n} ")), missing);
        }
    }
}
