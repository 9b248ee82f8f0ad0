//! `ostler kill`.

use std::ffi::OsString;

use clap::Args;
use hyper::Method;
use ostler_api::SignalBody;
use ostler_model::Signal;

use super::{ids, value_parsers};
use crate::client::{DaemonClient, RequestBody};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};

/// What `kill` takes.
#[derive(Debug, Args)]
pub(crate) struct KillArgs {
    /// Which signal, by name or number; -KILL, -SIGKILL and -9 are taken as well
    #[arg(short, long, value_name = "SIGNAL", default_value = "TERM", value_parser = value_parsers::SIGNAL, hide_possible_values = true)]
    signal: Signal,
    /// Which executions
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

/// The words of a command line in which the signal of `kill` is written as kill(1) has it, `-9` or
/// `-KILL`, with the option for it.
pub(crate) fn with_signal_option(mut words: Vec<OsString>) -> Vec<OsString> {
    let Some(verb) = verb_index(&words).filter(|&at| words[at] == "kill") else {
        return words;
    };
    let mut is_value = false;
    for word in &mut words[verb + 1..] {
        let text = word.to_str().unwrap_or_default();
        if text == "--" {
            break;
        }
        let signal = text.strip_prefix('-').filter(|_| !is_value);
        if let Some(Ok(signal)) = signal.map(str::parse::<Signal>) {
            *word = format!("--signal={}", signal.number()).into();
            break;
        }
        is_value = matches!(text, "-s" | "--signal");
    }
    words
}

/// The index of the verb: the first word that is neither an option nor the value of one.
fn verb_index(words: &[OsString]) -> Option<usize> {
    const WITH_VALUE: [&str; 4] = ["--state-dir", "--runtime-dir", "--config", "--set"];
    let mut is_value = false;
    words.iter().enumerate().skip(1).find_map(|(at, word)| {
        let is_verb = !is_value && !word.as_encoded_bytes().starts_with(b"-");
        is_value = !is_value && WITH_VALUE.iter().any(|option| word == option);
        is_verb.then_some(at)
    })
}

/// Sends the signal to each execution's process group.
///
/// # Errors
/// When the daemon cannot be reached.
pub(crate) fn run(context: &CliContext, args: &KillArgs) -> CommandResult {
    let client = context.client();
    block_on(ids::for_each(&client, &args.ids, |id| {
        let client = &client;
        async move { send(client, &id, args.signal).await }
    }))
}

/// Sends one signal to one execution.
///
/// # Errors
/// As the daemon responds.
pub(crate) async fn send(
    client: &DaemonClient,
    id: &str,
    signal: Signal,
) -> Result<(), CommandError> {
    let body = RequestBody::json(&SignalBody { signal })?;
    let path = ids::path(id, "/signal");
    client.call_bytes(Method::POST, &path, body).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_written_as_kill_has_it() {
        let rewritten = |line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            let words = with_signal_option(words);
            let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
            words.join(" ")
        };
        assert_eq!(rewritten("ostler kill -9 x"), "ostler kill --signal=9 x");
        assert_eq!(
            rewritten("ostler --set kill kill x -SIGKILL"),
            "ostler --set kill kill x --signal=9"
        );
        for other in [
            "ostler kill -s 9 x",
            "ostler kill -s -9 x",
            "ostler kill --help",
            "ostler kill -- -9",
            "ostler run kill -9 1",
            "ostler --config kill run kill -9 1",
            "ostler kill -x x",
            "ostler",
        ] {
            assert_eq!(rewritten(other), other);
        }
    }
}
