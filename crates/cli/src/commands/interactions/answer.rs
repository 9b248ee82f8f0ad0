//! `ostler interactions answer` and `cancel`.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _};

use hyper::Method;
use ostler_api::{AnswerBody, CancelBody, InteractionBody};
use rustix::termios::{self, LocalModes, OptionalActions, Termios};
use tokio::io::AsyncReadExt as _;
use tokio::signal::unix::{SignalKind, signal};

use super::args::{InteractionAnswerArgs, InteractionCancelArgs};
use super::list::{asker, kind, remaining};
use crate::attach::is_stdin_terminal;
use crate::batch::BatchExit;
use crate::client::{DaemonClient, RequestBody};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::executions::ids::name_subject;
use crate::output::{self, StdoutWriter, StyledLine};

/// The most bytes that are read of an answer: more than the daemon accepts.
const READ_BYTES: u64 = 8 * 1024;
/// The exit code after ctrl-c at the prompt: 128 + SIGINT.
const EXIT_INTERRUPTED: u8 = 130;

/// Answers a question.
///
/// # Errors
/// When it is unknown or no longer open, or the answer is not accepted.
pub(super) fn run(context: &CliContext, args: &InteractionAnswerArgs) -> CommandResult {
    let client = context.client();
    block_on(async {
        let path = path(&args.id, "");
        let question: InteractionBody = client.call(Method::GET, &path, RequestBody::None).await?;
        let value = match &args.text {
            Some(_) if question.secret => return Err(secret_in_argument(&question.id)),
            Some(text) => text.clone(),
            // How it ended is the daemon's to tell.
            None if question.end.is_some() => String::new(),
            None if is_stdin_terminal() => match prompt(&question).await? {
                Some(value) => value,
                None => return Ok(EXIT_INTERRUPTED),
            },
            None => read_stdin().await?,
        };
        send(&client, &args.id, "answer", &AnswerBody { value }).await?;
        Ok(0)
    })
}

/// Cancels questions; continues after an error, and returns the first error's exit code.
///
/// # Errors
/// When standard output cannot be written.
pub(super) fn cancel(context: &CliContext, args: &InteractionCancelArgs) -> CommandResult {
    let client = context.client();
    block_on(async {
        let mut exit = BatchExit::default();
        for id in &args.ids {
            let reason = args.reason.clone();
            let cancelled = send(&client, id, "cancel", &CancelBody { reason }).await;
            exit.record(cancelled.map_err(|error| name_subject(error, id, &args.ids)))?;
        }
        Ok(exit.code())
    })
}

/// Sends an answer or a cancellation, and prints what became of the question.
async fn send<T: serde::Serialize>(
    client: &DaemonClient,
    id: &str,
    action: &str,
    body: &T,
) -> Result<(), CommandError> {
    let path = path(id, &format!("/{action}"));
    let body = RequestBody::json(body)?;
    let ended: InteractionBody = client.call(Method::POST, &path, body).await?;
    let mut out = StdoutWriter::new();
    let text = ended.end.map_or(ended.status, |end| end.text);
    out.write_line(format!("{} {text}", ended.id))?;
    out.flush()
}

fn path(id: &str, action: &str) -> String {
    let id: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
    format!("/api/v1/interactions/{id}{action}")
}

fn secret_in_argument(id: &str) -> CommandError {
    let message = format!("{id} asks for a secret, and others could read an argument");
    CommandError::value(message)
        .with_hint("leave TEXT out: it is typed unseen, or read from standard input")
}

/// The answer on standard input, without its line end.
async fn read_stdin() -> Result<String, CommandError> {
    let mut bytes = Vec::new();
    let mut stdin = tokio::io::stdin().take(READ_BYTES);
    let read = stdin.read_to_end(&mut bytes).await;
    read.map_err(|error| cannot_read(&error))?;
    answer_text(bytes)
}

fn cannot_read(error: &io::Error) -> CommandError {
    CommandError::value(format!("the answer cannot be read: {error}"))
}

/// The answer that was read, without its line end.
fn answer_text(bytes: Vec<u8>) -> Result<String, CommandError> {
    let mut text = String::from_utf8(bytes)
        .map_err(|_| CommandError::value("the answer is not UTF-8; allowed: text in UTF-8"))?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

/// Shows the question at the terminal and reads the answer; none after ctrl-c, and after a signal that
/// ends this process.
async fn prompt(question: &InteractionBody) -> Result<Option<String>, CommandError> {
    let opened = OpenOptions::new().read(true).write(true).open("/dev/tty");
    let terminal = opened.map_err(|error| cannot_read(&error))?;
    let left = question.remaining_ms.map(remaining).unwrap_or_default();
    let mut lines = vec![StyledLine::from(format!(
        "{}, {} from {}, {left} left",
        question.id,
        kind(question),
        asker(question),
    ))];
    lines.extend(question.message.lines().map(StyledLine::from));
    let options = question.options.iter();
    lines.extend(options.map(|option| StyledLine::from(format!("  {option}"))));
    let prompt_text = match &question.default {
        Some(default) => format!("answer [{default}]: "),
        None => "answer: ".to_owned(),
    };
    output::print_prompt(&terminal, &lines, &prompt_text).map_err(|error| cannot_read(&error))?;
    // Before the echo is off: no signal must leave it so.
    let handler = |kind| signal(kind).map_err(|error| cannot_read(&error));
    let mut interrupt = handler(SignalKind::interrupt())?;
    let mut terminate = handler(SignalKind::terminate())?;
    let mut hangup = handler(SignalKind::hangup())?;
    let _hidden = question
        .secret
        .then(|| EchoOff::enter(&terminal))
        .transpose()?;
    let reading = tokio::task::spawn_blocking(move || read_line(&terminal));
    tokio::select! {
        read = reading => {
            let read = read.unwrap_or_else(|error| Err(io::Error::other(error)));
            answer_text(read.map_err(|error| cannot_read(&error))?).map(Some)
        }
        _ = interrupt.recv() => Ok(None),
        _ = terminate.recv() => Ok(None),
        _ = hangup.recv() => Ok(None),
    }
}

fn read_line(terminal: &File) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    BufReader::new(terminal.take(READ_BYTES)).read_until(b'\n', &mut line)?;
    Ok(line)
}

/// A terminal that does not show what is typed, but the line end. Dropping it restores the terminal.
#[derive(Debug)]
struct EchoOff {
    terminal: File,
    before: Termios,
}

impl EchoOff {
    fn enter(terminal: &File) -> Result<Self, CommandError> {
        let enter = || -> io::Result<Self> {
            let terminal = terminal.try_clone()?;
            let before = termios::tcgetattr(&terminal)?;
            let mut hidden = before.clone();
            hidden.local_modes.remove(LocalModes::ECHO);
            hidden.local_modes.insert(LocalModes::ECHONL);
            termios::tcsetattr(&terminal, OptionalActions::Flush, &hidden)?;
            Ok(Self { terminal, before })
        };
        enter().map_err(|error| cannot_read(&error))
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        let restored = termios::tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
        if let Err(error) = restored {
            // A terminal that is gone needs no restoration.
            tracing::debug!(%error, "the terminal stays as it is");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_end_is_not_part_of_the_answer() {
        for (read, expected) in [
            ("yes\n", Some("yes")),
            ("yes\r\n", Some("yes")),
            ("yes", Some("yes")),
            ("two\nlines\n\n", Some("two\nlines\n")),
            ("", Some("")),
        ] {
            let text = answer_text(read.as_bytes().to_vec());
            assert_eq!(text.ok().as_deref(), expected, "{read:?}");
        }
        assert!(answer_text(vec![0xff]).is_err());
    }
}
