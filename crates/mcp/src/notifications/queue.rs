//! The notifications of one session: a bounded queue, and the delivery state. Pure.

use std::collections::VecDeque;

use ostler_model::ExecutionId;

use super::notification::{AgentNotification, NotificationKind, ServiceHealth};

/// Notifications kept per session; those that fall out undelivered are counted.
pub(super) const QUEUE_CAPACITY: usize = 32;
/// The most ends remembered that an answer reported before their event arrived.
pub(super) const NOTIFIED_CAPACITY: usize = 256;
/// The most characters of the line appended to a tool answer.
pub(super) const LINE_CHARS: usize = 800;

/// The delivered and pending notifications of one session.
#[derive(Debug, Default)]
pub(super) struct NotificationQueue {
    /// The queue, oldest first.
    queue: VecDeque<QueuedNotification>,
    /// Undelivered notifications that fell out.
    dropped: u64,
    /// Ends that were reported before their event arrived.
    notified_ends: VecDeque<ExecutionId>,
    /// The states of running services when last reported or queued.
    service_health: VecDeque<(ExecutionId, ServiceHealth)>,
    /// Executions that calls under way are about, by short bits, once per call.
    suppressed: Vec<u64>,
    /// The number of the last pushed notification.
    last_push_number: u64,
}

#[derive(Debug)]
struct QueuedNotification {
    notification: AgentNotification,
    notified: bool,
    /// Its number among those pushed; none while a call under way will report it.
    push_number: Option<u64>,
}

impl NotificationQueue {
    /// Queues a notification; true when it is to be pushed now. An end is reported once, and not
    /// when an answer reported it already.
    pub(super) fn push(&mut self, notification: AgentNotification) -> bool {
        match notification.kind {
            NotificationKind::Ended if !self.is_end_unknown(notification.id) => return false,
            NotificationKind::Service(standing)
                if !self.update_health(notification.id, standing) =>
            {
                return false;
            }
            NotificationKind::Ended
            | NotificationKind::Crashed
            | NotificationKind::Watched
            | NotificationKind::Service(_) => {}
        }
        if self.queue.len() == QUEUE_CAPACITY
            && let Some(old) = self.queue.pop_front()
            && !old.notified
        {
            self.dropped += 1;
        }
        let is_answered_by_call = matches!(
            notification.kind,
            NotificationKind::Ended | NotificationKind::Service(_)
        );
        let is_suppressed =
            is_answered_by_call && self.suppressed.contains(&notification.id.short_bits());
        let push = (!is_suppressed).then(|| self.next_push_number());
        self.queue.push_back(QueuedNotification {
            notification,
            notified: false,
            push_number: push,
        });
        push.is_some()
    }

    /// Whether the end of this execution is neither reported nor queued.
    pub(super) fn is_end_unknown(&self, id: ExecutionId) -> bool {
        let is_queued_end = |queued: &QueuedNotification| {
            queued.notification.id == id && queued.notification.kind == NotificationKind::Ended
        };
        !self.notified_ends.contains(&id) && !self.queue.iter().any(is_queued_end)
    }

    /// Records the state of a service; true when it is to be reported.
    fn update_health(&mut self, id: ExecutionId, health: ServiceHealth) -> bool {
        let index = self
            .service_health
            .iter()
            .position(|(known, _)| *known == id);
        let last = index.and_then(|place| self.service_health.remove(place));
        if self.service_health.len() == NOTIFIED_CAPACITY {
            self.service_health.pop_front();
        }
        self.service_health.push_back((id, health));
        health.is_change_after(last.map(|(_, known)| known))
    }

    /// An answer showed the state of this service.
    pub(super) fn mark_health_notified(&mut self, id: ExecutionId, health: ServiceHealth) {
        self.update_health(id, health);
        let of_service = self.queue.iter_mut().filter(|it| it.notification.id == id);
        for queued in
            of_service.filter(|it| matches!(it.notification.kind, NotificationKind::Service(_)))
        {
            queued.notified = true;
        }
    }

    const fn next_push_number(&mut self) -> u64 {
        self.last_push_number += 1;
        self.last_push_number
    }

    /// An answer showed the end of this execution.
    pub(super) fn mark_end_notified(&mut self, id: ExecutionId) {
        let of_execution = self.queue.iter_mut().filter(|it| it.notification.id == id);
        let mut was_queued = false;
        for queued in of_execution.filter(|it| it.notification.kind != NotificationKind::Watched) {
            queued.notified = true;
            was_queued |= queued.notification.kind == NotificationKind::Ended;
        }
        if !was_queued && !self.notified_ends.contains(&id) {
            if self.notified_ends.len() == NOTIFIED_CAPACITY {
                self.notified_ends.pop_front();
            }
            self.notified_ends.push_back(id);
        }
    }

    /// A call about these executions started.
    pub(super) fn suppress(&mut self, bits: &[u64]) {
        self.suppressed.extend_from_slice(bits);
    }

    /// Such a call was answered; true when there is something left to push.
    pub(super) fn unsuppress(&mut self, bits: &[u64]) -> bool {
        for bits in bits {
            if let Some(index) = self.suppressed.iter().position(|it| it == bits) {
                self.suppressed.swap_remove(index);
            }
        }
        let mut any = false;
        for index in 0..self.queue.len() {
            let queued = &self.queue[index];
            let is_withheld = queued.push_number.is_none() && !queued.notified;
            if is_withheld
                && !self
                    .suppressed
                    .contains(&queued.notification.id.short_bits())
            {
                let number = self.next_push_number();
                self.queue[index].push_number = Some(number);
                any = true;
            }
        }
        any
    }

    /// Takes everything undelivered as one line, the oldest first; it counts as delivered. What a
    /// call under way will report stays.
    pub(super) fn take_line(&mut self) -> Option<String> {
        if self.queue.is_empty() && self.dropped == 0 {
            return None;
        }
        let mut line = String::new();
        let mut more = std::mem::take(&mut self.dropped);
        let (mut room, mut full) = (LINE_CHARS, false);
        for queued in &mut self.queue {
            if queued.notified || queued.push_number.is_none() {
                continue;
            }
            queued.notified = true;
            let chars = queued.notification.text.chars().count() + SEPARATOR.len();
            full |= chars > room;
            if full {
                more += 1;
                continue;
            }
            room -= chars;
            if !line.is_empty() {
                line.push_str(SEPARATOR);
            }
            line.push_str(&queued.notification.text);
        }
        match (line.is_empty(), more) {
            (true, 0) => None,
            (true, more) => Some(format!("[news: {more} more, see proc://news]")),
            (false, 0) => Some(format!("[news: {line}]")),
            (false, more) => Some(format!("[news: {line}; and {more} more]")),
        }
    }

    /// The notifications pushed after number `after` and not delivered since, with their numbers;
    /// oldest first.
    pub(super) fn pending_pushes(&self, after: u64) -> Vec<(u64, AgentNotification)> {
        let queued = self.queue.iter().filter(|queued| !queued.notified);
        let queued =
            queued.filter_map(|queued| Some((queued.push_number?, queued.notification.clone())));
        let mut pushes: Vec<_> = queued.filter(|(number, _)| *number > after).collect();
        pushes.sort_unstable_by_key(|(number, _)| *number);
        pushes
    }

    /// Everything kept, newest first; it counts as delivered.
    pub(super) fn read_all(&mut self) -> Vec<AgentNotification> {
        for queued in &mut self.queue {
            queued.notified = true;
        }
        self.dropped = 0;
        let items = self.queue.iter().rev();
        items.map(|queued| queued.notification.clone()).collect()
    }
}

const SEPARATOR: &str = "; ";

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
