//! Shows a terminal: output as it comes, and what happens to it.
//!
//! A client that does not read makes its own connection wait and nothing else: nothing is read
//! from the journal for it meanwhile. When it comes back and is further behind than
//! [`LAG_BYTES`], it is told what it missed and shown the screen as it is now.

use std::ops::Range;
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use futures_util::SinkExt as _;
use futures_util::stream::SplitSink;
use ostler_engine::{Follower, LeaseHolder, Watch, lost_bytes};
use ostler_journal::BytePage;
use ostler_model::{Cursor, TermSize};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::enter::Over;
use super::spot::{Spot, Taken, Wishes, Word};
use crate::rest::answer::Answer;
use crate::wire::{InfoBody, ServerMessage};

/// Output a client may be behind before the screen is painted instead of it.
pub(crate) const LAG_BYTES: u64 = 1024 * 1024;
/// Output in one message.
const PAGE_BYTES: u64 = 64 * 1024;
/// A client over the network is asked for a sign of life this often, in milliseconds; on the
/// Unix socket the kernel tells.
const PING_MS: u64 = 30_000;
/// Ends a control sequence that the gap cut in half: CAN.
const CANCEL: u8 = 0x18;

/// What the client was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) size: TermSize,
    pub(super) holder: Option<LeaseHolder>,
    pub(super) yours: bool,
}

/// The half that shows.
#[derive(Debug)]
pub(super) struct Eyes<'a> {
    spot: &'a Spot,
    sink: &'a mut SplitSink<WebSocket, Message>,
    follower: Follower,
    watch: Watch,
    told: Told,
    /// Who this connection is while it holds the lease.
    own: Option<LeaseHolder>,
    wishes: Wishes,
    whole: bool,
    ping: Option<Instant>,
}

/// What happened next.
enum Seen {
    Word(Option<Word>),
    Change,
    Page(Result<Option<BytePage>, ostler_engine::Error>),
    Quiet,
}

impl<'a> Eyes<'a> {
    pub(super) fn open(
        spot: &'a Spot,
        sink: &'a mut SplitSink<WebSocket, Message>,
        from: Cursor,
        ((told, wishes), whole, remote): ((Told, Wishes), bool, bool),
    ) -> Answer<Self> {
        Ok(Self {
            follower: follower(spot, from)?,
            watch: spot.state.engine.watch(&spot.caller, &spot.id)?,
            spot,
            sink,
            told,
            own: None,
            wishes,
            whole,
            ping: remote.then(next_ping),
        })
    }

    /// Shows until something is over.
    pub(super) async fn see(
        &mut self,
        hello: ServerMessage,
        paint: Option<Vec<u8>>,
        mut words: mpsc::Receiver<Word>,
    ) -> Over {
        let begun = async {
            self.say(&hello).await?;
            self.paint(paint.unwrap_or_default()).await
        };
        if let Err(over) = begun.await {
            return over;
        }
        loop {
            let seen = tokio::select! {
                biased;
                word = words.recv() => Seen::Word(word),
                () = self.watch.state_changed() => Seen::Change,
                page = self.follower.next() => Seen::Page(page),
                () = until(self.ping) => Seen::Quiet,
            };
            if let Err(over) = self.take_in(seen).await {
                return over;
            }
        }
    }

    async fn take_in(&mut self, seen: Seen) -> Result<(), Over> {
        match seen {
            Seen::Word(None) => Err(Over::Gone),
            Seen::Word(Some(word)) => self.word(word).await,
            Seen::Change => self.look().await,
            Seen::Page(Ok(Some(page))) => self.page(page).await,
            Seen::Page(Ok(None)) => Err(self.end().await),
            Seen::Page(Err(error)) => {
                tracing::warn!(%error, id = self.spot.id, "a terminal cannot be shown");
                Err(Over::Broken)
            }
            Seen::Quiet => {
                self.ping = Some(next_ping());
                self.send(Message::Ping(bytes::Bytes::new())).await
            }
        }
    }

    async fn word(&mut self, word: Word) -> Result<(), Over> {
        match word {
            Word::Say(message) => self.say(&message).await,
            Word::Taken(taken) => {
                self.wishes.answered();
                self.taken(taken).await
            }
            Word::NotTaken(refused) => {
                self.wishes.answered();
                self.say(&refused).await?;
                self.look().await
            }
            Word::LetGo => {
                self.own = None;
                self.look().await
            }
            Word::Repaint => self.repaint().await,
        }
    }

    /// Answers a wish to type, and then what has changed since.
    async fn taken(&mut self, Taken { name, own }: Taken) -> Result<(), Over> {
        (self.own, self.told.yours) = (own.clone(), true);
        self.told.holder = own;
        let (holder, yours) = (Some(name), true);
        self.say(&ServerMessage::Lease { holder, yours }).await?;
        self.look().await
    }

    /// Tells what changed about the terminal.
    async fn look(&mut self) -> Result<(), Over> {
        let size = self.watch.look().size();
        if let Some(size) = size.filter(|&size| size != self.told.size) {
            self.told.size = size;
            self.say(&ServerMessage::Resized { size }).await?;
        }
        if self.wishes.are_open() {
            // The answer comes first, and looks again.
            return Ok(());
        }
        let holder = self.spot.holder().map_err(|_| Over::Broken)?;
        let yours = holder.is_some() && holder == self.own;
        if (&holder, yours) != (&self.told.holder, self.told.yours) {
            let name = holder.as_ref().map(|holder| holder.name.clone());
            (self.told.holder, self.told.yours) = (holder, yours);
            let holder = name;
            self.say(&ServerMessage::Lease { holder, yours }).await?;
        }
        Ok(())
    }

    async fn page(&mut self, page: BytePage) -> Result<(), Over> {
        let end = self.watch.look().output_end;
        let from = page.gap.map_or_else(
            || {
                page.chunks
                    .first()
                    .map_or(page.next.offset, |chunk| chunk.offset)
            },
            |gap| gap.from,
        );
        if !self.whole && end.saturating_sub(from) > LAG_BYTES {
            return self.catch_up(from).await;
        }
        if let Some(gap) = page.gap {
            self.gap(gap.from, gap.to).await?;
        }
        for chunk in page.chunks {
            self.send(Message::Binary(chunk.bytes.into())).await?;
        }
        self.look().await
    }

    /// Leaves output out: the screen as it is now stands for it.
    async fn catch_up(&mut self, from: u64) -> Result<(), Over> {
        let (paint, to) = self.painted().await?;
        let lost_bytes = self.lost(from..to)?;
        let message = ServerMessage::Gap {
            from,
            to,
            lost_bytes,
        };
        self.say(&message).await?;
        self.show(paint, to).await
    }

    /// How much of what is left out nobody can read any more, though nobody dropped it.
    fn lost(&mut self, within: Range<u64>) -> Result<u64, Over> {
        let info = self.watch.look();
        if within.is_empty() || info.state.degraded.is_empty() {
            return Ok(0);
        }
        let Spot { state, caller, id } = self.spot;
        let journal = state.engine.journal(caller, id).map_err(|_| Over::Broken)?;
        lost_bytes(&info, &journal, within).map_err(|_| Over::Broken)
    }

    /// Tells of output that is gone.
    async fn gap(&mut self, from: u64, to: u64) -> Result<(), Over> {
        let lost_bytes = self.watch.look().state.lost_bytes(from, to);
        let message = ServerMessage::Gap {
            from,
            to,
            lost_bytes,
        };
        self.say(&message).await
    }

    /// Paints on request. Output that was not sent yet is painted over; what was lost of it is
    /// told, because the screen does not show that.
    async fn repaint(&mut self) -> Result<(), Over> {
        let from = self.follower.cursor().offset;
        let (paint, to) = self.painted().await?;
        let lost_bytes = self.lost(from..to)?;
        if lost_bytes > 0 {
            let message = ServerMessage::Gap {
                from,
                to,
                lost_bytes,
            };
            self.say(&message).await?;
        }
        self.show(paint, to).await
    }

    async fn show(&mut self, mut paint: Vec<u8>, offset: u64) -> Result<(), Over> {
        self.look().await?;
        self.say(&ServerMessage::Paint { offset }).await?;
        paint.insert(0, CANCEL);
        self.paint(paint).await?;
        self.go_on(offset)
    }

    async fn painted(&self) -> Result<(Vec<u8>, u64), Over> {
        let Spot { state, caller, id } = self.spot;
        let painted = state.engine.repaint(caller, id).await;
        painted.map_or(Err(Over::Broken), |(paint, checkpoint)| {
            Ok((paint, checkpoint.offset))
        })
    }

    fn go_on(&mut self, offset: u64) -> Result<(), Over> {
        let from = Cursor { offset, event: 0 };
        self.follower = follower(self.spot, from).map_err(|_| Over::Broken)?;
        Ok(())
    }

    /// Nothing more comes: the session ended, or the engine does.
    async fn end(&mut self) -> Over {
        let info = self.watch.look();
        if !info.state.is_finished() {
            return Over::Leaving;
        }
        let told = async {
            self.look().await?;
            let info = Box::new(InfoBody::from(&info));
            self.say(&ServerMessage::Exit(info)).await
        };
        told.await.map_or_else(|over| over, |()| Over::Ended)
    }

    async fn paint(&mut self, bytes: Vec<u8>) -> Result<(), Over> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.send(Message::Binary(bytes.into())).await
    }

    async fn say(&mut self, message: &ServerMessage) -> Result<(), Over> {
        let text = serde_json::to_string(message).map_err(|_| Over::Broken)?;
        self.send(Message::Text(text.into())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), Over> {
        self.sink.send(message).await.map_err(|_| Over::Gone)
    }
}

fn follower(spot: &Spot, from: Cursor) -> Answer<Follower> {
    let follower = spot.state.engine.follow(&spot.caller, &spot.id, from)?;
    Ok(follower.page_bytes(PAGE_BYTES))
}

fn next_ping() -> Instant {
    Instant::now() + Duration::from_millis(PING_MS)
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
