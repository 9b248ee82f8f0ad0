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
fn notifications_are_delivered_once_in_one_line() {
    let mut queue = NotificationQueue::default();
    assert_eq!(queue.take_line(), None);
    assert!(queue.push(end(1)));
    assert!(queue.push(item(2, NotificationKind::Watched, "p2 printed \"ready\"")));
    let line = "[news: p1 exited 0; p2 printed \"ready\"]";
    assert_eq!(queue.take_line().as_deref(), Some(line));
    assert_eq!(queue.take_line(), None);
    assert_eq!(queue.read_all().len(), 2);
}

#[test]
fn an_end_reported_by_a_response_is_no_notification_before_or_after() {
    let mut queue = NotificationQueue::default();
    queue.mark_end_notified(id(1));
    assert!(!queue.push(end(1)));
    assert!(queue.push(end(2)));
    queue.mark_end_notified(id(2));
    assert_eq!(queue.take_line(), None);
    assert!(!queue.push(end(2)));
    assert!(queue.pending_pushes(0).is_empty());
}

#[test]
fn a_match_stays_pending_after_the_end_was_reported() {
    let mut queue = NotificationQueue::default();
    queue.push(item(1, NotificationKind::Watched, "printed"));
    queue.push(item(1, NotificationKind::Crashed, "crashed"));
    queue.mark_end_notified(id(1));
    assert_eq!(queue.take_line().as_deref(), Some("[news: printed]"));
}

#[test]
fn what_a_call_will_tell_waits_for_its_answer() {
    let mut queue = NotificationQueue::default();
    let bits = [id(1).short_bits(), id(2).short_bits()];
    queue.suppress(&bits);
    assert!(!queue.push(end(1)));
    assert!(!queue.push(end(2)));
    assert!(queue.push(end(3)));
    assert_eq!(queue.take_line().as_deref(), Some("[news: p3 exited 0]"));
    queue.mark_end_notified(id(1));
    assert!(queue.unsuppress(&bits));
    assert!(!queue.unsuppress(&bits));
    assert_eq!(queue.take_line().as_deref(), Some("[news: p2 exited 0]"));
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
fn a_change_of_a_service_is_a_notification() {
    let (ready, running) = (Some(ServiceStage::Ready), Some(ServiceStage::Running));
    let mut queue = NotificationQueue::default();
    assert!(queue.push(stands(1, 1, ready, false)));
    assert!(!queue.push(stands(1, 1, ready, false)), "notified once");
    assert!(queue.push(stands(1, 1, ready, true)), "ill");
    assert!(!queue.push(stands(1, 1, ready, true)), "still ill");
    assert!(queue.push(stands(1, 1, ready, false)), "well again");
    assert!(queue.push(stands(1, 2, ready, false)), "the next attempt");
    assert!(queue.push(stands(2, 1, running, false)), "another one");
    assert!(
        queue.push(stands(2, 1, ready, false)),
        "a port opened later"
    );
    assert!(!queue.push(stands(3, 1, None, false)), "on its way");
}

#[test]
fn a_service_state_is_no_notification_once_a_response_showed_it() {
    let ready = Some(ServiceStage::Ready);
    let standing = |stage, ill| ServiceHealth {
        attempt: 1,
        stage,
        unhealthy: ill,
    };
    let mut queue = NotificationQueue::default();
    queue.mark_health_notified(id(1), standing(None, false));
    assert!(queue.push(stands(1, 1, ready, false)), "ready later");
    queue.mark_health_notified(id(1), standing(ready, false));
    assert_eq!(queue.take_line(), None);
    assert!(!queue.push(stands(1, 1, ready, false)));
    queue.suppress(&[id(1).short_bits()]);
    assert!(
        !queue.push(stands(1, 1, ready, true)),
        "a call will report it"
    );
    queue.mark_health_notified(id(1), standing(ready, true));
    assert!(!queue.unsuppress(&[id(1).short_bits()]));
    assert_eq!(queue.take_line(), None);
}

#[test]
fn two_calls_about_the_same_both_have_to_be_answered() {
    let mut queue = NotificationQueue::default();
    let bits = [id(1).short_bits()];
    queue.suppress(&bits);
    queue.suppress(&bits);
    queue.push(end(1));
    assert!(!queue.unsuppress(&bits));
    assert!(queue.unsuppress(&bits));
}

#[test]
fn pushes_go_on_where_they_stopped() {
    let mut queue = NotificationQueue::default();
    let bits = [id(1).short_bits()];
    queue.suppress(&bits);
    queue.push(end(1));
    queue.push(end(2));
    let first = queue.pending_pushes(0);
    assert_eq!(first.len(), 1);
    let after = first[0].0;
    assert!(queue.pending_pushes(after).is_empty());
    queue.unsuppress(&bits);
    let then = queue.pending_pushes(after);
    assert_eq!(then.len(), 1);
    assert_eq!(then[0].1.id, id(1));
}

#[test]
fn the_queue_is_bounded_and_says_what_it_lost() {
    for (count, dropped) in [
        (QUEUE_CAPACITY, 0),
        (QUEUE_CAPACITY + 1, 1),
        (QUEUE_CAPACITY + 40, 40),
    ] {
        let mut queue = NotificationQueue::default();
        for number in 0..count {
            let number = u8::try_from(number).unwrap();
            queue.push(item(number, NotificationKind::Ended, "x"));
        }
        let line = queue.take_line().unwrap();
        let more = format!("; and {dropped} more]");
        assert_eq!(line.ends_with(&more), dropped > 0, "{line}");
        assert_eq!(queue.read_all().len(), QUEUE_CAPACITY);
        assert_eq!(queue.take_line(), None);
    }
}

#[test]
fn a_long_line_counts_the_rest() {
    let mut queue = NotificationQueue::default();
    for number in 0..5 {
        queue.push(item(
            number,
            NotificationKind::Ended,
            &"x".repeat(LINE_CHARS / 2 - 2),
        ));
    }
    let line = queue.take_line().unwrap();
    assert!(line.ends_with("; and 3 more]"), "{line}");
    assert!(line.chars().count() <= LINE_CHARS + 32);
    assert_eq!(queue.take_line(), None);
}

#[test]
fn notified_ends_are_remembered_up_to_a_capacity() {
    let mut queue = NotificationQueue::default();
    queue.mark_end_notified(id(1));
    for _ in 0..3 {
        queue.mark_end_notified(id(2));
    }
    for number in 0..NOTIFIED_CAPACITY - 2 {
        let mut bytes = [9; 16];
        bytes[..8].copy_from_slice(&(number as u64).to_be_bytes());
        queue.mark_end_notified(ExecutionId::from_bytes(bytes));
    }
    assert!(!queue.is_end_unknown(id(1)));
    queue.mark_end_notified(id(3));
    assert!(queue.is_end_unknown(id(1)));
    assert!(!queue.is_end_unknown(id(2)));
}

#[derive(Debug, Clone)]
enum Step {
    End(u8),
    MarkNotified(u8),
    Suppress(u8),
    Unsuppress(u8),
    Line,
    Push,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..6u8).prop_map(Step::End),
        (0..6u8).prop_map(Step::MarkNotified),
        (0..6u8).prop_map(Step::Suppress),
        (0..6u8).prop_map(Step::Unsuppress),
        Just(Step::Line),
        Just(Step::Push),
    ]
}

proptest! {
    /// Every end is reported exactly once: by an answer or by the line, and never pushed after.
    #[test]
    fn every_end_is_reported_once(steps in proptest::collection::vec(step(), 0..60)) {
        let mut queue = NotificationQueue::default();
        let (mut ended, mut reports) = ([false; 6], [0; 6]);
        let mut pushed = 0;
        for step in steps {
            match step {
                Step::End(n) => {
                    queue.push(end(n));
                    ended[usize::from(n)] = true;
                }
                Step::MarkNotified(n) => {
                    queue.mark_end_notified(id(n));
                    reports[usize::from(n)] = reports[usize::from(n)].max(1);
                }
                Step::Suppress(n) => queue.suppress(&[id(n).short_bits()]),
                Step::Unsuppress(n) => { queue.unsuppress(&[id(n).short_bits()]); }
                Step::Line => {
                    let line = queue.take_line().unwrap_or_default();
                    for (n, reports) in reports.iter_mut().enumerate() {
                        if line.contains(&format!("p{n} ")) {
                            prop_assert_eq!(*reports, 0);
                            *reports += 1;
                        }
                    }
                }
                Step::Push => for (number, item) in queue.pending_pushes(pushed) {
                    prop_assert!(number > pushed);
                    pushed = number;
                    let n = usize::from(item.id.to_bytes()[15]);
                    prop_assert_eq!(reports[n], 0);
                },
            }
        }
        for n in 0..6u8 {
            for _ in 0..60 {
                queue.unsuppress(&[id(n).short_bits()]);
            }
        }
        let line = queue.take_line().unwrap_or_default();
        for n in 0..6 {
            let missing = ended[n] && reports[n] == 0;
            prop_assert_eq!(line.contains(&format!("p{n} ")), missing);
        }
    }
}
