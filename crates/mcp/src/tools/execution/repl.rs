//! Interpreters that print nothing without a terminal: hints for an agent that started one that
//! way.

use std::path::Path;

use ostler_engine::{ExecutionInfo, WaitEnd, WaitOutcome};
use ostler_model::{Command, Io, SnapshotRequest, StdinSource};

use crate::tool_call::ToolCall;

/// Characters that make a script more than one command.
const SHELL_METACHARACTERS: &[char] =
    &['|', '&', ';', '<', '>', '(', ')', '$', '`', '\n', '"', '\''];

/// Which arguments make an interpreter run something and exit instead of being interactive.
struct Interpreter {
    names: &'static [&'static str],
    /// With at most this many operands it is interactive.
    operands: usize,
    /// Short options that run something, and those that take a value.
    run_options: &'static str,
}

const LONG_RUN_OPTIONS: &[&str] = &[
    "--command",
    "--eval",
    "--execute",
    "--file",
    "--help",
    "--list",
    "--print",
    "--version",
];

const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        names: &[
            "python", "ipython", "node", "deno", "irb", "ghci", "julia", "lua", "jshell",
        ],
        operands: 0,
        run_options: "cemfpvVh",
    },
    Interpreter {
        names: &["bash", "sh", "dash", "zsh", "fish", "ksh"],
        operands: 0,
        run_options: "c",
    },
    Interpreter {
        names: &["psql"],
        operands: 2,
        run_options: "cfl",
    },
    Interpreter {
        names: &["mysql", "mariadb", "mongosh", "sqlite3"],
        operands: 1,
        run_options: "e",
    },
];

/// A hint for an interpreter that waits at a pipe, or found its input empty, and has printed
/// nothing useful. None without evidence.
pub(in crate::tools) async fn terminal_hint(
    call: ToolCall<'_>,
    waited: &WaitOutcome,
) -> Option<String> {
    let info = &waited.info;
    let Io::Pipes { stdin } = &info.spec.io else {
        return None;
    };
    let name = interactive_name(&info.spec.command)?;
    match (&info.state.ending, stdin) {
        (Some(ending), StdinSource::Empty) if ending.is_success() => Some(format!(
            "its input was empty. To talk to {name} give it a terminal: exec with input \"tty\""
        )),
        (None, StdinSource::Open)
            if info.output_end == 0 && is_reading_input(call, waited).await =>
        {
            Some(format!(
                "{name} reads a pipe, where it prints no prompt. Give it a terminal: exec with input \
             \"tty\""
            ))
        }
        _ => None,
    }
}

/// A note for a program that read its input, waits for more, and has never printed anything.
pub(in crate::tools) fn silence_note(waited: &WaitOutcome) -> Option<String> {
    let is_silent = matches!(waited.end, WaitEnd::Prompt(_)) && waited.info.output_end == 0;
    // Interpreters have a hint already.
    let is_covered = interactive_name(&waited.info.spec.command).is_some();
    (is_silent && !is_covered).then(|| {
        "it has read this and printed nothing. If it should, give it a terminal: exec with input \
         \"tty\""
            .to_owned()
    })
}

/// Whether a process of the tree waits for input.
async fn is_reading_input(call: ToolCall<'_>, waited: &WaitOutcome) -> bool {
    if matches!(waited.end, WaitEnd::Prompt(_)) {
        return true;
    }
    let request = SnapshotRequest {
        foreground: true,
        ..SnapshotRequest::default()
    };
    let ExecutionInfo { id, .. } = &waited.info;
    let snapshot = call
        .engine
        .tree_snapshot(call.caller, &id.short(), request)
        .await;
    let foreground = snapshot.ok().and_then(|seen| seen.foreground);
    foreground.is_some_and(|it| it.reads.is_some() || it.polls)
}

/// The interpreter that a command starts interactively.
fn interactive_name(command: &Command) -> Option<String> {
    let words: Vec<String> = match command {
        Command::Argv { program, args } => std::iter::once(program)
            .chain(args)
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        Command::Shell { script, .. } => {
            let script = script.to_string_lossy();
            let script = script.trim();
            if script.contains(SHELL_METACHARACTERS) {
                return None;
            }
            script.split_whitespace().map(str::to_owned).collect()
        }
    };
    let is_prefix = |word: &&String| *word == "exec" || word.contains('=');
    let mut words = words.iter().skip_while(is_prefix);
    let name = Path::new(words.next()?).file_name()?.to_str()?;
    let plain = name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.');
    let known = |it: &&Interpreter| it.names.contains(&name) || it.names.contains(&plain);
    let program = INTERPRETERS.iter().find(known)?;
    let args: Vec<&str> = words.map(String::as_str).collect();
    is_interactive(program, &args).then(|| name.to_owned())
}

/// Whether no argument names code to run.
fn is_interactive(program: &Interpreter, args: &[&str]) -> bool {
    let is_forced = args.contains(&"-i");
    let mut operands = 0;
    for arg in args {
        if arg.starts_with("--") {
            let name = arg.split('=').next().unwrap_or(arg);
            if LONG_RUN_OPTIONS.contains(&name) {
                return false;
            }
        } else if let Some(letters) = arg.strip_prefix('-') {
            if letters.contains(|it| program.run_options.contains(it)) && !is_forced {
                return false;
            }
        } else {
            operands += 1;
        }
    }
    is_forced || operands <= program.operands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> Command {
        Command::Shell {
            shell: "bash".into(),
            script: text.into(),
        }
    }

    #[test]
    fn interactive_interpreters_are_distinguished_from_scripts() {
        for text in [
            "python3",
            "python3 -q",
            "/usr/bin/python3.11 -i",
            "node",
            "bash -i",
            "bash --norc -i",
            "psql -h localhost -U me",
            "psql mydb",
            "sqlite3 a.db",
            "PYTHONSTARTUP=a python3",
            "exec python3",
            "python3 -i a.py",
        ] {
            assert!(interactive_name(&script(text)).is_some(), "{text}");
        }
        for text in [
            "",
            "python3 a.py",
            "python3 -c 'print(1)'",
            "python3 -m http.server",
            "python3 --version",
            "node app.js",
            "node -e 1",
            "echo 1 | python3",
            "python3 < a.py",
            "bash a.sh",
            "bash -c ls",
            "psql -c 'select 1'",
            "sqlite3 a.db .tables",
            "cat",
            "pythonic",
        ] {
            assert_eq!(interactive_name(&script(text)), None, "{text}");
        }
    }
}
