//! `ostler audit`. Reads the files themselves, so it needs no daemon, and a running one may go on.

use clap::{Args, Subcommand};
use jiff::tz::TimeZone;
use ostler_engine::{LEDGER, LEDGER_HEADS};
use ostler_journal::{AuditReport, HeadKey, LedgerReader, ReadError};
use ostler_model::ErrorCode;

use crate::context::CliContext;
use crate::error::{CommandError, CommandResult};
use crate::output::{StdoutWriter, format_time, print_json};

/// The exit code where something was changed.
const CHANGED: u8 = 1;

const ABOUT: &str = "\
Each entry of the audit log carries a hash over the one before it; its head, how far it reached,
is recorded apart from it with every hundredth entry and at the daemon's exit, signed with a key.

Found are: entries that were edited, inserted, removed or moved; a log written anew; entries cut
off its end; heads that were changed, removed between others, or signed with another key.

Not found are: entries cut off that no head covers yet, whose number is printed; an old copy of the
log and its heads put back together; the removal of the oldest files, which looks like expiry; and
what somebody does who has the key. Keep the count and the hash that --json prints on another
machine to find these too.

Exits with 0 if nothing was found, 1 if something was, 74 if the files cannot be read.";

/// The verbs of `audit`.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditVerb {
    /// Find out whether the audit log was changed
    #[command(after_help = ABOUT)]
    Verify(VerifyArgs),
}

/// What `audit verify` takes.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
///
/// # Errors
/// When the files cannot be read.
pub(crate) fn run(context: &CliContext, verb: &AuditVerb) -> CommandResult {
    match verb {
        AuditVerb::Verify(args) => verify(context, args),
    }
}

fn verify(context: &CliContext, args: &VerifyArgs) -> CommandResult {
    let state = &context.dirs.state;
    let unreadable = |error: ReadError| {
        CommandError::new(
            ErrorCode::Storage,
            format!(
                "the audit log in {} cannot be read: {error}",
                state.display()
            ),
        )
    };
    let (ledger, heads) = (state.join(LEDGER), state.join(LEDGER_HEADS));
    if !ledger.exists() && !heads.exists() {
        let message = format!(
            "there is no audit log in {}: no daemon has served it",
            state.display()
        );
        return Err(CommandError::new(ErrorCode::Storage, message));
    }
    let key = match context.config.audit_key_file() {
        Some(path) => HeadKey::read(&path).map_err(unreadable)?,
        None => None,
    };
    let reader = LedgerReader::open(&ledger);
    let report = reader.audit(&heads, key.as_ref()).map_err(unreadable)?;
    let exit = if report.findings.is_empty() {
        0
    } else {
        CHANGED
    };
    if args.json {
        print_json(&report)?;
        return Ok(exit);
    }
    let mut out = StdoutWriter::new();
    for line in lines(&report) {
        out.write_line(&line)?;
    }
    out.flush()?;
    Ok(exit)
}

/// The report for people.
fn lines(report: &AuditReport) -> Vec<String> {
    let kept = report.count.saturating_sub(report.first);
    let since = report.oldest.map_or_else(String::new, |oldest| {
        format!(
            ", the oldest of {}",
            format_time(oldest, &TimeZone::system())
        )
    });
    let mut lines = vec![format!("entries: {kept}{since}; heads: {}", report.heads)];
    let uncovered = report
        .count
        .saturating_sub(report.covered.max(report.first));
    if uncovered > 0 && report.findings.is_empty() {
        lines.push(format!(
            "of these, {uncovered} are covered by no head yet: cutting them off would not be found"
        ));
    }
    for finding in &report.findings {
        lines.push(format!("found: {finding}"));
    }
    if report.findings.is_empty() {
        lines.push("no change was found".to_owned());
    }
    lines
}
