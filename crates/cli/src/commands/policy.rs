//! `ostler policy`: what the command policy says, without running anything.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use ostler_engine::admission::policy::with_workspace;
use ostler_model::{Command, ErrorCode, Text};
use ostler_policy::{Decision, PolicySet, Source, Subject, Tier, Verdict};
use serde_json::json;

use super::start::{directory, variables};
use crate::config::policy;
use crate::error::{CommandError, Outcome};
use crate::output::{Out, Table, cells, print_json};
use crate::setup::Setup;

/// The verbs of `policy`.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyVerb {
    /// Tell whether a command may run: allow, ask or deny, the rule and its reason; exits with
    /// 77 for deny
    Check(CheckArgs),
    /// Check files of rules and their own examples; without files, those in force
    Test(TestArgs),
    /// Show the rules in force
    Show(ShowArgs),
}

/// What `policy check` takes.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// A script for sh instead of a command
    #[arg(long, value_name = "TEXT", conflicts_with = "command")]
    script: Option<String>,
    /// By the shipped policy instead of that in force
    #[arg(long)]
    shipped: bool,
    /// Where it would run; here unless given
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// A variable it would be started with
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    env: Vec<OsString>,
    /// Everything that was found, as JSON
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(
        trailing_var_arg = true,
        required_unless_present = "script",
        value_name = "COMMAND"
    )]
    command: Vec<OsString>,
}

/// What `policy test` takes.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Files of rules, each taken for a user's own
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// What `policy show` takes.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The shipped policy instead of that in force
    #[arg(long)]
    shipped: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Does what was asked.
///
/// # Errors
/// When rules cannot be read.
pub(crate) fn run(setup: &Setup, verb: PolicyVerb) -> Outcome {
    match verb {
        PolicyVerb::Check(args) => check(setup, args),
        PolicyVerb::Test(args) => test(setup, &args),
        PolicyVerb::Show(args) => show(setup, &args),
    }
}

fn in_force(setup: &Setup, shipped: bool) -> Result<Option<PolicySet>, CommandError> {
    if shipped {
        return loaded(&Source::shipped()).map(Some);
    }
    policy::load(&setup.config, &setup.env)
}

fn loaded(sources: &[Source]) -> Result<PolicySet, CommandError> {
    PolicySet::load(sources)
        .map_err(|error| CommandError::new(ErrorCode::Environment, error.to_string()))
}

fn check(setup: &Setup, args: CheckArgs) -> Outcome {
    let json = args.json;
    setup.tell_warnings();
    let verdict = match in_force(setup, args.shipped)? {
        Some(set) => judged(setup, &set, args)?,
        None => Verdict {
            decision: Decision::Allow,
            rule: "none".to_owned(),
            reason: "no policy is set: every command may run".to_owned(),
            fired: Vec::new(),
        },
    };
    if json {
        print_json(&verdict)?;
    } else {
        let mut out = Out::new();
        out.line(format!(
            "{}  {}: {}",
            verdict.decision, verdict.rule, verdict.reason
        ))?;
        out.flush()?;
    }
    Ok(match verdict.decision {
        Decision::Allow | Decision::Ask => 0,
        Decision::Deny => ErrorCode::Security.row().exit,
    })
}

fn judged(setup: &Setup, set: &PolicySet, args: CheckArgs) -> Result<Verdict, CommandError> {
    let cwd = directory(args.cwd)?;
    let set_env = variables(setup, args.env)?;
    let command = match args.script {
        Some(script) => Command::Shell {
            shell: "/bin/sh".into(),
            script: Text::from(script),
        },
        None => {
            let mut words = args.command.into_iter().map(Text::from);
            Command::Argv {
                program: words.next().unwrap_or_default(),
                args: words.collect(),
            }
        }
    };
    let tightened = with_workspace(set, &cwd).map_err(|error| CommandError::from(&error))?;
    let search = setup
        .env
        .get("PATH")
        .map(OsString::from)
        .unwrap_or_default();
    let find = |name: &str| {
        let candidates = std::env::split_paths(&search);
        candidates
            .map(|directory| cwd.as_path().join(directory).join(name))
            .find(|candidate| candidate.is_file())
    };
    Ok(tightened.as_ref().unwrap_or(set).judge(&Subject {
        command: &command,
        cwd: &cwd,
        set_env: &set_env,
        find: Some(&find),
    }))
}

fn test(setup: &Setup, args: &TestArgs) -> Outcome {
    let sources = if args.files.is_empty() {
        policy::sources(&setup.config, &setup.env)?
    } else {
        args.files
            .iter()
            .map(|file| read(file))
            .collect::<Result<_, _>>()?
    };
    let set = loaded(&sources)?;
    let rules = set.rules();
    let examples: usize = rules.iter().map(|rule| rule.self_tests).sum();
    let mut out = Out::new();
    out.line(format!(
        "{} files, {} rules, {examples} examples: all hold",
        sources.len(),
        rules.len()
    ))?;
    out.flush()?;
    Ok(0)
}

fn read(file: &Path) -> Result<Source, CommandError> {
    let name = file.display().to_string();
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Source::new(Tier::User, name, text)),
        Err(error) => Err(CommandError::value(format!("{name}: {error}"))),
    }
}

fn show(setup: &Setup, args: &ShowArgs) -> Outcome {
    let Some(set) = in_force(setup, args.shipped)? else {
        if args.json {
            print_json(&json!({"default": "allow", "rules": []}))?;
        } else {
            crate::tell("no policy is set: every command may run");
        }
        return Ok(0);
    };
    let rules = set.rules();
    if args.json {
        let rules: Vec<_> = rules
            .iter()
            .map(|rule| {
                json!({"id": rule.id, "decision": rule.decision, "about": rule.about,
                       "reason": rule.reason, "tier": rule.tier.as_str(), "file": rule.file})
            })
            .collect();
        print_json(&json!({"default": set.default_decision(), "rules": rules}))?;
        return Ok(0);
    }
    let mut table = Table::new(&["DECISION", "RULE", "TIER", "ABOUT", "REASON"]);
    for rule in rules {
        table.row(cells![
            rule.decision.to_string(),
            rule.id,
            rule.tier.to_string(),
            rule.about,
            rule.reason,
        ]);
    }
    let (decision, rest) = (set.default_decision().to_string(), "everything else");
    table.row(cells![decision, "default", "", rest, "",]);
    let mut out = Out::new();
    table.print(&mut out)?;
    out.flush()?;
    Ok(0)
}
