//! Answers that were given to a connection, kept for a client that loses it before it has read them: only
//! the client knows that it has.

use std::collections::VecDeque;
use std::time::Duration;

use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio::time::Instant;

use super::streams::StreamKey;

/// The most answers that are kept; the oldest are dropped.
const ANSWERS_MAX: usize = 128;

/// Answers by the end of the time in which a client may ask for them again.
#[derive(Debug, Default)]
pub(super) struct DeliveredAnswers(VecDeque<DeliveredAnswer>);

#[derive(Debug)]
struct DeliveredAnswer {
    key: StreamKey,
    event: ServerSseMessage,
    until: Instant,
}

impl DeliveredAnswers {
    /// Keeps an answer for this long, the same for all.
    pub(super) fn keep(
        &mut self,
        key: StreamKey,
        event: ServerSseMessage,
        now: Instant,
        window: Duration,
    ) {
        self.drop_expired(now);
        if self.0.len() >= ANSWERS_MAX {
            self.0.pop_front();
        }
        let until = now + window;
        self.0.push_back(DeliveredAnswer { key, event, until });
    }

    /// The answer of a stream, while it is kept.
    pub(super) fn get(&mut self, key: &StreamKey, now: Instant) -> Option<ServerSseMessage> {
        self.drop_expired(now);
        let answer = self.0.iter().find(|answer| answer.key == *key)?;
        Some(answer.event.clone())
    }

    /// Drops the answers of a session that has ended.
    pub(super) fn forget(&mut self, session: &SessionId) {
        self.0.retain(|answer| answer.key.0 != *session);
    }

    fn drop_expired(&mut self, now: Instant) {
        while self.0.front().is_some_and(|answer| answer.until <= now) {
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ErrorData, RequestId};

    use super::*;
    use crate::streamable_http::streams::error_message;

    const WINDOW: Duration = Duration::from_secs(10);

    fn key(stream: u64) -> StreamKey {
        ("session".into(), stream)
    }

    fn answer(stream: u64) -> ServerSseMessage {
        let error = ErrorData::internal_error("no", None);
        error_message(RequestId::Number(stream.cast_signed()), error)
    }

    #[test]
    fn an_answer_is_kept_for_its_time() {
        let mut answers = DeliveredAnswers::default();
        let now = Instant::now();
        answers.keep(key(1), answer(1), now, WINDOW);
        assert!(answers.get(&key(1), now).is_some());
        assert!(answers.get(&key(2), now).is_none());
        assert!(answers.get(&key(1), now + WINDOW).is_none());
    }

    #[test]
    fn the_newest_answers_of_living_sessions_are_kept() {
        let mut answers = DeliveredAnswers::default();
        let now = Instant::now();
        for stream in 0..=ANSWERS_MAX as u64 {
            answers.keep(key(stream), answer(stream), now, WINDOW);
        }
        assert!(answers.get(&key(0), now).is_none());
        assert!(answers.get(&key(1), now).is_some());
        answers.forget(&"session".into());
        assert!(answers.get(&key(1), now).is_none());
    }
}
