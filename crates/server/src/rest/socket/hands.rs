//! Does what the client says: types, takes the lease and gives it back, changes the size.

use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use futures_util::stream::SplitStream;
use futures_util::{FutureExt as _, StreamExt as _};
use ostler_engine::{Lease, Typing};
use ostler_model::{ErrorCode, TermSize};
use ostler_terminal::Piece;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::enter::Over;
use super::spot::{Spot, Taken, Wishes, Word};
use crate::rest::answer::Answer;
use crate::wire::problem::CodeName;
use crate::wire::{ClientMessage, Problem, ServerMessage};

/// A client over the network that was not heard of for this long is gone, in milliseconds: two
/// signs of life were asked for.
const SILENCE_MS: u64 = 75_000;
/// Characters of a client's name for itself.
const NAME_CHARS: usize = 60;

/// The half that does.
#[derive(Debug)]
pub(super) struct Hands {
    spot: Spot,
    stream: SplitStream<WebSocket>,
    words: mpsc::Sender<Word>,
    wishes: Wishes,
    lease: Option<Lease>,
    /// The size before this connection changed it, and the one it gave.
    changed: Option<(TermSize, TermSize)>,
    silence: Option<Duration>,
}

/// A client's wish that was not carried out, or the end.
enum Stop {
    Refused(Problem),
    Over(Over),
}

impl<E: Into<Problem>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

impl Hands {
    pub(super) fn new(
        spot: Spot,
        stream: SplitStream<WebSocket>,
        (words, wishes): (mpsc::Sender<Word>, Wishes),
        remote: bool,
    ) -> Self {
        Self {
            spot,
            stream,
            words,
            wishes,
            lease: None,
            changed: None,
            silence: remote.then_some(Duration::from_millis(SILENCE_MS)),
        }
    }

    /// Works until the client is gone.
    pub(super) async fn work(&mut self) -> Over {
        loop {
            let message = tokio::select! {
                biased;
                () = lost(&mut self.lease) => {
                    // Whoever took it decides the size now.
                    (self.lease, self.changed) = (None, None);
                    if let Err(over) = self.tell(Word::LetGo).await {
                        return over;
                    }
                    continue;
                }
                message = heard(&mut self.stream, self.silence) => message,
            };
            let done = match message {
                Ok(message) => self.carry_out(message).await,
                Err(over) => return over,
            };
            let told = match done {
                Ok(()) => Ok(()),
                Err(Stop::Over(over)) => Err(over),
                // Of what has ended, the end is told, and nothing else.
                Err(Stop::Refused(_)) if self.spot.is_over() => Ok(()),
                Err(Stop::Refused(problem)) => self.tell(Word::Say(refused(problem, false))).await,
            };
            if let Err(over) = told {
                return over;
            }
        }
    }

    /// Gives everything back; the terminal has its former size again.
    pub(super) async fn let_go(&mut self) {
        if let Some(lease) = self.lease.take() {
            if let Some((before, given)) = self.changed.take()
                && self.spot.size().is_ok_and(|now| now == given)
            {
                // It may have ended meanwhile.
                drop(self.set_size(&lease, before).await);
            }
            drop(lease);
        }
    }

    async fn carry_out(&mut self, message: Message) -> Result<(), Stop> {
        match message {
            Message::Binary(keys) => self.type_in(keys.into()).await,
            Message::Text(text) => {
                let message = serde_json::from_str(&text)
                    .map_err(|error| Problem::value(format!("the message: {error}")))?;
                self.obey(message).await
            }
            Message::Ping(_) | Message::Pong(_) => Ok(()),
            Message::Close(_) => Err(Stop::Over(Over::Gone)),
        }
    }

    async fn obey(&mut self, message: ClientMessage) -> Result<(), Stop> {
        match message {
            ClientMessage::Take { take_over, name } => self.take(take_over, &name).await,
            ClientMessage::HandBack => {
                self.let_go().await;
                self.say(Word::LetGo).await
            }
            ClientMessage::Resize { cols, rows } => self.resize(TermSize { cols, rows }).await,
            ClientMessage::Repaint => self.say(Word::Repaint).await,
        }
    }

    /// Takes the lease, and answers that whatever becomes of it.
    async fn take(&mut self, take_over: bool, name: &str) -> Result<(), Stop> {
        self.wishes.begin();
        match self.taken(take_over, name_of(name)).await {
            Ok(taken) => self.say(Word::Taken(taken)).await,
            // The end is the answer.
            Err(_) if self.spot.is_over() => Ok(()),
            Err(problem) => self.say(Word::NotTaken(refused(problem, true))).await,
        }
    }

    async fn taken(&mut self, take_over: bool, name: String) -> Answer<Taken> {
        let lease = match &mut self.lease {
            Some(lease) => lease,
            free @ None => {
                let Spot { state, caller, id } = &self.spot;
                let lease = state.engine.take_lease(caller, id, &name, take_over);
                free.insert(lease.await?)
            }
        };
        let holder = self.spot.holder()?;
        // Looked at in this order: who was the holder before the lease was lost is us.
        let is_lost = lease.lost().now_or_never().is_some();
        let own = holder.filter(|_| !is_lost);
        let name = own.as_ref().map_or(name, |own| own.name.clone());
        Ok(Taken { name, own })
    }

    async fn resize(&mut self, size: TermSize) -> Result<(), Stop> {
        let now = self.spot.size()?;
        let Some(lease) = &self.lease else {
            return Err(self.no_lease());
        };
        if now == size {
            return Ok(());
        }
        self.set_size(lease, size).await?;
        let before = self.changed.map_or(now, |(before, _)| before);
        self.changed = Some((before, size));
        Ok(())
    }

    async fn set_size(&self, lease: &Lease, size: TermSize) -> Result<(), Problem> {
        let Spot { state, caller, id } = &self.spot;
        let resized = state
            .engine
            .resize_terminal(caller, id, size, Some(lease.id()));
        Ok(resized.await?)
    }

    /// Types; what the terminal does not take at once is offered again as long as it takes
    /// some of it.
    async fn type_in(&mut self, mut keys: Vec<u8>) -> Result<(), Stop> {
        let whole = keys.len();
        while !keys.is_empty() {
            let Some(lease) = &self.lease else {
                return Err(self.no_lease());
            };
            let typing = Typing {
                pieces: vec![Piece::Raw(keys.clone())],
                lease: Some(lease.id().clone()),
            };
            let Spot { state, caller, id } = &self.spot;
            let typed = state.engine.type_in(caller, id, typing).await?;
            let taken = usize::try_from(typed.taken).unwrap_or(usize::MAX);
            if taken == 0 {
                let left = keys.len();
                let message =
                    format!("the program does not read: {left} of {whole} bytes were not taken");
                return Err(Problem::new(ErrorCode::ProcessControl, message, None).into());
            }
            keys.drain(..taken.min(keys.len()));
        }
        Ok(())
    }

    fn no_lease(&self) -> Stop {
        let message = match self.spot.holder() {
            Ok(Some(holder)) => format!("{} types here now; take over first", holder.name),
            Ok(None) => "a connection only watches until it takes the lease".to_owned(),
            Err(problem) => return Stop::Refused(problem),
        };
        Stop::Refused(Problem::new(ErrorCode::ProcessControl, message, None))
    }

    async fn say(&self, word: Word) -> Result<(), Stop> {
        self.tell(word).await.map_err(Stop::Over)
    }

    async fn tell(&self, word: Word) -> Result<(), Over> {
        self.words.send(word).await.map_err(|_| Over::Gone)
    }
}

/// Until the lease is somebody else's; without one, never.
async fn lost(lease: &mut Option<Lease>) {
    match lease {
        Some(lease) => drop(lease.lost().await),
        None => std::future::pending().await,
    }
}

async fn heard(
    stream: &mut SplitStream<WebSocket>,
    silence: Option<Duration>,
) -> Result<Message, Over> {
    let next = match silence {
        Some(limit) => timeout(limit, stream.next())
            .await
            .map_err(|_| Over::Silent)?,
        None => stream.next().await,
    };
    match next {
        Some(Ok(message)) => Ok(message),
        Some(Err(_)) | None => Err(Over::Gone),
    }
}

/// A name on one line, for others.
fn name_of(given: &str) -> String {
    let shown = given.chars().filter(|letter| !letter.is_control());
    let name: String = shown.take(NAME_CHARS).collect();
    match name.trim() {
        "" => "somebody".to_owned(),
        name => name.to_owned(),
    }
}

fn refused(problem: Problem, take: bool) -> ServerMessage {
    let Problem {
        code: CodeName(code),
        message,
        ..
    } = problem;
    ServerMessage::Refused {
        code: CodeName(code),
        message,
        take,
    }
}
