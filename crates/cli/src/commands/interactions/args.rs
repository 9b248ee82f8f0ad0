//! The verbs of `ostler interactions`.

use clap::{Args, Subcommand};

use super::{answer, list, watch};
use crate::context::CliContext;
use crate::error::CommandResult;

const ANSWER_ABOUT: &str = "\
confirmation: yes or no; choice_selection: one of the options, of a command's menu also its number;
file_selection: the path of a file. An empty answer takes the default. Without TEXT it is read from
standard input; on a terminal the question is shown first, and a secret is typed unseen.";

/// What `interactions` takes.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct InteractionsArgs {
    /// What to do; without it, list them
    #[command(subcommand)]
    verb: Option<InteractionsVerb>,
    #[command(flatten)]
    list: InteractionListArgs,
}

/// The verbs of `interactions`.
#[derive(Debug, Subcommand)]
enum InteractionsVerb {
    /// List the open questions, newest first; the same without a verb
    List(InteractionListArgs),
    /// Answer a question
    Answer(InteractionAnswerArgs),
    /// Give a question up; its command goes on
    Cancel(InteractionCancelArgs),
    /// Show questions as they are opened and end, until ctrl-c
    Watch(InteractionWatchArgs),
}

/// What the list takes.
#[derive(Debug, Args)]
pub(super) struct InteractionListArgs {
    /// Those that ended of late, too
    #[arg(short, long)]
    pub(super) all: bool,
    /// At most so many
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) limit: Option<u32>,
    /// As JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// What `interactions answer` takes.
#[derive(Debug, Args)]
#[command(after_help = ANSWER_ABOUT)]
pub(super) struct InteractionAnswerArgs {
    /// Which
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// The answer; not for secrets, which others could read here
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) text: Option<String>,
}

/// What `interactions cancel` takes.
#[derive(Debug, Args)]
pub(super) struct InteractionCancelArgs {
    /// Which
    #[arg(value_name = "ID", required = true)]
    pub(super) ids: Vec<String>,
    /// Why, for those who wait for the answer
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
}

/// What `interactions watch` takes.
#[derive(Debug, Args)]
pub(super) struct InteractionWatchArgs {
    /// One JSON object per line
    #[arg(long)]
    pub(super) json: bool,
}

/// Runs the verb.
///
/// # Errors
/// When a question is unknown or no longer open, or the daemon cannot be reached.
pub(crate) fn run(context: &CliContext, args: &InteractionsArgs) -> CommandResult {
    match &args.verb {
        None => list::run(context, &args.list),
        Some(InteractionsVerb::List(args)) => list::run(context, args),
        Some(InteractionsVerb::Answer(args)) => answer::run(context, args),
        Some(InteractionsVerb::Cancel(args)) => answer::cancel(context, args),
        Some(InteractionsVerb::Watch(args)) => watch::run(context, args),
    }
}
