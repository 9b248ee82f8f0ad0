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
    /// What each principal holds of them.
    held: HashMap<Option<Principal>, HeldAnswers>,
    /// The bytes of all.
    bytes: usize,
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

/// The answers of one principal.
#[derive(Debug, Clone, Copy, Default)]
struct HeldAnswers {
    count: usize,
    bytes: usize,
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
        let bytes = message_bytes(&event);
        let held = self.held.entry(holder.clone()).or_default();
        held.count += 1;
        held.bytes += bytes;
        self.bytes += bytes;
        self.kept.push_back(DeliveredAnswer {
            key,
            holder: holder.clone(),
            bytes,
            event,
            until: now + window,
        });
        self.make_room(&holder);
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
        while let Some(at) = self.kept.iter().position(|it| it.key.0 == *session) {
            self.remove(at);
        }
        self.dropped.retain(|(key, _)| key.0 != *session);
    }

    fn drop_expired(&mut self, now: Instant) {
        while self.kept.front().is_some_and(|it| it.until <= now) {
            self.remove(0);
        }
        while self.dropped.front().is_some_and(|(_, until)| *until <= now) {
            self.dropped.pop_front();
        }
    }

    /// Drops answers until all are within their bounds, after one of this principal was added.
    fn make_room(&mut self, added: &Option<Principal>) {
        let count_of = |it: &Self| it.held.get(added).map_or(0, |held| held.count);
        while count_of(self) > ANSWERS_MAX_OF_PRINCIPAL {
            self.drop_oldest_of(&added.clone());
        }
        while self.kept.len() > ANSWERS_MAX {
            self.drop_oldest_of_largest(|held| held.count);
        }
        while self.bytes > BYTES_MAX && !self.kept.is_empty() {
            self.drop_oldest_of_largest(|held| held.bytes);
        }
    }

    /// Drops the oldest answer of the principal who holds most by this measure.
    fn drop_oldest_of_largest(&mut self, measure: impl Fn(&HeldAnswers) -> usize) {
        let largest = self.held.iter().max_by_key(|(_, held)| measure(held));
        if let Some((holder, _)) = largest {
            self.drop_oldest_of(&holder.clone());
        }
    }

    fn drop_oldest_of(&mut self, holder: &Option<Principal>) {
        let oldest = self.kept.iter().position(|it| it.holder == *holder);
        let Some(answer) = oldest.and_then(|at| self.remove(at)) else {
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

    fn remove(&mut self, at: usize) -> Option<DeliveredAnswer> {
        let answer = self.kept.remove(at)?;
        self.bytes -= answer.bytes;
        if let Some(held) = self.held.get_mut(&answer.holder) {
            held.count -= 1;
            held.bytes -= answer.bytes;
            if held.count == 0 {
                self.held.remove(&answer.holder);
            }
        }
        Some(answer)
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
