//! Event ids of response streams. Those of the library are positions in the streams of one daemon,
//! and begin anew in the next. A client gets them together with the run of the daemon, and in the
//! stream of a request with what is needed to answer it when the stream cannot be resumed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rmcp::model::RequestId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::interrupted::InterruptedCall;

/// Between the parts of an event id: `POSITION@RUN` and `POSITION@RUN@REQUEST`.
const SEPARATOR: char = '@';
/// The most bytes of an encoded request: ids come back in a header.
const REQUEST_BYTES: usize = 1_024;

/// The event ids of this daemon.
#[derive(Debug)]
pub(super) struct EventIds {
    run: String,
}

/// The request that a stream answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StreamRequest {
    pub(super) id: RequestId,
    /// Set for a tool call.
    pub(super) call: Option<InterruptedCall>,
}

/// The last event that a client has received.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LastEvent {
    /// An event of this daemon, at the library's position.
    Current {
        position: String,
        request: Option<StreamRequest>,
    },
    /// An event of an earlier daemon, or none with a position.
    Earlier { request: Option<StreamRequest> },
}

impl EventIds {
    pub(super) fn new() -> Self {
        let run = Uuid::new_v4().simple().to_string();
        Self { run }
    }

    /// The id that a client gets for the library's id `position`.
    pub(super) fn id(&self, position: &str, request: Option<&str>) -> String {
        let run = &self.run;
        match request {
            Some(request) => format!("{position}{SEPARATOR}{run}{SEPARATOR}{request}"),
            None => format!("{position}{SEPARATOR}{run}"),
        }
    }

    /// Parses an id that a client sends back. One that is not of this format counts as an earlier
    /// daemon's.
    pub(super) fn parse(&self, id: &str) -> LastEvent {
        let mut parts = id.splitn(3, SEPARATOR);
        let (position, run) = (parts.next().unwrap_or_default(), parts.next());
        let request = parts.next().and_then(StreamRequest::decode);
        if run == Some(&self.run) {
            let position = position.to_owned();
            return LastEvent::Current { position, request };
        }
        LastEvent::Earlier { request }
    }
}

impl StreamRequest {
    /// As a part of an event id; none where it is too long.
    pub(super) fn encode(&self) -> Option<String> {
        let json = serde_json::to_vec(self).ok()?;
        let text = URL_SAFE_NO_PAD.encode(json);
        (text.len() <= REQUEST_BYTES).then_some(text)
    }

    fn decode(text: &str) -> Option<Self> {
        let json = URL_SAFE_NO_PAD.decode(text).ok()?;
        serde_json::from_slice(&json).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rmcp::model::NumberOrString;

    use super::*;

    fn request(id: &str) -> StreamRequest {
        StreamRequest {
            id: NumberOrString::String(id.into()),
            call: Some(InterruptedCall::default()),
        }
    }

    #[test]
    fn another_daemon_knows_the_request_and_no_position() {
        let (ids, next) = (EventIds::new(), EventIds::new());
        let request = request("a@b");
        let id = ids.id("3/7", request.encode().as_deref());
        assert!(id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
        let (position, request) = ("3/7".to_owned(), Some(request));
        assert_eq!(
            next.parse(&id),
            LastEvent::Earlier {
                request: request.clone()
            }
        );
        assert_eq!(ids.parse(&id), LastEvent::Current { position, request });
    }

    #[test]
    fn a_request_that_does_not_fit_is_left_out() {
        assert_eq!(request(&"x".repeat(REQUEST_BYTES)).encode(), None);
    }

    proptest! {
        #[test]
        fn what_clients_make_up_is_of_no_daemon(id in ".{0,40}") {
            let parsed = EventIds::new().parse(&id);
            prop_assert_eq!(parsed, LastEvent::Earlier { request: None });
        }
    }
}
