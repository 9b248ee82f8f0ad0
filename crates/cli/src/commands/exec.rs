//! `ostler exec`.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use clap::Args;
use hyper::Method;
use ostler_api::{
    ExecutionBody, GapBody, PromptBody, ShellRunBody, ShellRunOutcomeBody, ShellRunResponse,
};
use ostler_model::duration::as_millis;
use ostler_model::{Cursor, ErrorCode, InputId};
use ostler_render::clean;
use tokio::signal::unix::{SignalKind, signal};

use super::output_tail::{OutputPiece, OutputTail, TailEvent, TailQuery};
use super::{ids, value_parsers};
use crate::client::{DaemonClient, RequestBody};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::executions::end;
use crate::missing_output::{LossScope, MissingOutput};
use crate::output::{StdoutWriter, Style};

/// The exit code if the exit status of the command is unknown.
const EXIT_STATUS_UNKNOWN: u8 = 125;

/// The exit code if the outcome of the command is unknown.
const EXIT_OUTCOME_UNKNOWN: u8 = 75;

/// The exit code of a shell after SIGINT: 128 + SIGINT.
const EXIT_INTERRUPTED: u8 = 130;

/// The exit codes besides those of the command.
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
  130  this client was interrupted (ctrl-c) while it waited; the command goes on
Where the shell itself ended, its exit code.";

/// What `exec` takes.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ExecArgs {
    /// Which shell session
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// At most this long, for example 30s; then the exit code is 75 and it goes on running
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = value_parsers::duration)]
    timeout: Option<Duration>,
    /// The command, as it would be typed: words are joined by spaces; one word may be a script
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs a command in a running shell; prints exactly its output.
///
/// # Errors
/// When it cannot be run there, or has not ended.
pub(crate) fn run(context: &CliContext, args: ExecArgs) -> CommandResult {
    let script = join_words(args.command)?;
    let client = context.client();
    block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())
            .map_err(|error| CommandError::daemon(format!("no signal handler: {error}")))?;
        let run = tokio::select! {
            run = run_in_shell(&client, &args.id, script, args.timeout) => run?,
            _ = interrupt.recv() => return Ok(report_interrupted(&args.id)),
        };
        // The output of an incomplete command is the shell's continuation prompt.
        if matches!(run.end, ShellRunOutcomeBody::Incomplete) {
            return exit_result(run);
        }
        let missing = print_output(&client, &run).await?;
        let check = missing.check(LossScope::Retained, &run.info);
        let code = exit_result(run)?;
        check.map(|()| code)
    })
}

/// Says that the command goes on without this client; the exit code of one that was interrupted.
fn report_interrupted(id: &str) -> u8 {
    crate::print_note(&format!(
        "the command goes on in {id}; `ostler send {id} --key ctrl-c` interrupts it"
    ));
    EXIT_INTERRUPTED
}

/// Has the command typed once, and waits for its end, across daemon restarts.
async fn run_in_shell(
    client: &DaemonClient,
    id: &str,
    script: String,
    timeout: Option<Duration>,
) -> Result<ShellRunResponse, CommandError> {
    let path = ids::path(id, "/shell/run");
    let start = Instant::now();
    let mut body = ShellRunBody {
        script,
        at_most_ms: None,
        id: Some(InputId::mint()),
        again: false,
    };
    let result = client.call_retrying(Method::POST, &path, |again| {
        let left = timeout.map(|timeout| timeout.saturating_sub(start.elapsed()));
        body.at_most_ms = left.map(as_millis);
        body.again = again;
        RequestBody::json(&body)
    });
    match result.await {
        Ok(ran) => Ok(ran),
        Err(error) if body.again && error.code() == Some(ErrorCode::Initialization) => {
            Err(outcome_unknown(id, &error))
        }
        Err(error) => Err(ids::suggest(client, id, error).await),
    }
}

/// The error if the daemon died while the command ran, and no other one responds.
fn outcome_unknown(id: &str, error: &CommandError) -> CommandError {
    let reason = error.message().unwrap_or("the connection broke");
    CommandError::daemon(format!(
        "the daemon died while the command was in {id}: {reason}; whether it runs there, or ended \
         and how, is not known"
    ))
    .with_hint(format!("look at it with `ostler screen {id}`"))
    .with_exit(EXIT_OUTCOME_UNKNOWN)
}

fn join_words(words: Vec<OsString>) -> Result<String, CommandError> {
    let words: Result<Vec<String>, OsString> =
        words.into_iter().map(OsString::into_string).collect();
    words.map(|words| words.join(" ")).map_err(|word| {
        let word = word.to_string_lossy().into_owned();
        CommandError::value(format!("'{word}' is no UTF-8; a command is typed as text"))
    })
}

/// Prints its output: verbatim to a terminal, as plain text elsewhere.
async fn print_output(
    client: &DaemonClient,
    run: &ShellRunResponse,
) -> Result<MissingOutput, CommandError> {
    let from = Cursor {
        offset: run.from,
        event: 0,
    };
    let mut output_tail = OutputTail::new(client.clone(), &run.info.id, TailQuery::default(), from);
    let mut printer = ShellPrinter::new();
    let mut remaining = run.to.saturating_sub(run.from);
    let mut missing = MissingOutput::default();
    while remaining > 0 {
        match output_tail.next().await? {
            TailEvent::Output(OutputPiece::Bytes(_, mut bytes)) => {
                bytes.truncate(usize::try_from(remaining).unwrap_or(usize::MAX));
                remaining -= bytes.len() as u64;
                printer.print(&bytes)?;
            }
            TailEvent::Output(OutputPiece::Gap(gap)) => {
                let gap = GapBody {
                    to: gap.to.min(run.to),
                    lost_bytes: gap.lost_bytes.min(remaining),
                    ..gap
                };
                remaining -= gap.bytes().min(remaining);
                missing.report_gap(gap);
            }
            TailEvent::End(_) => break,
        }
    }
    let ends_with_newline = !matches!(run.end, ShellRunOutcomeBody::Finished { .. });
    printer.finish(ends_with_newline)?;
    Ok(missing)
}

/// Prints line by line, with control sequences removed.
struct ShellPrinter {
    out: StdoutWriter,
    plain: bool,
    line: Vec<u8>,
    /// Whether the last line printed has no newline yet.
    is_open: bool,
}

impl ShellPrinter {
    fn new() -> Self {
        Self {
            out: StdoutWriter::new(),
            plain: !Style::is_stdout_terminal(),
            line: Vec::new(),
            is_open: false,
        }
    }

    fn print(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        self.is_open = bytes.last().map_or(self.is_open, |&last| last != b'\n');
        if !self.plain {
            return self.out.write_raw(bytes);
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
        self.out.write_raw(clean(&text).as_bytes())?;
        if ended {
            self.out.write_raw(b"\n")
        } else {
            Ok(())
        }
    }

    /// Prints the rest; on a terminal, later messages begin on a line of their own.
    fn finish(mut self, ends_with_newline: bool) -> Result<(), CommandError> {
        if !self.line.is_empty() {
            self.line()?;
        }
        if ends_with_newline && self.is_open && !self.plain {
            self.out.write_raw(b"\n")?;
        }
        self.out.flush()
    }
}

fn exit_result(run: ShellRunResponse) -> CommandResult {
    let id = run.info.id.clone();
    match run.end {
        ShellRunOutcomeBody::Finished { status, .. } => Ok(u8::try_from(status).unwrap_or(EXIT_STATUS_UNKNOWN)),
        ShellRunOutcomeBody::Prompt { prompt } => Err(prompt_error(&id, &prompt)),
        ShellRunOutcomeBody::Incomplete => Err(CommandError::value(format!(
            "the shell of {id} wants more: the command is not complete"
        ))
        .with_hint(format!(
            "type the rest with `ostler send {id} …`, or drop it with `ostler send {id} --key ctrl-c`"
        ))),
        ShellRunOutcomeBody::Silent => {
            crate::print_note(&format!(
                "the shell of {id} takes commands again but did not tell how this one ended: its \
                 prompt was changed"
            ));
            Ok(EXIT_STATUS_UNKNOWN)
        }
        ShellRunOutcomeBody::ShellEnded => Ok(shell_ended(&run.info)),
        ShellRunOutcomeBody::TimedOut => Err(CommandError::new(
            ErrorCode::ProcessTimeout,
            format!("the command still runs in {id}"),
        )
        .with_hint(format!(
            "look at it with `ostler screen {id}`, interrupt it with `ostler send {id} --key ctrl-c`"
        ))),
    }
}

fn prompt_error(id: &str, prompt: &PromptBody) -> CommandError {
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

fn shell_ended(info: &ExecutionBody) -> u8 {
    if info.end_time.is_none() {
        // `exec` in a shell replaces it with another program.
        let id = &info.id;
        crate::print_note(&format!(
            "another program took the place of the shell of {id}, and runs; `ostler screen {id}` shows it"
        ));
        return EXIT_STATUS_UNKNOWN;
    }
    crate::print_note(&format!("the shell of {} ended", info.id));
    end::exit_code(info)
}
