//! Parses a Procfile: `name: command`, one per line.

use toml::{Table, Value};

use super::dotenv::{self, VariableReferences};
use super::names::AssignedNames;
use super::{
    ImportContext, ImportError, ImportResult, ImportedService, Omission, SERVICES, check_text,
};

/// Imports the services of a Procfile. As in other runners, each gets the variables of the `.env`
/// file in the same directory.
///
/// # Errors
/// A file that is too large.
pub fn procfile(text: &str, beside: ImportContext<'_>) -> Result<ImportResult, ImportError> {
    let text = check_text(text)?;
    let mut imported = ImportResult::default();
    let mut names = AssignedNames::default();
    let env = dotenv::read_default(beside, VariableReferences::Kept);
    imported.omissions.extend(env.omissions);
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut omit = |what: &str, reason: &str| {
            imported.omissions.push(Omission {
                file: None,
                line: at + 1,
                item: what.to_owned(),
                reason: reason.to_owned(),
            });
        };
        match parse_line(line) {
            None => omit(line, "is no line `name: command`"),
            Some(("release", _)) => {
                omit("release", "runs once for a deployment, it is no service");
            }
            Some((name, _)) if names.get(name).is_some() => omit(name, "stands there already"),
            Some(_) if imported.services.len() >= SERVICES => {
                omit(line, "is one service too many");
            }
            Some((name, command)) => {
                let (assigned, original) = (names.assign(name), name.to_owned());
                let service = service(assigned, original, command, &env.variables, beside);
                imported.services.push(service);
            }
        }
    }
    Ok(imported)
}

fn parse_line(line: &str) -> Option<(&str, &str)> {
    let (name, command) = line.split_once(':')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let command = command.trim();
    (!name.is_empty() && name.chars().all(is_name) && !command.is_empty())
        .then_some((name, command))
}

fn service(
    name: String,
    original: String,
    command: &str,
    env: &[(String, String)],
    context: ImportContext<'_>,
) -> ImportedService {
    let mut service = ImportedService {
        name,
        original,
        keys: Vec::new(),
    };
    service.set("command", command);
    if let Some(cwd) = context.directory("") {
        service.set("cwd", cwd);
    }
    let variable = |name: &str| env.iter().find(|(it, _)| it == name);
    // Other runners assign a port to each process.
    if ["$PORT", "${PORT"].iter().any(|it| command.contains(it)) {
        let fixed = variable("PORT").and_then(|(_, value)| value.parse::<u16>().ok());
        service.set(
            "port",
            fixed.map_or(Value::from("auto"), |port| i64::from(port).into()),
        );
    }
    let rest = env.iter().filter(|(name, _)| name != "PORT");
    let env: Table = rest
        .map(|(name, value)| (name.clone(), value.clone().into()))
        .collect();
    if !env.is_empty() {
        service.set("env", env);
    }
    service
}
