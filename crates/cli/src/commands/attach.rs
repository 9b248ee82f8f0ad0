//! `ostler attach`.

use clap::Args;

use crate::attach::{self, AttachOptions, DETACH_KEY, DetachKey, InitialView};
use crate::context::{CliContext, block_on};
use crate::error::CommandResult;

/// What `attach` takes.
#[derive(Debug, Args)]
#[command(after_help = MENU)]
pub(crate) struct AttachArgs {
    /// Which session
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Only watch
    #[arg(long, conflicts_with = "take_over")]
    watch: bool,
    /// Type also when somebody else does: they watch from then on
    #[arg(long)]
    take_over: bool,
    #[command(flatten)]
    key: KeyArgs,
}

/// The detach key, of every verb that attaches.
#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// The key that begins a command to ostler itself; none: there is none
    #[arg(long, value_name = "KEY", default_value = DETACH_KEY)]
    pub(crate) detach_key: DetachKey,
}

/// What can be typed after the detach key.
pub(crate) const MENU: &str = "\
While attached, ctrl-\\ (or the key of --detach-key) and then
  d  leaves; the session goes on
  t  takes over from whoever types
  h  hands back: others may type
  r  paints the screen anew
  z  stops ostler, as ctrl-z does a command
  ?  shows these; the key itself, typed twice, goes to the session

Without a terminal, standard input is typed into the session as it is and nothing else, and its
output is printed as it comes. At the end of the input ostler leaves, once the session was silent
for half a second, or after five seconds; a command that was started with the same input, as by
`ostler run -t`, gets its end of file instead.";

/// Attaches to a session until it ends, and exits with its exit code; with 0 after a detach.
///
/// # Errors
/// When there is no such session, or no daemon can be reached.
pub(crate) fn run(context: &CliContext, args: AttachArgs) -> CommandResult {
    let options = AttachOptions {
        id: args.id,
        watch: args.watch,
        take_over: args.take_over,
        key: args.key.detach_key,
        initial_view: InitialView::Screen,
    };
    block_on(attach::attach(context.client(), options))
}
