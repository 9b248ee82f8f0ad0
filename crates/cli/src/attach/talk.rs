//! One connection: what comes is shown, what is typed goes.

use std::io;
use std::time::Duration;

use ostler_server::wire::{ClientMessage, GapBody, Hello, ServerMessage};
use tokio::io::{AsyncReadExt as _, Stdin};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::keys::Want;
use super::session::{Parted, Session};
use super::signals::{Call, stop_here};
use super::turn::{Leased, Typed};
use super::window::{own_name, window_size};
use crate::client::{Heard, Socket};
use crate::error::CommandError;
use ostler_model::Signal;

/// Bytes of keys taken at once; less than a message may hold.
const KEYS_BYTES: usize = 16 * 1024;

/// Time without output after which somebody leaves whose input is over, in milliseconds.
const QUIET_MS: u64 = 500;
/// How long they stay at most while there is output, in milliseconds.
const LATEST_MS: u64 = 5_000;

/// How long somebody who leaves waits for what was typed last, in milliseconds.
const SETTLE_MS: u64 = 1_000;

/// What happened next.
enum Next {
    Called(Call),
    Typed(io::Result<usize>),
    /// Our standard input is over, and the session has all of it.
    Fed(Result<(), CommandError>),
    /// Nothing was shown for long enough after that.
    Quiet,
    Heard(Result<Heard, CommandError>),
}

/// How it goes on: none, it goes on.
type Step = Result<Option<Parted>, CommandError>;

impl Session {
    /// Talks until the connection breaks or somebody goes.
    ///
    /// # Errors
    /// [`CommandError::Disconnected`] when it broke.
    pub(super) async fn talk(&mut self, socket: &mut Socket) -> Result<Parted, CommandError> {
        let mut buffer = vec![0; KEYS_BYTES];
        self.known.painting = self.known.offset.is_none();
        loop {
            // Keys first: a flood of output must not keep anybody from leaving.
            let next = tokio::select! {
                biased;
                call = self.signals.next() => Next::Called(call),
                read = read(&mut self.stdin, &mut buffer), if self.known.greeted => Next::Typed(read),
                Some(fed) = self.feeding.join_next() => Next::Fed(fed.unwrap_or(Ok(()))),
                () = until(self.known.leave_at) => Next::Quiet,
                heard = socket.next() => Next::Heard(heard),
            };
            let step = match next {
                Next::Called(call) => self.called(call, socket).await,
                Next::Typed(Ok(0) | Err(_)) => Ok(Some(Parted::Told(Signal::HUP))),
                Next::Typed(Ok(read)) => self.typed(&buffer[..read], socket).await,
                Next::Fed(fed) => {
                    self.fed(fed);
                    Ok(None)
                }
                Next::Quiet => Ok(Some(Parted::Detached)),
                Next::Heard(Ok(heard)) => self.heard(heard, socket).await,
                Next::Heard(Err(error)) => Err(error),
            };
            if let Some(parted) = step? {
                return Ok(parted);
            }
        }
    }

    /// The terminal has the size again that it had before us.
    pub(super) async fn give_back(&mut self, socket: &mut Socket) {
        let Some(former) = self.known.former.filter(|_| self.known.turn.is_ours()) else {
            return;
        };
        if self.known.size != Some(former) {
            let (cols, rows) = (former.cols, former.rows);
            // The daemon does it too when the connection ends.
            socket.ask(&ClientMessage::Resize { cols, rows }).await;
        }
    }

    async fn heard(&mut self, heard: Heard, socket: &mut Socket) -> Step {
        match heard {
            Heard::Bytes(bytes) => self.shown(&bytes).await,
            Heard::Said(message) => self.said(message, socket).await,
        }
    }

    /// Where the session is somebody else's, the end of our input is no end of theirs: we leave
    /// when what we typed has had its time to show something.
    fn fed(&mut self, fed: Result<(), CommandError>) {
        if let Err(error) = fed {
            crate::report(&error);
        }
        if self.wish.begin == super::Begin::Screen {
            let now = Instant::now();
            let latest = now + Duration::from_millis(LATEST_MS);
            self.known.leave_at = Some((now + Duration::from_millis(QUIET_MS), latest));
        }
    }

    async fn shown(&mut self, bytes: &[u8]) -> Step {
        if let Some((at, latest)) = &mut self.known.leave_at {
            *at = (*latest).min(Instant::now() + Duration::from_millis(QUIET_MS));
        }
        let is_output = !std::mem::take(&mut self.known.painting);
        self.window.show(bytes).await?;
        if let Some(offset) = self.known.offset.as_mut().filter(|_| is_output) {
            *offset += bytes.len() as u64;
        }
        self.known.repainting &= is_output;
        if !self.known.repainting
            && let Some(notice) = self.known.notice.take()
        {
            self.tell(&notice);
        }
        Ok(None)
    }

    async fn said(&mut self, message: ServerMessage, socket: &mut Socket) -> Step {
        match message {
            ServerMessage::Hello(hello) => self.begun(hello, socket).await,
            ServerMessage::Lease { holder, yours } => self.leased(holder, yours, socket).await,
            ServerMessage::Resized { size } => self.known.size = Some(size),
            ServerMessage::Gap {
                from,
                to,
                lost_bytes,
            } => {
                let gap = GapBody {
                    from,
                    to,
                    lost_bytes,
                };
                self.gap(gap);
            }
            ServerMessage::Paint { offset } => {
                self.known.offset = Some(offset);
                (self.known.painting, self.known.covered) = (true, false);
            }
            ServerMessage::Refused { message, take, .. } => {
                let lost = if take { self.known.turn.refused() } else { 0 };
                self.tell(&not_sent(message, lost));
            }
            ServerMessage::Exit(info) => return Ok(Some(Parted::Exit(info))),
        }
        Ok(None)
    }

    fn gap(&mut self, gap: GapBody) {
        self.known.offset = Some(gap.to);
        self.known.missing.add(gap);
        if self.wish.begin == super::Begin::Start || !self.window.is_shown() {
            let notice = format!("{} bytes of output are left out", gap.bytes());
            self.window.notice(&notice);
        } else if gap.lost_bytes > 0 {
            self.tell(&format!("{} bytes of output were lost", gap.lost_bytes));
        }
    }

    async fn begun(&mut self, hello: Hello, socket: &mut Socket) {
        self.known.attempts.reset();
        self.known.greeted = true;
        self.known.offset = Some(hello.offset);
        self.known.size = Some(hello.size);
        self.known.former.get_or_insert(hello.size);
        self.known.holder = hello.holder;
        if !self.known.turn.is_wanted() {
            return;
        }
        match &self.known.holder {
            Some(holder) if !self.wish.take_over => {
                let offer = self.wish.key.offer(&["t takes over"]);
                let message = format!("{holder} types{offer}");
                self.known.turn.give_up();
                self.known.notice = Some(not_sent(message, self.known.turn.forget()));
            }
            Some(_) | None => self.take(self.wish.take_over, socket).await,
        }
    }

    async fn take(&mut self, take_over: bool, socket: &mut Socket) {
        self.known.turn.ask();
        let name = own_name();
        socket.ask(&ClientMessage::Take { take_over, name }).await;
    }

    async fn leased(&mut self, holder: Option<String>, yours: bool, socket: &mut Socket) {
        self.known.holder = holder;
        match self.known.turn.leased(yours) {
            Leased::Ours(keys) => {
                self.fit(socket).await;
                return self.type_in(keys, socket).await;
            }
            Leased::Unanswered => return,
            Leased::Theirs => {}
        }
        // Who only watches, or cannot type here, does not care who does.
        if self.wish.watch || self.stdin.is_none() {
            return;
        }
        let key = &self.wish.key;
        if let Some(holder) = self.known.holder.clone() {
            let offer = key.offer(&["t takes over"]);
            self.tell(&format!("{holder} types now{offer}"));
        } else {
            let offer = key.offer(&["t does"]);
            self.tell(&format!("nobody types now{offer}"));
        }
    }

    /// While we type, the terminal has the size of our window.
    async fn fit(&mut self, socket: &mut Socket) {
        let Some(size) = window_size().filter(|&size| self.known.size != Some(size)) else {
            return;
        };
        let (cols, rows) = (size.cols, size.rows);
        socket.ask(&ClientMessage::Resize { cols, rows }).await;
        self.repaint(socket).await;
    }

    async fn called(&mut self, call: Call, socket: &mut Socket) -> Step {
        match call {
            Call::Leave(signal) => return Ok(Some(Parted::Told(signal))),
            Call::Suspend => self.suspend(socket).await,
            Call::Resume => {
                self.window.again();
                self.repaint(socket).await;
            }
            Call::Resized => {
                if let Some(size) = window_size().filter(|_| self.known.turn.is_ours()) {
                    let (cols, rows) = (size.cols, size.rows);
                    socket.ask(&ClientMessage::Resize { cols, rows }).await;
                }
            }
        }
        Ok(None)
    }

    async fn typed(&mut self, bytes: &[u8], socket: &mut Socket) -> Step {
        if std::mem::take(&mut self.known.covered) {
            self.repaint(socket).await;
        }
        for want in self.keys.take(bytes) {
            match want {
                Want::Type(keys) => self.type_in(keys, socket).await,
                Want::Detach => {
                    let end = self.settle(socket).await?;
                    return Ok(Some(end.unwrap_or(Parted::Detached)));
                }
                Want::TakeOver => self.take(true, socket).await,
                Want::HandBack => {
                    if let Some(end) = self.settle(socket).await? {
                        return Ok(Some(end));
                    }
                    self.known.turn.give_up();
                    socket.ask(&ClientMessage::HandBack).await;
                }
                Want::Repaint => {
                    self.repaint(socket).await;
                }
                Want::Suspend => {
                    if let Some(end) = self.settle(socket).await? {
                        return Ok(Some(end));
                    }
                    self.suspend(socket).await;
                }
                Want::Help => self.help(),
            }
        }
        Ok(None)
    }

    async fn type_in(&mut self, keys: Vec<u8>, socket: &mut Socket) {
        if keys.is_empty() {
            return;
        }
        let left_out = match self.known.turn.type_in(keys) {
            Typed::Send(keys) if socket.keys(keys.clone()).await => 0,
            // For the next connection.
            Typed::Send(keys) => self.known.turn.hold(&keys),
            Typed::Held { left_out } => left_out,
            Typed::Watching => return self.only_watching(),
        };
        if left_out > 0 {
            self.tell(&not_sent("nobody takes them".to_owned(), left_out));
        }
    }

    fn only_watching(&mut self) {
        let offer = self.wish.key.offer(&["t takes over", "d leaves"]);
        let who = self.known.holder.as_deref().unwrap_or("nobody");
        self.tell(&format!("you only watch, {who} types{offer}"));
    }

    /// Waits a little for the answer that keys wait for: what was typed before somebody leaves
    /// is typed.
    async fn settle(&mut self, socket: &mut Socket) -> Step {
        let limit = Instant::now() + Duration::from_millis(SETTLE_MS);
        while self.known.turn.is_awaited() {
            // Of a broken connection is heard again.
            let Ok(Ok(heard)) = timeout_at(limit, socket.next()).await else {
                break;
            };
            if let Some(end) = self.heard(heard, socket).await? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    async fn suspend(&mut self, socket: &mut Socket) {
        let typed = self.known.turn.is_wanted();
        if typed {
            socket.ask(&ClientMessage::HandBack).await;
        }
        self.window.leave();
        crate::tell("stopped; `fg` goes on");
        stop_here();
        self.window.enter();
        if typed {
            self.take(false, socket).await;
        }
        self.repaint(socket).await;
    }

    fn help(&mut self) {
        let key = self.wish.key.name();
        self.tell(&format!(
            "{key} then: d detach, t take over, h hand back, r redraw, z suspend, {key} types it"
        ));
    }

    async fn repaint(&mut self, socket: &mut Socket) {
        if !self.window.is_shown() {
            // A painting stands for output that is left out; a pipe is given all of it.
            return;
        }
        self.known.repainting = socket.ask(&ClientMessage::Repaint).await;
    }

    /// Tells the person something, on top of a painting that is on its way.
    fn tell(&mut self, message: &str) {
        if self.known.repainting {
            self.known.notice = Some(message.to_owned());
            return;
        }
        self.window.notice(message);
        self.known.covered = self.window.is_shown();
    }
}

/// A message, and what became of the keys that waited.
fn not_sent(message: String, keys: usize) -> String {
    if keys == 0 {
        return message;
    }
    format!("{message}; {keys} bytes typed meanwhile were not sent")
}

async fn until(leave_at: Option<(Instant, Instant)>) {
    match leave_at {
        Some((at, _)) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn read(stdin: &mut Option<Stdin>, buffer: &mut [u8]) -> io::Result<usize> {
    match stdin {
        Some(stdin) => stdin.read(buffer).await,
        None => std::future::pending().await,
    }
}
