//! `ostler config`.

use clap::{Args, Subcommand};
use serde_json::json;

use crate::config::{KEYS, Key, Setting, describe_binding};
use crate::error::{CommandError, Outcome};
use crate::output::{Out, Table, cells, print_json};
use crate::setup::Setup;

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
    #[arg(value_name = "KEY", value_parser = key)]
    keys: Vec<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

fn key(name: &str) -> Result<String, String> {
    match (Key::named(name), Key::like(name)) {
        (Some(key), _) => Ok(key.name.to_owned()),
        (None, Some(like)) => Err(format!("no such key; did you mean {like}?")),
        (None, None) => {
            let names: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
            Err(format!("no such key; there are {}", names.join(", ")))
        }
    }
}

/// Shows how things are configured.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn run(setup: &Setup, verb: &ConfigVerb) -> Outcome {
    let ConfigVerb::Explain(args) = verb;
    let asked = |setting: &&Setting| {
        args.keys.is_empty() || args.keys.iter().any(|name| name == setting.key.name)
    };
    let settings: Vec<&Setting> = setup.config.settings().iter().filter(asked).collect();
    if args.json {
        print_json(
            &settings
                .iter()
                .map(|setting| as_json(setup, setting))
                .collect::<Vec<_>>(),
        )?;
    } else {
        print(setup, &settings)?;
    }
    Ok(setup.tell_problems())
}

fn as_json(setup: &Setup, setting: &Setting) -> serde_json::Value {
    let warnings = match setting.key.name {
        "allowed_commands" => setup.config.warnings(),
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
    value
}

fn print(setup: &Setup, settings: &[&Setting]) -> Result<(), CommandError> {
    let mut out = Out::new();
    let mut table = Table::new(&["KEY", "VALUE", "FROM", "MEANING"]);
    for setting in settings {
        table.row(cells![
            setting.key.name,
            setting.value.to_string(),
            setting.source.to_string(),
            setting.key.help,
        ]);
    }
    table.print(&mut out)?;
    out.line("")?;
    for (name, binding) in setup.config.bindings() {
        out.line(format!("secret {name}: {}", describe_binding(binding)))?;
    }
    for file in setup.config.files() {
        let there = if file.exists() { "read" } else { "not there" };
        out.line(format!("file {} ({there})", file.display()))?;
    }
    let lists = settings.iter().any(|it| it.key.name == "allowed_commands");
    for warning in setup.config.warnings().iter().filter(|_| lists) {
        out.line(format!("warning: {warning}"))?;
    }
    out.line("Flags win over the environment, that over files, those over defaults.")?;
    out.flush()
}
