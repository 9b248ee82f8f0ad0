//! Parses the text of an `ostler.toml` into definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ostler_model::{ByteString, Command, Dependency, IsolationLevel, line_number};
use toml::de::DeTable;

use super::toml_value::{TomlTable, TomlValue};
use super::{container, values};
use crate::service::definition::{ServiceDefinition, TERMINAL_SIZE};
use crate::service_names;

/// The size of the largest file, in bytes.
pub(super) const FILE_BYTES: usize = 256 * 1024;
/// The most services in one file.
const SERVICES: usize = 256;
/// The shell that runs a command given as one text.
const SHELL: &str = "/bin/sh";
/// Keys of a service.
pub(super) const KEYS: [&str; 17] = [
    "command",
    "cwd",
    "env",
    "ready",
    "ready_pattern",
    "fail_pattern",
    "ready_timeout",
    "port",
    "restart",
    "health",
    "depends_on",
    "terminal",
    "level",
    "backend",
    "container",
    "record_input",
    "description",
];

/// An error in a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ManifestError {
    /// The line, from 1.
    pub line: usize,
    /// The message, with what is allowed.
    pub problem: String,
}

/// Parses the services of a file in the directory `dir`, by name.
///
/// # Errors
/// The first error, with its line.
pub fn parse(text: &str, dir: &Path) -> Result<BTreeMap<String, ServiceDefinition>, ManifestError> {
    let file_error = |problem: String| ManifestError { line: 1, problem };
    if text.len() > FILE_BYTES {
        return Err(file_error(format!(
            "the file is longer than {FILE_BYTES} bytes"
        )));
    }
    let table = DeTable::parse(text).map_err(|error| ManifestError {
        line: line_number(text, error.span().map_or(0, |span| span.start)),
        problem: error.message().trim_end().replace('\n', "; "),
    })?;
    let file = TomlTable {
        text,
        path: String::new(),
        line: 1,
        table: table.get_ref(),
    };
    file.reject_unknown_keys(&["services"])?;
    let Some(services) = file.get("services") else {
        return Ok(BTreeMap::new());
    };
    let named = services
        .table()
        .ok_or_else(|| services.invalid("tables, each [services.NAME]"))?
        .items();
    if named.len() > SERVICES {
        return Err(file_error(format!("more than {SERVICES} services")));
    }
    let mut definitions = BTreeMap::new();
    for (name, item) in named {
        let definition = parse_service(&name, &item, dir)?;
        definitions.insert(name, definition);
    }
    Ok(definitions)
}

fn parse_service(
    name: &str,
    item: &TomlValue<'_>,
    dir: &Path,
) -> Result<ServiceDefinition, ManifestError> {
    if let Err(problem) = service_names::check(name) {
        return Err(ManifestError {
            line: line_number(item.text, item.value.span().start),
            problem: format!("service '{name}': {problem}"),
        });
    }
    let section = item
        .table()
        .ok_or_else(|| item.invalid("a table with a 'command'"))?;
    section.reject_unknown_keys(&KEYS)?;
    let command = section
        .read("command", command)?
        .ok_or_else(|| ManifestError {
            line: section.line,
            problem: format!("{} has no 'command'", section.path),
        })?;
    let cwd = section.read("cwd", |it| directory(it, dir))?;
    let mut service =
        ServiceDefinition::new(name, command, cwd.unwrap_or_else(|| ByteString::from(dir)));
    let text = |it: &TomlValue<'_>| it.string("a text");
    service.options.set_env = section.read("env", environment)?.unwrap_or_default();
    service.options.description = section.read("description", text)?.unwrap_or_default();
    service.options.level = section.read("level", level)?;
    service.options.backend = section.read("backend", container::backend)?;
    *service.options.container = section
        .read("container", container::container)?
        .unwrap_or_default();
    service.options.pty = section
        .read("terminal", TomlValue::flag)?
        .and_then(|enabled| enabled.then_some(TERMINAL_SIZE));
    service.options.record_input = section
        .read("record_input", TomlValue::flag)?
        .unwrap_or_default();
    service.ready_when = section.read("ready", values::ready)?;
    service.ready_pattern = section.read("ready_pattern", values::expression)?;
    service.fail_pattern = section.read("fail_pattern", values::expression)?;
    service.ready_timeout_ms = section.read("ready_timeout", values::millis)?;
    service.port = section.read("port", values::port)?.unwrap_or_default();
    service.restart = section
        .read("restart", values::restart)?
        .unwrap_or(service.restart);
    service.health = section.read("health", values::health)?;
    service.depends_on = section
        .read("depends_on", |it| dependencies(it, name))?
        .unwrap_or_default();
    Ok(service)
}

/// A string is a script for a shell; a list is a program with its arguments.
fn command(item: &TomlValue<'_>) -> Result<Command, ManifestError> {
    const ALLOWED: &str =
        "a shell command (\"npm run dev\") or a list ([\"npm\", \"run\", \"dev\"])";
    if let Some(script) = item.str() {
        if script.trim().is_empty() {
            return Err(item.invalid(ALLOWED));
        }
        return Ok(Command::Shell {
            shell: ByteString::from(SHELL),
            script: ByteString::from(script),
        });
    }
    let mut words = item.strings(ALLOWED)?.into_iter().map(ByteString::from);
    match words.next() {
        Some(program) if !program.is_empty() => Ok(Command::Argv {
            program,
            args: words.collect(),
        }),
        Some(_) | None => Err(item.invalid(ALLOWED)),
    }
}

/// A path relative to the directory of the file.
fn directory(item: &TomlValue<'_>, dir: &Path) -> Result<ByteString, ManifestError> {
    let given = item.string("a directory, absolute or relative to this file")?;
    if given.is_empty() {
        return Err(item.invalid("a directory, absolute or relative to this file"));
    }
    let mut path = dir.to_owned();
    let parts = Path::new(&given).components();
    path.extend(parts.filter(|it| *it != std::path::Component::CurDir));
    Ok(ByteString::from(path))
}

fn environment(item: &TomlValue<'_>) -> Result<Vec<(ByteString, ByteString)>, ManifestError> {
    const ALLOWED: &str = "texts by name, such as { NODE_ENV = \"development\" }";
    let section = item.table().ok_or_else(|| item.invalid(ALLOWED))?;
    let variables = section.items().into_iter().map(|(name, value)| {
        let text = match (value.str(), value.number()) {
            (Some(text), _) => text.to_owned(),
            (None, Some(number)) => number.to_string(),
            (None, None) => return Err(value.invalid("a text, in quotes")),
        };
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(value.error("is no name for an environment variable"));
        }
        Ok((ByteString::from(name), ByteString::from(text)))
    });
    variables.collect()
}

fn level(item: &TomlValue<'_>) -> Result<IsolationLevel, ManifestError> {
    const ALLOWED: &str = "\"basic\", \"medium\", \"high\" or \"container\"";
    let given = item.str().and_then(|it| it.parse().ok());
    given.ok_or_else(|| item.invalid(ALLOWED))
}

fn dependencies(item: &TomlValue<'_>, service: &str) -> Result<Vec<Dependency>, ManifestError> {
    const ALLOWED: &str = "names ([\"db\", \"cache:started\"]) or conditions by name \
                           ({ db = \"ready\" })";
    let found: Vec<Dependency> = match item.table() {
        Some(section) => {
            let each = section.items().into_iter().map(|(name, value)| {
                let condition = values::condition(&value)?;
                Ok(Dependency { name, condition })
            });
            each.collect::<Result<_, ManifestError>>()?
        }
        None => {
            let words = item.strings(ALLOWED)?.into_iter();
            words
                .map(|word| values::dependency(&word).ok_or_else(|| item.invalid(ALLOWED)))
                .collect::<Result<_, ManifestError>>()?
        }
    };
    let mut names = BTreeSet::new();
    for dependency in &found {
        if dependency.name == service {
            return Err(item.error(format!("names '{service}' itself")));
        }
        if !names.insert(&dependency.name) {
            return Err(item.error(format!("names '{}' twice", dependency.name)));
        }
        service_names::check(&dependency.name).map_err(|problem| item.error(problem))?;
    }
    Ok(found)
}
