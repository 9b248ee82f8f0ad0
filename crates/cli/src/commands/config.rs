//! `ostler config`.

use clap::{Args, Subcommand};
use serde_json::json;

use crate::config::{FileState, KEYS, Setting, SettingKey, describe_binding};
use crate::context::CliContext;
use crate::daemon::daemon_value;
use crate::error::{CommandError, CommandResult};
use crate::output::{StdoutWriter, TextTable, cells, print_json};

/// The verbs of `config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigVerb {
    /// Show each value and where it came from
    Explain(ExplainArgs),
}

/// What `config explain` takes.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Only these keys
    #[arg(value_name = "KEY", value_parser = parse_key)]
    keys: Vec<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

fn parse_key(name: &str) -> Result<String, String> {
    match (SettingKey::by_name(name), SettingKey::suggest(name)) {
        (Some(key), _) => Ok(key.name.to_owned()),
        (None, Some(suggestion)) => Err(format!("no such key; did you mean {suggestion}?")),
        (None, None) => {
            let names: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
            Err(format!("no such key; there are {}", names.join(", ")))
        }
    }
}

/// Shows the configuration.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn run(context: &CliContext, verb: &ConfigVerb) -> CommandResult {
    let ConfigVerb::Explain(args) = verb;
    let is_selected = |setting: &&Setting| {
        args.keys.is_empty() || args.keys.iter().any(|name| name == setting.key.name)
    };
    let settings: Vec<&Setting> = context
        .config
        .settings()
        .iter()
        .filter(is_selected)
        .collect();
    if args.json {
        print_json(
            &settings
                .iter()
                .map(|setting| as_json(context, setting))
                .collect::<Vec<_>>(),
        )?;
    } else {
        print_table(context, &settings)?;
    }
    Ok(context.report_problems())
}

fn as_json(context: &CliContext, setting: &Setting) -> serde_json::Value {
    let warnings = match setting.key.name {
        "allowed_commands" => context.config.warnings(),
        _ => Vec::new(),
    };
    let mut value = json!({
        "key": setting.key.name,
        "value": setting.value,
        "source": setting.source.to_string(),
        "variables": setting.key.variables,
        "allowed": setting.key.kind.allowed(),
        "meaning": setting.key.help,
    });
    if !warnings.is_empty() {
        value["warnings"] = json!(warnings);
    }
    if let Some(other) = daemon_value(&context.dirs, setting) {
        value["in_daemon"] = other.value;
    }
    value
}

/// Prints which of these values the daemon that runs does not have.
fn print_daemon_values(
    context: &CliContext,
    settings: &[&Setting],
    out: &mut StdoutWriter,
) -> Result<(), CommandError> {
    out.write_line("The values are those of what starts now.")?;
    for setting in settings {
        if let Some(other) = daemon_value(&context.dirs, setting) {
            out.write_line(format!(
                "{}: the daemon that runs (process {}) has {} until `ostler shutdown`",
                setting.key.name, other.pid, other.text
            ))?;
        }
    }
    Ok(())
}

fn print_table(context: &CliContext, settings: &[&Setting]) -> Result<(), CommandError> {
    let mut out = StdoutWriter::new();
    let mut table = TextTable::new(&["KEY", "VALUE", "FROM", "MEANING"]);
    for setting in settings {
        table.push_row(cells![
            setting.key.name,
            setting.value.to_string(),
            setting.source.to_string(),
            setting.key.help,
        ]);
    }
    table.print(&mut out)?;
    out.write_line("")?;
    for (name, binding) in context.config.bindings() {
        out.write_line(format!("secret {name}: {}", describe_binding(binding)))?;
    }
    for file in context.config.files() {
        let state = match file.state {
            FileState::Read => "read",
            FileState::Missing => "not there",
            FileState::Unreadable => "not read: it has an error",
        };
        out.write_line(format!("file {} ({state})", file.path.display()))?;
    }
    let lists = settings.iter().any(|it| it.key.name == "allowed_commands");
    for warning in context.config.warnings().iter().filter(|_| lists) {
        out.write_line(format!("warning: {warning}"))?;
    }
    out.write_line("Flags win over the environment, that over files, those over defaults.")?;
    print_daemon_values(context, settings, &mut out)?;
    out.flush()
}
