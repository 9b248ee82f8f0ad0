//! `ostler service why`.

use clap::Args;
use ostler_api::ServiceDiagnosisBody;
use ostler_render::clean;

use super::client::{AllWorkspacesArgs, service_client};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::output::{StdoutWriter, Style, line, print_json};

/// What `why` takes.
#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// Which service
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    workspaces: AllWorkspacesArgs,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Explains the state of a service.
///
/// # Errors
/// When the service is unknown, or the daemon cannot be reached.
pub(super) fn run(context: &CliContext, args: &WhyArgs) -> CommandResult {
    let client = service_client(context, None)?.with_workspaces(args.workspaces);
    let diagnosis: ServiceDiagnosisBody = block_on(client.get(&args.name, "/why"))?;
    if args.json {
        print_json(&diagnosis)?;
    } else {
        print_why(&diagnosis, Style::of_stdout(&context.env))?;
    }
    Ok(0)
}

fn print_why(diagnosis: &ServiceDiagnosisBody, style: Style) -> Result<(), CommandError> {
    let mut out = StdoutWriter::new();
    let status = style.service(&diagnosis.status);
    let because = clean(&diagnosis.because);
    out.write_line(line![&diagnosis.name, " is ", status, ": ", because])?;
    for line in &diagnosis.evidence {
        out.write_line(format!("  {}", clean(line)))?;
    }
    for hint in &diagnosis.hints {
        out.write_line(format!("hint: {}", clean(hint)))?;
    }
    out.flush()
}
