//! The handshake, and the life of one connection.

use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use futures_util::{SinkExt as _, StreamExt as _};
use ostler_engine::Error;
use ostler_model::Cursor;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::eyes::{Eyes, Told};
use super::hands::Hands;
use super::spot::{Spot, Wishes};
use crate::listen::{Reached, Seat};
use crate::params::{Kind, Parameter};
use crate::rest::answer::Answer;
use crate::rest::caller::Asking;
use crate::rest::extract::Session;
use crate::rest::query::Asked;
use crate::rest::state::RestState;
use crate::wire::{Hello, Problem, ServerMessage};

/// The largest message a client may send.
pub(crate) const MESSAGE_BYTES: usize = 64 * 1024;
/// What is buffered towards a client before it is written.
const WRITE_BYTES: usize = 64 * 1024;
/// What is ever buffered towards a client: a repaint of a large screen and a page of output.
const WRITE_LIMIT_BYTES: usize = 16 * 1024 * 1024;
/// Words between the two halves; more wait.
const WORDS: usize = 16;
/// How long a client may take to hear that the connection closes, in milliseconds.
const CLOSE_MS: u64 = 1_000;

const ATTACH: &[Parameter] = &[
    Parameter::optional(
        "offset",
        Kind::Integer(0, i64::MAX),
        "Begin with the output from this offset on instead of the screen",
    ),
    Parameter::optional(
        "whole",
        Kind::Flag,
        "Send all output that is kept, however far behind the client is",
    )
    .or_flag(false),
];

/// Why a connection is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// The session ended, and the client was told.
    Ended,
    /// The daemon leaves.
    Leaving,
    /// The client is gone.
    Gone,
    /// The client has not been heard of for too long.
    Silent,
    /// The session cannot be read.
    Broken,
}

/// The connection a request came on, and its becoming a WebSocket.
type Line = (
    Option<Extension<Seat>>,
    Option<Extension<Reached>>,
    Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
);

/// `GET /api/v1/executions/{id}/terminal`.
pub(in crate::rest) async fn attach(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Session(id): Session,
    asked: Asked,
    (seat, reached, upgrade): Line,
) -> Answer<Response> {
    let arguments = asked.check(ATTACH)?;
    let upgrade = upgrade.map_err(|rejection| no_socket(&rejection))?;
    let id = state
        .engine
        .info(&caller, &id)
        .map_err(Error::of_session)?
        .id
        .to_string();
    let spot = Spot { state, caller, id };
    let begin = Begin::of(&spot, arguments.count("offset")).await?;
    let whole = arguments.flag("whole");
    let upgrade = upgrade
        .max_message_size(MESSAGE_BYTES)
        .max_frame_size(MESSAGE_BYTES)
        .write_buffer_size(WRITE_BYTES)
        .max_write_buffer_size(WRITE_LIMIT_BYTES);
    Ok(upgrade.on_upgrade(move |socket| async move {
        // As long as it lives, the connection counts, and the listener waits for its end.
        let _seat = seat;
        let remote = reached.is_some();
        live(socket, (spot, begin), whole, remote).await;
    }))
}

fn no_socket(rejection: &WebSocketUpgradeRejection) -> Problem {
    let message = format!("this route speaks WebSocket: {rejection}");
    Problem::value(message).with_status(426)
}

/// What a client is sent first.
#[derive(Debug)]
struct Begin {
    hello: Hello,
    paint: Option<Vec<u8>>,
    told: Told,
}

impl Begin {
    async fn of(spot: &Spot, offset: Option<u64>) -> Answer<Self> {
        let engine = &spot.state.engine;
        let view = engine.screen(&spot.caller, &spot.id);
        let view = spot.state.unless_leaving(view).await??;
        let (paint, offset) = match offset {
            Some(offset) => (None, offset.min(view.offset)),
            None => {
                let painted = engine.repaint(&spot.caller, &spot.id);
                let (paint, checkpoint) = spot.state.unless_leaving(painted).await??;
                (Some(paint), checkpoint.offset)
            }
        };
        let (size, holder) = (spot.size()?, spot.holder()?);
        let info = engine.info(&spot.caller, &spot.id)?;
        Ok(Self {
            hello: Hello {
                id: info.id.short(),
                size,
                offset,
                alternate: view.alternate,
                title: view.title,
                holder: holder.as_ref().map(|holder| holder.name.clone()),
            },
            paint,
            told: Told {
                size,
                holder,
                yours: false,
            },
        })
    }
}

/// One connection, from the first word to the close.
async fn live(socket: WebSocket, (spot, begin): (Spot, Begin), whole: bool, remote: bool) {
    let (mut sink, stream) = socket.split();
    let (words, heard) = mpsc::channel(WORDS);
    let shutdown = spot.state.shutdown.clone();
    let over = {
        let wishes = Wishes::default();
        let mut hands = Hands::new(spot.clone(), stream, (words, wishes.clone()), remote);
        let seeing = async {
            let from = Cursor {
                offset: begin.hello.offset,
                event: 0,
            };
            let hello = ServerMessage::Hello(begin.hello);
            let told = (begin.told, wishes);
            let eyes = Eyes::open(&spot, &mut sink, from, (told, whole, remote));
            match eyes {
                Ok(mut eyes) => eyes.see(hello, begin.paint, heard).await,
                Err(_) => Over::Broken,
            }
        };
        let over = tokio::select! {
            biased;
            () = shutdown.cancelled() => Over::Leaving,
            over = hands.work() => over,
            over = seeing => over,
        };
        if over != Over::Leaving {
            hands.let_go().await;
        }
        over
    };
    let closing = sink.send(Message::Close(Some(farewell(over))));
    // A client that does not listen any more is not waited for.
    drop(timeout(Duration::from_millis(CLOSE_MS), closing).await);
}

fn farewell(over: Over) -> CloseFrame {
    let (code, reason) = match over {
        Over::Ended => (close_code::NORMAL, "the session ended"),
        Over::Leaving => (close_code::AWAY, "the daemon leaves"),
        Over::Gone => (close_code::NORMAL, ""),
        Over::Silent => (close_code::POLICY, "nothing was heard for too long"),
        Over::Broken => (close_code::ERROR, "the session cannot be read"),
    };
    CloseFrame {
        code,
        reason: reason.into(),
    }
}
