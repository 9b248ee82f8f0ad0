//! `ostler service why`.

use clap::Args;
use ostler_server::render::clean;
use ostler_server::wire::WhyBody;

use super::ask::{WorkspaceArgs, desk};
use crate::error::{CommandError, Outcome};
use crate::output::{Out, Style, line, print_json};
use crate::setup::{Setup, block_on};

/// What `why` takes.
#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// Which service
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    workspaces: WorkspaceArgs,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Says why a service is where it is.
///
/// # Errors
/// When the service is unknown, or the daemon cannot be asked.
pub(super) fn run(setup: &Setup, args: &WhyArgs) -> Outcome {
    let desk = desk(setup, None)?.over(args.workspaces);
    let why: WhyBody = block_on(desk.get(&args.name, "/why"))?;
    if args.json {
        print_json(&why)?;
    } else {
        print(&why, Style::of_stdout(&setup.env))?;
    }
    Ok(0)
}

fn print(why: &WhyBody, style: Style) -> Result<(), CommandError> {
    let mut out = Out::new();
    let status = style.service(&why.status);
    let because = clean(&why.because);
    out.line(line![&why.name, " is ", status, ": ", because])?;
    for line in &why.evidence {
        out.line(format!("  {}", clean(line)))?;
    }
    for hint in &why.hints {
        out.line(format!("hint: {}", clean(hint)))?;
    }
    out.flush()
}
