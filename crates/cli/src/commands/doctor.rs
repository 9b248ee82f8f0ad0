//! `ostler doctor`.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use clap::Args;
use ostler_model::ErrorCode;

use crate::context::{CliContext, block_on};
use crate::daemon;
use crate::doctor::examine;
use crate::error::{CommandError, CommandResult};
use crate::output::{StdoutWriter, Style, print_json};

/// The exit code if level high is incomplete.
const EXIT_INCOMPLETE: u8 = 1;
/// The exit codes, for people.
const CODES: &str = "\
Exit codes: 0 when level high is whole: nothing of it is missing, and every attempt was denied or
worked as it must; 1 when it is not; otherwise as `ostler --help` says.";

/// What `doctor` takes.
#[derive(Debug, Args)]
#[command(after_help = CODES)]
pub(crate) struct DoctorArgs {
    /// As JSON
    #[arg(long)]
    json: bool,
    /// As root: examine as this user, by name or number
    #[arg(long, value_name = "USER")]
    user: Option<String>,
}

/// Tests the isolation of this machine and reports the result.
///
/// # Errors
/// When no engine can be opened on a scratch directory.
pub(crate) fn run(context: &CliContext, args: &DoctorArgs) -> CommandResult {
    if let Some(user) = &args.user {
        return run_as_user(user, args.json);
    }
    let report = block_on(examine(context))?;
    if args.json {
        print_json(&report.json())?;
    } else {
        let mut out = StdoutWriter::new();
        report.print(&mut out, Style::of_stdout(&context.env))?;
        out.flush()?;
    }
    Ok(if report.is_whole() {
        0
    } else {
        EXIT_INCOMPLETE
    })
}

/// Runs this program again as another user, with an empty environment.
fn run_as_user(user: &str, json: bool) -> CommandResult {
    if !rustix::process::geteuid().is_root() {
        let error = CommandError::new(ErrorCode::Permission, "--user: only root may");
        return Err(error.with_hint(format!("sudo ostler doctor --user {user}")));
    }
    let account = find_account(user)?;
    let mut command = Command::new(daemon::executable());
    command
        .arg("doctor")
        .args(json.then_some("--json"))
        .uid(account.uid)
        .gid(account.gid)
        .current_dir("/")
        .env_clear()
        .env("PATH", ostler_engine::settings::TRUSTED_PATH)
        .env("HOME", &account.home)
        .env("USER", &account.name);
    let status = command.status().map_err(|error| {
        let message = format!("cannot be run as {}: {error}", account.name);
        CommandError::new(ErrorCode::Permission, message)
            .with_hint("the ostler program must be where that user may execute it")
    })?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.ok_or_else(|| CommandError::new(ErrorCode::Internal, format!("it ended by {status}")))
}

#[derive(Debug, PartialEq, Eq)]
struct Account {
    name: String,
    uid: u32,
    gid: u32,
    home: String,
}

fn find_account(user: &str) -> Result<Account, CommandError> {
    let text = fs::read_to_string("/etc/passwd").map_err(|error| {
        CommandError::new(ErrorCode::Environment, format!("/etc/passwd: {error}"))
    })?;
    let accounts = text.lines().filter_map(parse_account);
    let account = accounts
        .into_iter()
        .find(|it| it.name == user || it.uid.to_string() == user);
    account.ok_or_else(|| CommandError::value(format!("--user {user}: there is no such user")))
}

/// Parses a line of passwd(5): `name:password:uid:gid:comment:home:shell`.
fn parse_account(line: &str) -> Option<Account> {
    let fields: Vec<&str> = line.split(':').collect();
    let [name, _, uid, gid, _, home, _] = fields[..] else {
        return None;
    };
    Some(Account {
        name: name.to_owned(),
        uid: uid.parse().ok()?,
        gid: gid.parse().ok()?,
        home: home.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_read_as_passwd_has_them() {
        let read = parse_account("nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin");
        assert_eq!(
            read.map(|it| (it.uid, it.home)),
            Some((65_534, "/nonexistent".to_owned()))
        );
        assert_eq!(parse_account("# a comment"), None);
        assert!(find_account("root").is_ok_and(|it| it.uid == 0));
        assert!(find_account("0").is_ok_and(|it| it.name == "root"));
        let refusal = find_account("nobody-has-this-name")
            .unwrap_err()
            .to_string();
        assert!(refusal.contains("there is no such user"), "{refusal}");
    }
}
