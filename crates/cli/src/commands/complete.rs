//! `ostler __complete`: candidates for a word on the command line, called by completion scripts.

use std::time::Duration;

use clap::{Arg, Args, Command, CommandFactory as _};
use hyper::Method;
use ostler_api::ServicesBody;

use super::args::Cli;
use super::id_alias::{LAST, LAST_SERVICE, list_executions};
use super::start::resolve_directory;
use crate::client::{DaemonClient, RequestBody};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::output::{StdoutWriter, StyledLine};

/// The most candidates.
const LIMIT: &str = "100";
/// The most characters of a candidate's description.
const ABOUT_CHARS: usize = 40;
/// The longest wait after the Tab key.
const TIMEOUT: Duration = Duration::from_secs(2);

/// What `__complete` takes.
#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    /// The words after `ostler`; the last one is being typed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// The kind of word to complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CompletionKind {
    /// Ids of executions with this status, or any.
    Ids(Option<&'static str>),
    /// Names of services.
    Services,
}

/// Prints each candidate, a tab and its description; nothing where the script itself completes, no
/// daemon runs or it does not respond.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn run(context: &CliContext, args: &CompleteArgs) -> CommandResult {
    let Some((typed, before)) = args.words.split_last() else {
        return Ok(0);
    };
    let Some(kind) = completion_kind(before).filter(|_| !typed.starts_with('-')) else {
        return Ok(0);
    };
    let client = context.running_daemon_client();
    let words = block_on(async {
        let result = tokio::time::timeout(TIMEOUT, completions(&client, kind, typed)).await;
        Ok(result.ok().and_then(Result::ok).unwrap_or_default())
    })?;
    let mut out = StdoutWriter::new();
    for (word, about) in words.iter().filter(|(word, _)| word.starts_with(typed)) {
        out.write_line_part(word)?;
        out.write_raw(b"\t")?;
        out.write_line(StyledLine::from(about).shortened(ABOUT_CHARS))?;
    }
    out.flush()?;
    Ok(0)
}

type Completions = Vec<(String, String)>;

async fn completions(
    client: &DaemonClient,
    kind: CompletionKind,
    typed: &str,
) -> Result<Completions, CommandError> {
    match kind {
        CompletionKind::Services => service_completions(client).await,
        CompletionKind::Ids(_) if typed.starts_with('@') => {
            let of = |what: &str| format!("the newest {what}");
            Ok(vec![
                (LAST.to_owned(), of("execution")),
                (LAST_SERVICE.to_owned(), of("service")),
            ])
        }
        CompletionKind::Ids(status) => {
            let status = status.map(|status| ("status", status));
            let query = [("limit", LIMIT), ("id", typed)];
            // An empty prefix matches all.
            let query = query.into_iter().filter(|(_, value)| !value.is_empty());
            let query: Vec<_> = query.chain(status).collect();
            let list = list_executions(client, &query).await?;
            let words = list.executions.into_iter();
            Ok(words.map(|info| (info.id, info.command)).collect())
        }
    }
}

async fn service_completions(client: &DaemonClient) -> Result<Completions, CommandError> {
    let cwd = resolve_directory(None)?;
    let cwd: String = form_urlencoded::byte_serialize(cwd.as_bytes()).collect();
    let path = format!("/api/v1/services?limit={LIMIT}&cwd={cwd}");
    let list: ServicesBody = client.call(Method::GET, &path, RequestBody::None).await?;
    let words = list.services.into_iter();
    Ok(words.map(|it| (it.name, it.status)).collect())
}

/// The kind of word that may follow these words.
fn completion_kind(before: &[String]) -> Option<CompletionKind> {
    let mut root = Cli::command();
    root.build();
    let mut path = Vec::new();
    let (mut verb, mut positionals, mut only_positionals) = (&root, 0, false);
    let mut words = before.iter();
    while let Some(word) = words.next() {
        if only_positionals || !word.starts_with('-') || word == "-" {
            if !verb.has_subcommands() {
                positionals += 1;
                continue;
            }
            verb = verb.find_subcommand(word)?;
            path.push(verb.get_name());
        } else if word == "--" {
            only_positionals = true;
        } else if takes_next(verb, word) {
            // Without a next word, the value of the flag is being typed.
            words.next()?;
        }
    }
    let value_name = positional_name(verb, positionals)?;
    match (&path[..], value_name) {
        (["service", ..], "NAME" | "ID") => Some(CompletionKind::Services),
        (["approve", ..], _) => None,
        ([verb], "ID") => Some(CompletionKind::Ids(status(verb))),
        _ => None,
    }
}

/// The name of the positional argument at this index.
fn positional_name(verb: &Command, at: usize) -> Option<&str> {
    let positionals: Vec<&Arg> = verb.get_positionals().collect();
    let last = positionals.last().filter(|last| {
        let values = last.get_num_args();
        values.is_some_and(|values| values.max_values() > 1)
    });
    let arg = positionals.get(at).or(last)?;
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

/// The status of the executions that a verb applies to.
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
        let kind_of = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            completion_kind(&words)
        };
        let any = Some(CompletionKind::Ids(None));
        assert_eq!(kind_of("logs"), any);
        assert_eq!(kind_of("logs -n 5"), any);
        assert_eq!(kind_of("logs -n"), None);
        assert_eq!(kind_of("logs k3v9x0qa"), None);
        assert_eq!(kind_of("--state-dir /x logs --no-time"), any);
        assert_eq!(kind_of("rm k3v9x0qa"), any);
        assert_eq!(
            kind_of("stop --"),
            Some(CompletionKind::Ids(Some("running")))
        );
        assert_eq!(kind_of("service stop"), Some(CompletionKind::Services));
        assert_eq!(kind_of("svc restart web"), Some(CompletionKind::Services));
        for line in [
            "",
            "run",
            "service",
            "approve",
            "nonsense",
            "logs --state-dir",
        ] {
            assert_eq!(kind_of(line), None, "{line}");
        }
    }
}
