//! `ostler __complete`: what may stand next on a command line, asked by completion scripts.

use std::time::Duration;

use clap::{Arg, Args, Command, CommandFactory as _};
use hyper::Method;
use ostler_server::wire::ServicesBody;

use super::id_alias::{LAST, LAST_SERVICE, listed};
use super::start::directory;
use crate::args::Cli;
use crate::client::{Body, Client};
use crate::error::{CommandError, Outcome};
use crate::output::{Line, Out};
use crate::setup::{Setup, block_on};

/// Words that are offered at once.
const OFFERED: &str = "100";
/// Characters of what is told of one.
const ABOUT_CHARS: usize = 40;
/// Nobody waits longer than this after the Tab key.
const PATIENCE: Duration = Duration::from_secs(2);

/// What `__complete` takes.
#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    /// The words after `ostler`; the last one is being typed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// What is to be completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Ids of executions of this status, or of any.
    Ids(Option<&'static str>),
    /// Names of services.
    Services,
}

/// Prints each word that may stand there, a tab and what it is; nothing where the script knows
/// better, no daemon runs or it does not answer.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn run(setup: &Setup, args: &CompleteArgs) -> Outcome {
    let Some((typed, before)) = args.words.split_last() else {
        return Ok(0);
    };
    let Some(wanted) = wanted(before).filter(|_| !typed.starts_with('-')) else {
        return Ok(0);
    };
    let client = setup.client_of_running();
    let words = block_on(async {
        let asked = tokio::time::timeout(PATIENCE, words(&client, wanted, typed)).await;
        Ok(asked.ok().and_then(Result::ok).unwrap_or_default())
    })?;
    let mut out = Out::new();
    for (word, about) in words.iter().filter(|(word, _)| word.starts_with(typed)) {
        out.part(word)?;
        out.raw(b"\t")?;
        out.line(Line::from(about).shortened(ABOUT_CHARS))?;
    }
    out.flush()?;
    Ok(0)
}

type Words = Vec<(String, String)>;

async fn words(client: &Client, wanted: Wanted, typed: &str) -> Result<Words, CommandError> {
    match wanted {
        Wanted::Services => services(client).await,
        Wanted::Ids(_) if typed.starts_with('@') => {
            let of = |what: &str| format!("the newest {what}");
            Ok(vec![
                (LAST.to_owned(), of("execution")),
                (LAST_SERVICE.to_owned(), of("service")),
            ])
        }
        Wanted::Ids(status) => {
            let status = status.map(|status| ("status", status));
            let asked = [("limit", OFFERED), ("id", typed)];
            // What begins with nothing is all.
            let asked = asked.into_iter().filter(|(_, value)| !value.is_empty());
            let query: Vec<_> = asked.chain(status).collect();
            let list = listed(client, &query).await?;
            let words = list.executions.into_iter();
            Ok(words.map(|info| (info.id, info.command)).collect())
        }
    }
}

async fn services(client: &Client) -> Result<Words, CommandError> {
    let cwd = directory(None)?;
    let cwd: String = form_urlencoded::byte_serialize(cwd.as_bytes()).collect();
    let path = format!("/api/v1/services?limit={OFFERED}&cwd={cwd}");
    let list: ServicesBody = client.call(Method::GET, &path, Body::None).await?;
    let words = list.services.into_iter();
    Ok(words.map(|it| (it.name, it.status)).collect())
}

/// What may follow these words.
fn wanted(before: &[String]) -> Option<Wanted> {
    let mut root = Cli::command();
    root.build();
    let mut path = Vec::new();
    let (mut verb, mut places, mut only_places) = (&root, 0, false);
    let mut words = before.iter();
    while let Some(word) = words.next() {
        if only_places || !word.starts_with('-') || word == "-" {
            if !verb.has_subcommands() {
                places += 1;
                continue;
            }
            verb = verb.find_subcommand(word)?;
            path.push(verb.get_name());
        } else if word == "--" {
            only_places = true;
        } else if takes_next(verb, word) {
            // Its value: what is typed now where no more follows.
            words.next()?;
        }
    }
    let place = place(verb, places)?;
    match (&path[..], place) {
        (["service", ..], "NAME" | "ID") => Some(Wanted::Services),
        (["approve", ..], _) => None,
        ([verb], "ID") => Some(Wanted::Ids(status(verb))),
        _ => None,
    }
}

/// What is asked for at this place.
fn place(verb: &Command, at: usize) -> Option<&str> {
    let places: Vec<&Arg> = verb.get_positionals().collect();
    let last = places.last().filter(|last| {
        let values = last.get_num_args();
        values.is_some_and(|values| values.max_values() > 1)
    });
    let arg = places.get(at).or(last)?;
    arg.get_value_names()?.first().map(AsRef::as_ref)
}

/// Whether the word after this flag is its value.
fn takes_next(verb: &Command, flag: &str) -> bool {
    let mut args = verb.get_arguments();
    let arg = match flag.strip_prefix("--") {
        Some(long) => args.find(|arg| arg.get_long() == Some(long)),
        None => args.find(|arg| arg.get_short() == flag.chars().last()),
    };
    arg.is_some_and(|arg| arg.get_action().takes_values())
}

/// Of which status the executions are that a verb is for.
fn status(verb: &str) -> Option<&'static str> {
    match verb {
        "resume" => Some("paused"),
        "attach" | "exec" | "send" | "resize" | "stop" | "pause" | "kill" => Some("running"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names_are_offered_where_they_stand() {
        let asked = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            wanted(&words)
        };
        let any = Some(Wanted::Ids(None));
        assert_eq!(asked("logs"), any);
        assert_eq!(asked("logs -n 5"), any);
        assert_eq!(asked("logs -n"), None);
        assert_eq!(asked("logs k3v9x0qa"), None);
        assert_eq!(asked("--state-dir /x logs --no-time"), any);
        assert_eq!(asked("rm k3v9x0qa"), any);
        assert_eq!(asked("stop --"), Some(Wanted::Ids(Some("running"))));
        assert_eq!(asked("service stop"), Some(Wanted::Services));
        assert_eq!(asked("svc restart web"), Some(Wanted::Services));
        for line in [
            "",
            "run",
            "service",
            "approve",
            "nonsense",
            "logs --state-dir",
        ] {
            assert_eq!(asked(line), None, "{line}");
        }
    }
}
