//! Answers that were given to a connection, kept for a client that loses it before it has read them: only
//! the client knows that it has. They are bounded in number and size; where there is no room, the oldest
//! answer of the principal who holds most is dropped, so that nobody displaces the answers of others.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};
use std::time::Duration;

use ostler_model::Principal;
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio::time::Instant;

use super::streams::StreamKey;

/// The most answers that are kept.
const ANSWERS_MAX: usize = 512;
/// The most answers of one principal.
const ANSWERS_MAX_OF_PRINCIPAL: usize = 128;
/// The most bytes of all answers.
const BYTES_MAX: usize = 32 * 1024 * 1024;
/// The most dropped answers that are remembered as such; the oldest are forgotten.
const DROPPED_MAX: usize = 4_096;

/// Answers by the end of the time in which a client may ask for them again.
#[derive(Debug, Default)]
pub(super) struct DeliveredAnswers {
    kept: VecDeque<DeliveredAnswer>,
    /// What had to make room, and until when it would have been kept.
    dropped: VecDeque<(StreamKey, Instant)>,
}

#[derive(Debug)]
struct DeliveredAnswer {
    key: StreamKey,
    /// Who called; none where the caller is not known.
    holder: Option<Principal>,
    event: ServerSseMessage,
    bytes: usize,
    until: Instant,
}

/// What is left of an answer.
#[derive(Debug)]
pub(super) enum KeptAnswer {
    /// It can be sent again.
    Kept(ServerSseMessage),
    /// It had to make room for others.
    Dropped,
}

impl DeliveredAnswers {
    /// Keeps the answer to a call of this principal for this long, the same for all.
    pub(super) fn keep(
        &mut self,
        key: StreamKey,
        holder: Option<Principal>,
        event: ServerSseMessage,
        now: Instant,
        window: Duration,
    ) {
        self.drop_expired(now);
        self.kept.push_back(DeliveredAnswer {
            key,
            holder,
            bytes: message_bytes(&event),
            event,
            until: now + window,
        });
        self.make_room();
    }

    /// The answer of a stream, for as long as it is to be kept.
    pub(super) fn get(&mut self, key: &StreamKey, now: Instant) -> Option<KeptAnswer> {
        self.drop_expired(now);
        if let Some(answer) = self.kept.iter().find(|answer| answer.key == *key) {
            return Some(KeptAnswer::Kept(answer.event.clone()));
        }
        let is_dropped = self.dropped.iter().any(|(dropped, _)| dropped == key);
        is_dropped.then_some(KeptAnswer::Dropped)
    }

    /// Drops the answers of a session that has ended.
    pub(super) fn forget(&mut self, session: &SessionId) {
        self.kept.retain(|answer| answer.key.0 != *session);
        self.dropped.retain(|(key, _)| key.0 != *session);
    }

    fn drop_expired(&mut self, now: Instant) {
        while self.kept.front().is_some_and(|it| it.until <= now) {
            self.kept.pop_front();
        }
        while self.dropped.front().is_some_and(|(_, until)| *until <= now) {
            self.dropped.pop_front();
        }
    }

    /// Drops answers until all are within their bounds.
    fn make_room(&mut self) {
        loop {
            let (counts, total) = (self.held(|_| 1), self.kept.len());
            let most = counts.iter().max_by_key(|(_, count)| **count);
            let is_too_many =
                |count: usize| total > ANSWERS_MAX || count > ANSWERS_MAX_OF_PRINCIPAL;
            if let Some((holder, _)) = most.filter(|(_, count)| is_too_many(**count)) {
                self.drop_oldest_of(&holder.clone());
                continue;
            }
            let sizes = self.held(|it| it.bytes);
            let largest = sizes.iter().max_by_key(|(_, bytes)| **bytes);
            match largest.filter(|_| sizes.values().sum::<usize>() > BYTES_MAX) {
                Some((holder, _)) => self.drop_oldest_of(&holder.clone()),
                None => return,
            }
        }
    }

    /// The sum of what is measured, for each principal.
    fn held(
        &self,
        measure: impl Fn(&DeliveredAnswer) -> usize,
    ) -> HashMap<Option<Principal>, usize> {
        let mut held = HashMap::new();
        for answer in &self.kept {
            *held.entry(answer.holder.clone()).or_default() += measure(answer);
        }
        held
    }

    fn drop_oldest_of(&mut self, holder: &Option<Principal>) {
        let oldest = self.kept.iter().position(|it| it.holder == *holder);
        let Some(answer) = oldest.and_then(|at| self.kept.remove(at)) else {
            return;
        };
        // In the order of their ends, which are all equally far away from their beginnings.
        let at = self
            .dropped
            .partition_point(|(_, until)| *until <= answer.until);
        self.dropped.insert(at, (answer.key, answer.until));
        if self.dropped.len() > DROPPED_MAX {
            self.dropped.pop_front();
        }
    }
}

/// The length of an answer as it is sent.
fn message_bytes(event: &ServerSseMessage) -> usize {
    let mut counter = ByteCounter(0);
    if let Some(message) = event.message.as_deref()
        && serde_json::to_writer(&mut counter, message).is_err()
    {
        // What cannot be written is not sent.
        return 0;
    }
    counter.0
}

/// Counts what is written.
struct ByteCounter(usize);

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ErrorData, RequestId};

    use super::*;
    use crate::streamable_http::streams::error_message;

    const WINDOW: Duration = Duration::from_secs(10);

    fn key(session: &str, stream: u64) -> StreamKey {
        (session.into(), stream)
    }

    fn answer(text: &str) -> ServerSseMessage {
        let error = ErrorData::internal_error(text.to_owned(), None);
        error_message(RequestId::Number(1), error)
    }

    /// Keeps an answer of a principal in a session of the same name.
    fn keep(answers: &mut DeliveredAnswers, who: u32, stream: u64, text: &str, now: Instant) {
        let key = key(&who.to_string(), stream);
        answers.keep(key, Some(Principal::unix(who)), answer(text), now, WINDOW);
    }

    fn is_kept(answers: &mut DeliveredAnswers, who: u32, stream: u64, now: Instant) -> bool {
        let found = answers.get(&key(&who.to_string(), stream), now);
        matches!(found, Some(KeptAnswer::Kept(_)))
    }

    #[test]
    fn an_answer_is_kept_for_its_time() {
        let mut answers = DeliveredAnswers::default();
        let now = Instant::now();
        keep(&mut answers, 1, 1, "no", now);
        assert!(is_kept(&mut answers, 1, 1, now));
        assert!(answers.get(&key("1", 2), now).is_none());
        assert!(answers.get(&key("1", 1), now + WINDOW).is_none());
        keep(&mut answers, 1, 2, "no", now);
        answers.forget(&"1".into());
        assert!(answers.get(&key("1", 2), now).is_none());
    }

    #[test]
    fn nobody_displaces_the_answers_of_others() {
        let mut answers = DeliveredAnswers::default();
        let now = Instant::now();
        keep(&mut answers, 1, 0, "no", now);
        for stream in 0..=ANSWERS_MAX_OF_PRINCIPAL as u64 {
            keep(&mut answers, 2, stream, "no", now);
        }
        assert!(is_kept(&mut answers, 1, 0, now));
        let first = answers.get(&key("2", 0), now);
        assert!(matches!(first, Some(KeptAnswer::Dropped)), "{first:?}");
        assert!(is_kept(&mut answers, 2, 1, now));
        for who in 3..10 {
            for stream in 0..ANSWERS_MAX_OF_PRINCIPAL as u64 {
                keep(&mut answers, who, stream, "no", now);
            }
        }
        assert_eq!(answers.kept.len(), ANSWERS_MAX);
        assert!(is_kept(&mut answers, 1, 0, now));
        assert!(answers.get(&key("2", 0), now + WINDOW).is_none());
    }

    #[test]
    fn large_answers_are_dropped_by_their_size() {
        let mut answers = DeliveredAnswers::default();
        let now = Instant::now();
        let large = "x".repeat(BYTES_MAX / 4);
        keep(&mut answers, 1, 0, "no", now);
        for stream in 0..5 {
            keep(&mut answers, 2, stream, &large, now);
        }
        assert!(is_kept(&mut answers, 1, 0, now));
        assert!(!is_kept(&mut answers, 2, 1, now));
        assert!(is_kept(&mut answers, 2, 4, now));
    }
}
