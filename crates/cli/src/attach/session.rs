//! From the first connection to the end, over as many daemons as it takes.

use hyper::Method;
use ostler_model::{Signal, TermSize};
use ostler_server::wire::InfoBody;
use tokio::io::Stdin;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::keys::{DetachKey, Keys};
use super::signals::{Call, Signals};
use super::turn::Turn;
use super::window::{Window, is_typed};
use crate::client::{Attempts, Body, Client, Socket, is_leaving};
use crate::commands::{ended, feed, ids, tell_refused};
use crate::error::{CommandError, Outcome};
use crate::loss::{Missing, Wanted};
use crate::output::Style;

/// What a shell adds to the number of the signal that ended a command.
const SIGNAL_EXIT: u8 = 128;

/// How somebody wants to attach.
#[derive(Debug)]
pub(crate) struct Wish {
    /// Which session.
    pub(crate) id: String,
    /// Whether only to watch.
    pub(crate) watch: bool,
    /// Whether to type also when somebody else does.
    pub(crate) take_over: bool,
    /// The key that begins a command to ourselves.
    pub(crate) key: DetachKey,
    /// What is shown first.
    pub(crate) begin: Begin,
}

/// What is shown first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// The screen as it is.
    Screen,
    /// The session's output from its start, for one we have just started.
    Start,
}

impl Begin {
    /// Where in the output that is; none is painted instead.
    const fn offset(self) -> Option<u64> {
        match self {
            Self::Screen => None,
            Self::Start => Some(0),
        }
    }
}

/// Why we went.
#[derive(Debug)]
pub(super) enum Parted {
    /// It ended.
    Exit(Box<InfoBody>),
    /// The person wanted to go.
    Detached,
    /// Somebody or something told us to go.
    Told(Signal),
}

/// A session and our window onto it.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) wish: Wish,
    pub(super) window: Window,
    pub(super) signals: Signals,
    pub(super) keys: Keys,
    /// Our standard input, where somebody types on it.
    pub(super) stdin: Option<Stdin>,
    /// Feeds our standard input to the session, where nobody types on it.
    pub(super) feeding: JoinSet<Result<(), CommandError>>,
    pub(super) known: Known,
    client: Client,
}

/// What we know of the session.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The offset up to which output was shown.
    pub(super) offset: Option<u64>,
    /// Its size now, and before we changed it.
    pub(super) size: Option<TermSize>,
    pub(super) former: Option<TermSize>,
    /// Who types.
    pub(super) holder: Option<String>,
    /// Whether that is us.
    pub(super) turn: Turn,
    /// Whether this connection was greeted; before that, nothing can be typed over it.
    pub(super) greeted: bool,
    /// Whether we asked for a painting that is still to come.
    pub(super) repainting: bool,
    /// What is to be told once the screen is painted.
    pub(super) notice: Option<String>,
    /// Whether a notice covers a part of the screen.
    pub(super) covered: bool,
    /// Whether the next bytes are a painting.
    pub(super) painting: bool,
    /// When to leave, once our input is over: then, unless something is shown before, but at
    /// the later time in any case.
    pub(super) leave_at: Option<(Instant, Instant)>,
    /// Connections that broke in a row.
    pub(super) attempts: Attempts,
    /// Output that was not there any more when it was to be shown.
    pub(super) missing: Missing,
}

/// Attaches until the session ends or somebody goes.
///
/// # Errors
/// When there is no such terminal, no daemon can be reached any more, or our output cannot be
/// written.
pub(crate) async fn attach(client: Client, wish: Wish) -> Outcome {
    let mut signals = Signals::catch()?;
    let id = wish.id.clone();
    let mut attempts = Attempts::new();
    let first = connect_to_any(&client, &wish, None, &mut attempts);
    let socket = tokio::select! {
        socket = first => socket,
        signal = told_to_go(&mut signals) => return Ok(of_signal(signal)),
    };
    let socket = match socket {
        Ok(socket) => socket,
        Err(error) => return Err(ids::suggest(&client, &id, error).await),
    };
    let mut feeding = JoinSet::new();
    if !is_typed() && !wish.watch {
        // The end of our input is that of a command we started; somebody else's goes on.
        let close = wish.begin == Begin::Start;
        feeding.spawn(feed(client.clone(), id.clone(), close));
    }
    let mut session = Session {
        keys: Keys::new(wish.key.clone()),
        window: Window::open(),
        stdin: is_typed().then(tokio::io::stdin),
        feeding,
        known: Known {
            offset: wish.begin.offset(),
            turn: Turn::new(is_typed() && !wish.watch),
            ..Known::default()
        },
        signals,
        wish,
        client,
    };
    let parted = session.follow(socket).await;
    match &parted {
        Ok(Parted::Exit(_)) => session.window.end(),
        Ok(Parted::Detached | Parted::Told(_)) | Err(_) => session.window.leave(),
    }
    let lost = session.known.turn.forget();
    if lost > 0 {
        crate::tell(&format!("{lost} bytes typed here last were not sent"));
    }
    match parted? {
        Parted::Exit(info) => {
            tell_refused(&session.client, &info).await;
            ended(&info, session.known.missing, Wanted::Kept)
        }
        Parted::Detached => {
            crate::tell(&format!("detached; `ostler attach {id}` comes back"));
            session.whole().await
        }
        Parted::Told(signal) => {
            crate::tell(&format!("{id} goes on; `ostler attach {id}` comes back"));
            Ok(of_signal(signal))
        }
    }
}

fn of_signal(signal: Signal) -> u8 {
    SIGNAL_EXIT + u8::try_from(signal.number()).unwrap_or_default()
}

async fn told_to_go(signals: &mut Signals) -> Signal {
    loop {
        match signals.next().await {
            Call::Leave(signal) => return signal,
            Call::Suspend => super::signals::stop_here(),
            Call::Resume | Call::Resized => {}
        }
    }
}

/// Connects; output goes on at `offset` where we were connected before.
async fn connect(
    client: &Client,
    wish: &Wish,
    offset: Option<u64>,
) -> Result<Socket, CommandError> {
    let offset = offset.or(wish.begin.offset());
    // Nobody looks at a pipe: whoever reads it wants every byte.
    let whole = !Style::is_stdout_terminal();
    let mut rest = format!("/terminal?whole={whole}");
    if let Some(offset) = offset {
        rest.push_str(&format!("&offset={offset}"));
    }
    match client.terminal(&ids::path(&wish.id, &rest)).await {
        Ok(socket) => Ok(socket),
        Err(error) => Err(client
            .why_refused(&ids::path(&wish.id, "/screen"), error)
            .await),
    }
}

/// The same, with the next daemon where one dies meanwhile or is about to end.
async fn connect_to_any(
    client: &Client,
    wish: &Wish,
    offset: Option<u64>,
    attempts: &mut Attempts,
) -> Result<Socket, CommandError> {
    loop {
        match connect(client, wish, offset).await {
            Err(error @ CommandError::Disconnected(_)) => attempts.next(error)?,
            Err(error) if is_leaving(&error) => attempts.next(error)?,
            answer => return answer,
        }
    }
}

impl Session {
    /// Follows the session over the deaths of daemons.
    async fn follow(&mut self, mut socket: Socket) -> Result<Parted, CommandError> {
        loop {
            let broken = match self.talk(&mut socket).await {
                Ok(Parted::Exit(info)) => return Ok(Parted::Exit(info)),
                Ok(parted) => {
                    self.give_back(&mut socket).await;
                    socket.close().await;
                    return Ok(parted);
                }
                Err(error @ CommandError::Disconnected(_)) => error,
                Err(error) => return Err(error),
            };
            socket = self.again(broken).await?;
        }
    }

    /// Whether everything was shown that was printed meanwhile: the exit code of who leaves.
    async fn whole(&self) -> Outcome {
        if self.known.missing.missed(Wanted::Kept) > 0 {
            let path = ids::path(&self.wish.id, "");
            let info: InfoBody = self.client.call(Method::GET, &path, Body::None).await?;
            self.known.missing.check(Wanted::Kept, &info)?;
        }
        Ok(0)
    }

    /// Another connection; a daemon is started where none is left.
    async fn again(&mut self, broken: CommandError) -> Result<Socket, CommandError> {
        self.known.turn.broken();
        (self.known.greeted, self.known.repainting) = (false, false);
        self.known.attempts.next(broken)?;
        let (offset, attempts) = (self.known.offset, &mut self.known.attempts);
        connect_to_any(&self.client, &self.wish, offset, attempts).await
    }
}
