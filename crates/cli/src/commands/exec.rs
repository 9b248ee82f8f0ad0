//! `ostler exec`.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use clap::Args;
use hyper::Method;
use ostler_model::{Cursor, ErrorCode, InputId};
use ostler_server::render::clean;
use ostler_server::wire::{
    GapBody, InfoBody, PromptBody, ShellEndBody, ShellRanBody, ShellRunBody,
};

use super::follow::{Event, Piece, Tail};
use super::{follow, ids, parse};
use crate::client::{Body, Client};
use crate::error::{CommandError, Outcome};
use crate::loss::{Missing, Wanted};
use crate::output::{Out, Style};
use crate::setup::{Setup, block_on};

/// What a shell shows when nobody can say how a command ended.
const EXIT_UNTOLD: u8 = 125;

/// Nobody knows what became of the command.
const EXIT_UNKNOWN: u8 = 75;

/// The exit codes besides the command's own.
const EXIT_CODES: &str = "\
What the command prints is printed once it is over; `ostler attach` or `ostler logs --follow` show
it as it comes.

Exits with the command's own code. Otherwise:
  64   the shell wants more of the command: an open quote, a missing 'done'
  66   no such session, or not yours
  71   it asks something, the shell runs something else or has ended, or somebody else types
  75   the time is over and the command goes on; or nobody knows whether it was typed, because
       the daemon was killed and the shell ended too, or no other daemon can be started
  125  it is over, but the shell did not tell how: its prompt was changed
Where the shell itself ended, its exit code.";

/// What `exec` takes.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ExecArgs {
    /// Which shell session
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// At most this long, for example 30s; then the exit code is 75 and it goes on running
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = parse::span)]
    timeout: Option<Duration>,
    /// The command, as it would be typed: words are joined by spaces; one word may be a script
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs a command in a living shell; prints exactly what it printed.
///
/// # Errors
/// When it cannot be run there, or has not ended.
pub(crate) fn run(setup: &Setup, args: ExecArgs) -> Outcome {
    let script = script(args.command)?;
    let client = setup.client();
    block_on(async {
        let ran = ask(&client, &args.id, (script, args.timeout)).await?;
        // What came of an incomplete command is the shell's wish for more.
        if matches!(ran.end, ShellEndBody::Incomplete) {
            return outcome(ran);
        }
        let missing = print(&client, &ran).await?;
        let lost = missing.check(Wanted::Kept, &ran.info);
        let code = outcome(ran)?;
        lost.map(|()| code)
    })
}

/// Has it typed, once, and waits for its end, under as many daemons as it takes.
async fn ask(
    client: &Client,
    id: &str,
    (script, timeout): (String, Option<Duration>),
) -> Result<ShellRanBody, CommandError> {
    let path = ids::path(id, "/shell/run");
    let begun = Instant::now();
    let mut body = ShellRunBody {
        script,
        at_most_ms: None,
        id: Some(InputId::mint()),
        again: false,
    };
    let asked = client.call_again(Method::POST, &path, |again| {
        let left = timeout.map(|timeout| timeout.saturating_sub(begun.elapsed()));
        body.at_most_ms = left.map(parse::millis);
        body.again = again;
        Body::json(&body)
    });
    match asked.await {
        Ok(ran) => Ok(ran),
        Err(error) if body.again && error.code() == Some(ErrorCode::Initialization) => {
            Err(lost(id, &error))
        }
        Err(error) => Err(ids::suggest(client, id, error).await),
    }
}

/// The daemon died while the command ran, and no other one answers.
fn lost(id: &str, error: &CommandError) -> CommandError {
    let what = error.told().unwrap_or("the connection broke");
    CommandError::daemon(format!(
        "the daemon died while the command was in {id}: {what}; whether it runs there, or ended \
         and how, is not known"
    ))
    .with_hint(format!("look at it with `ostler screen {id}`"))
    .with_exit(EXIT_UNKNOWN)
}

fn script(words: Vec<OsString>) -> Result<String, CommandError> {
    let words: Result<Vec<String>, OsString> =
        words.into_iter().map(OsString::into_string).collect();
    words.map(|words| words.join(" ")).map_err(|word| {
        let word = word.to_string_lossy().into_owned();
        CommandError::value(format!("'{word}' is no UTF-8; a command is typed as text"))
    })
}

/// Its output: as it was printed for a terminal, as plain text for everybody else.
async fn print(client: &Client, ran: &ShellRanBody) -> Result<Missing, CommandError> {
    let from = Cursor {
        offset: ran.from,
        event: 0,
    };
    let mut tail = Tail::new(client.clone(), &ran.info.id, String::new(), from);
    let mut printer = Printer::new();
    let mut left = ran.to.saturating_sub(ran.from);
    let mut missing = Missing::default();
    while left > 0 {
        match tail.next().await? {
            Event::Output(Piece::Bytes(_, mut bytes)) => {
                bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                left -= bytes.len() as u64;
                printer.print(&bytes)?;
            }
            Event::Output(Piece::Gap(gap)) => {
                let gap = GapBody {
                    to: gap.to.min(ran.to),
                    lost_bytes: gap.lost_bytes.min(left),
                    ..gap
                };
                left -= gap.bytes().min(left);
                missing.tell(gap);
            }
            Event::End(_) => break,
        }
    }
    let is_told = !matches!(ran.end, ShellEndBody::Finished { .. });
    printer.finish(is_told)?;
    Ok(missing)
}

/// Prints line by line where control sequences are taken out.
struct Printer {
    out: Out,
    plain: bool,
    line: Vec<u8>,
    /// Whether the last line printed has no end.
    is_open: bool,
}

impl Printer {
    fn new() -> Self {
        Self {
            out: Out::new(),
            plain: !Style::is_stdout_terminal(),
            line: Vec::new(),
            is_open: false,
        }
    }

    fn print(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        self.is_open = bytes.last().map_or(self.is_open, |&last| last != b'\n');
        if !self.plain {
            return self.out.raw(bytes);
        }
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.line()?;
            }
        }
        Ok(())
    }

    fn line(&mut self) -> Result<(), CommandError> {
        let mut line = std::mem::take(&mut self.line);
        let ended = line.pop_if(|byte| *byte == b'\n').is_some();
        let _carriage = line.pop_if(|byte| ended && *byte == b'\r');
        let text = String::from_utf8_lossy(&line);
        self.out.raw(clean(&text).as_bytes())?;
        if ended { self.out.raw(b"\n") } else { Ok(()) }
    }

    /// Prints what is left; on a terminal, what we say next has a line of its own.
    fn finish(mut self, is_told: bool) -> Result<(), CommandError> {
        if !self.line.is_empty() {
            self.line()?;
        }
        if is_told && self.is_open && !self.plain {
            self.out.raw(b"\n")?;
        }
        self.out.flush()
    }
}

fn outcome(ran: ShellRanBody) -> Outcome {
    let id = ran.info.id.clone();
    match ran.end {
        ShellEndBody::Finished { status, .. } => Ok(u8::try_from(status).unwrap_or(EXIT_UNTOLD)),
        ShellEndBody::Prompt { prompt } => Err(asks(&id, &prompt)),
        ShellEndBody::Incomplete => Err(CommandError::value(format!(
            "the shell of {id} wants more: the command is not complete"
        ))
        .with_hint(format!(
            "type the rest with `ostler send {id} …`, or drop it with `ostler send {id} --key ctrl-c`"
        ))),
        ShellEndBody::Silent => {
            crate::tell(&format!(
                "the shell of {id} takes commands again but did not tell how this one ended: its \
                 prompt was changed"
            ));
            Ok(EXIT_UNTOLD)
        }
        ShellEndBody::ShellEnded => Ok(shell_ended(&ran.info)),
        ShellEndBody::AtMost => Err(CommandError::new(
            ErrorCode::ProcessTimeout,
            format!("the command still runs in {id}"),
        )
        .with_hint(format!(
            "look at it with `ostler screen {id}`, interrupt it with `ostler send {id} --key ctrl-c`"
        ))),
    }
}

fn asks(id: &str, prompt: &PromptBody) -> CommandError {
    let what = if prompt.secret {
        "a secret"
    } else {
        "an answer"
    };
    let message = format!(
        "the command in {id} waits for {what}{}",
        match prompt.text.trim() {
            "" => String::new(),
            text => format!(": {text}"),
        }
    );
    CommandError::new(ErrorCode::Interaction, message).with_hint(format!(
        "answer with `ostler send {id} TEXT`, or sit down at it with `ostler attach {id}`"
    ))
}

fn shell_ended(info: &InfoBody) -> u8 {
    crate::tell(&format!("the shell of {} ended", info.id));
    follow::exit_code(info)
}
