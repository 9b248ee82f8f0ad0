//! `ostler policy`: evaluates and shows the command policy, without running anything.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use ostler_engine::admission::workspace_rules::with_workspace_rules;
use ostler_model::{ByteString, Command, ErrorCode};
use ostler_policy::{CommandContext, PolicyDecision, PolicyVerdict, RuleSet, RuleSource, RuleTier};
use serde_json::json;

use super::start::{parse_variables, resolve_directory};
use crate::argument_file;
use crate::config::policy;
use crate::context::CliContext;
use crate::error::{CommandError, CommandResult};
use crate::output::{StdoutWriter, TextTable, cells, print_json};

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

/// Runs the verb.
///
/// # Errors
/// When rules cannot be read.
pub(crate) fn run(context: &CliContext, verb: PolicyVerb) -> CommandResult {
    match verb {
        PolicyVerb::Check(args) => check(context, args),
        PolicyVerb::Test(args) => test(context, &args),
        PolicyVerb::Show(args) => show(context, &args),
    }
}

fn load_policy(context: &CliContext, shipped: bool) -> Result<Option<RuleSet>, CommandError> {
    if shipped {
        return load_sources(&RuleSource::shipped()).map(Some);
    }
    policy::load(&context.config, &context.env)
}

fn load_sources(sources: &[RuleSource]) -> Result<RuleSet, CommandError> {
    RuleSet::load(sources)
        .map_err(|error| CommandError::new(ErrorCode::Environment, error.to_string()))
}

fn check(context: &CliContext, args: CheckArgs) -> CommandResult {
    let json = args.json;
    context.report_warnings();
    let verdict = match load_policy(context, args.shipped)? {
        Some(set) => evaluate(context, &set, args)?,
        None => PolicyVerdict {
            decision: PolicyDecision::Allow,
            rule: "none".to_owned(),
            reason: "no policy is set: every command may run".to_owned(),
            fired: Vec::new(),
        },
    };
    if json {
        print_json(&verdict)?;
    } else {
        let mut out = StdoutWriter::new();
        out.write_line(format!(
            "{}  {}: {}",
            verdict.decision, verdict.rule, verdict.reason
        ))?;
        out.flush()?;
    }
    Ok(match verdict.decision {
        PolicyDecision::Allow | PolicyDecision::Ask => 0,
        PolicyDecision::Deny => ErrorCode::Security.info().exit,
    })
}

fn evaluate(
    context: &CliContext,
    set: &RuleSet,
    args: CheckArgs,
) -> Result<PolicyVerdict, CommandError> {
    let cwd = resolve_directory(args.cwd)?;
    let set_env = parse_variables(context, args.env)?;
    let command = match args.script {
        Some(script) => Command::Shell {
            shell: "/bin/sh".into(),
            script: ByteString::from(script),
        },
        None => {
            let mut words = args.command.into_iter().map(ByteString::from);
            Command::Argv {
                program: words.next().unwrap_or_default(),
                args: words.collect(),
            }
        }
    };
    let effective = with_workspace_rules(set, &cwd).map_err(|error| CommandError::from(&error))?;
    let search = context
        .env
        .get("PATH")
        .map(OsString::from)
        .unwrap_or_default();
    let find_program = |name: &str| {
        let candidates = std::env::split_paths(&search);
        candidates
            .map(|directory| cwd.as_path().join(directory).join(name))
            .find(|candidate| candidate.is_file())
    };
    Ok(effective.as_ref().unwrap_or(set).evaluate(&CommandContext {
        command: &command,
        cwd: &cwd,
        set_env: &set_env,
        lookup: Some(&find_program),
    }))
}

fn test(context: &CliContext, args: &TestArgs) -> CommandResult {
    let sources = if args.files.is_empty() {
        policy::sources(&context.config, &context.env)?
    } else {
        args.files
            .iter()
            .map(|file| read_source(file))
            .collect::<Result<_, _>>()?
    };
    let set = load_sources(&sources)?;
    let rules = set.rules();
    let examples: usize = rules.iter().map(|rule| rule.self_tests).sum();
    let mut out = StdoutWriter::new();
    out.write_line(format!(
        "{} files, {} rules, {examples} examples: all hold",
        sources.len(),
        rules.len()
    ))?;
    out.flush()?;
    Ok(0)
}

fn read_source(file: &Path) -> Result<RuleSource, CommandError> {
    let name = file.display().to_string();
    match argument_file::open(file).and_then(io::read_to_string) {
        Ok(text) => Ok(RuleSource::new(RuleTier::User, name, text)),
        Err(error) => Err(CommandError::value(format!("{name}: {error}"))),
    }
}

fn show(context: &CliContext, args: &ShowArgs) -> CommandResult {
    let Some(set) = load_policy(context, args.shipped)? else {
        if args.json {
            print_json(&json!({"default": "allow", "rules": []}))?;
        } else {
            crate::print_note("no policy is set: every command may run");
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
    let mut table = TextTable::new(&["DECISION", "RULE", "TIER", "ABOUT", "REASON"]);
    for rule in rules {
        table.push_row(cells![
            rule.decision.to_string(),
            rule.id,
            rule.tier.to_string(),
            rule.about,
            rule.reason,
        ]);
    }
    let (decision, rest) = (set.default_decision().to_string(), "everything else");
    table.push_row(cells![decision, "default", "", rest, "",]);
    let mut out = StdoutWriter::new();
    table.print(&mut out)?;
    out.flush()?;
    Ok(0)
}
