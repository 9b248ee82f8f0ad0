//! `ostler completions`.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::error::Outcome;
use crate::output::Out;

/// What `completions` takes.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// For which shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn run(args: &CompletionsArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut crate::args::Cli::command(),
        "ostler",
        &mut script,
    );
    let mut out = Out::new();
    out.raw(&script)?;
    out.flush()?;
    Ok(0)
}
