//! From text to definitions.

use std::collections::BTreeMap;
use std::path::Path;

use ostler_model::{Command, Dependency, IsolationLevel, Text};
use toml::de::DeTable;

use super::item::{Item, Section, line_of};
use super::values;
use crate::service::definition::{Definition, TERMINAL_SIZE};
use crate::service::names;

/// Bytes of the largest file.
pub(super) const FILE_BYTES: usize = 256 * 1024;
/// Services of one file.
const SERVICES: usize = 256;
/// The shell that runs a command given as one text.
const SHELL: &str = "/bin/sh";
/// Keys of a service.
pub(super) const KEYS: [&str; 14] = [
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
    "description",
];

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ManifestError {
    /// From 1.
    pub line: usize,
    /// In words, with what is allowed.
    pub problem: String,
}

/// The services of a file that stands in `dir`, by name.
///
/// # Errors
/// The first thing that cannot be, with its line.
pub fn parse(text: &str, dir: &Path) -> Result<BTreeMap<String, Definition>, ManifestError> {
    let whole = |problem: String| ManifestError { line: 1, problem };
    if text.len() > FILE_BYTES {
        return Err(whole(format!("the file is longer than {FILE_BYTES} bytes")));
    }
    let table = DeTable::parse(text).map_err(|error| ManifestError {
        line: line_of(text, error.span().map_or(0, |span| span.start)),
        problem: error.message().trim_end().replace('\n', "; "),
    })?;
    let file = Section {
        text,
        path: String::new(),
        line: 1,
        table: table.get_ref(),
    };
    file.only(&["services"])?;
    let Some(services) = file.get("services") else {
        return Ok(BTreeMap::new());
    };
    let named = services
        .table()
        .ok_or_else(|| services.wrong("tables, each [services.NAME]"))?
        .items();
    if named.len() > SERVICES {
        return Err(whole(format!("more than {SERVICES} services")));
    }
    let mut definitions = BTreeMap::new();
    for (name, item) in named {
        let definition = service(&name, &item, dir)?;
        definitions.insert(name, definition);
    }
    Ok(definitions)
}

fn service(name: &str, item: &Item<'_>, dir: &Path) -> Result<Definition, ManifestError> {
    if let Err(problem) = names::check(name) {
        return Err(ManifestError {
            line: line_of(item.text, item.value.span().start),
            problem: format!("service '{name}': {problem}"),
        });
    }
    let section = item
        .table()
        .ok_or_else(|| item.wrong("a table with a 'command'"))?;
    section.only(&KEYS)?;
    let command = section
        .read("command", command)?
        .ok_or_else(|| ManifestError {
            line: section.line,
            problem: format!("{} has no 'command'", section.path),
        })?;
    let cwd = section.read("cwd", |it| directory(it, dir))?;
    let mut service = Definition::new(name, command, cwd.unwrap_or_else(|| Text::from(dir)));
    let text = |it: &Item<'_>| it.string("a text");
    service.env = section.read("env", environment)?.unwrap_or_default();
    service.description = section.read("description", text)?.unwrap_or_default();
    service.level = section.read("level", level)?;
    service.terminal = section
        .read("terminal", Item::flag)?
        .and_then(|wanted| wanted.then_some(TERMINAL_SIZE));
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

/// One text is a script for a shell; a list is a program with its arguments.
fn command(item: &Item<'_>) -> Result<Command, ManifestError> {
    const ALLOWED: &str =
        "a shell command (\"npm run dev\") or a list ([\"npm\", \"run\", \"dev\"])";
    if let Some(script) = item.str() {
        if script.trim().is_empty() {
            return Err(item.wrong(ALLOWED));
        }
        return Ok(Command::Shell {
            shell: Text::from(SHELL),
            script: Text::from(script),
        });
    }
    let mut words = item.strings(ALLOWED)?.into_iter().map(Text::from);
    match words.next() {
        Some(program) if !program.is_empty() => Ok(Command::Argv {
            program,
            args: words.collect(),
        }),
        Some(_) | None => Err(item.wrong(ALLOWED)),
    }
}

/// Relative to where the file stands.
fn directory(item: &Item<'_>, dir: &Path) -> Result<Text, ManifestError> {
    let given = item.string("a directory, absolute or relative to this file")?;
    if given.is_empty() {
        return Err(item.wrong("a directory, absolute or relative to this file"));
    }
    let mut path = dir.to_owned();
    let parts = Path::new(&given).components();
    path.extend(parts.filter(|it| *it != std::path::Component::CurDir));
    Ok(Text::from(path))
}

fn environment(item: &Item<'_>) -> Result<Vec<(Text, Text)>, ManifestError> {
    const ALLOWED: &str = "texts by name, such as { NODE_ENV = \"development\" }";
    let section = item.table().ok_or_else(|| item.wrong(ALLOWED))?;
    let variables = section.items().into_iter().map(|(name, value)| {
        let text = match (value.str(), value.number()) {
            (Some(text), _) => text.to_owned(),
            (None, Some(number)) => number.to_string(),
            (None, None) => return Err(value.wrong("a text, in quotes")),
        };
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(value.problem("is no name for an environment variable"));
        }
        Ok((Text::from(name), Text::from(text)))
    });
    variables.collect()
}

fn level(item: &Item<'_>) -> Result<IsolationLevel, ManifestError> {
    const ALLOWED: &str = "\"basic\", \"medium\" or \"high\"";
    let given = item.str().and_then(|it| it.parse().ok());
    match given {
        Some(level) if level != IsolationLevel::Container => Ok(level),
        Some(_) | None => Err(item.wrong(ALLOWED)),
    }
}

fn dependencies(item: &Item<'_>, of: &str) -> Result<Vec<Dependency>, ManifestError> {
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
                .map(|word| values::dependency(&word).ok_or_else(|| item.wrong(ALLOWED)))
                .collect::<Result<_, ManifestError>>()?
        }
    };
    for dependency in &found {
        if dependency.name == of {
            return Err(item.problem(format!("names '{of}' itself")));
        }
        names::check(&dependency.name).map_err(|problem| item.problem(problem))?;
    }
    Ok(found)
}
