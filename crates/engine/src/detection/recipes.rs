//! Tasks other files give names to: Makefiles, justfiles, `composer.json`, `deno.json`,
//! `pyproject.toml`, `Pipfile`.

use std::path::PathBuf;

use serde_json::Value;

use super::call::Call;
use super::words::{Arguments, base_name};

/// A named task.
#[derive(Debug)]
pub(super) struct Task {
    /// Where it runs.
    pub(super) call: Call,
    /// Its script, where a file with it was found.
    pub(super) script: Option<String>,
}

/// Reads a file's text.
pub(super) type Read<'a> = &'a dyn Fn(Option<PathBuf>) -> Option<String>;

/// The task a runner of such is asked for.
pub(super) fn read(call: &Call, file: Read<'_>) -> Option<Task> {
    match base_name(call.program()) {
        "make" | "gmake" => {
            let names = ["GNUmakefile", "makefile", "Makefile"];
            rule(call, &["-C", "-f", "-j", "-I", "-o"], &names, file)
        }
        "just" => {
            let takes = ["-f", "--justfile", "-d", "--working-directory", "--set"];
            rule(call, &takes, &["justfile", "Justfile", ".justfile"], file)
        }
        "composer" => composer(call, file),
        "deno" => deno(call, file),
        "pipenv" | "pdm" | "hatch" | "rye" | "poe" | "poetry" => python(call, file),
        _ => None,
    }
}

/// A task without script is looked for as it is by the entries.
fn task(call: &Call, script: Option<String>) -> Task {
    let mut call = call.clone();
    // What is appended goes to the runner.
    call.lead = None;
    Task { call, script }
}

fn rule(call: &Call, takes: &[&str], names: &[&str], file: Read<'_>) -> Option<Task> {
    let given = Arguments::of(call.args(), |option| takes.contains(&option));
    let mut place = call.clone();
    for option in ["-C", "-d", "--working-directory"] {
        if let Some(directory) = given.value(option) {
            place.go(directory);
        }
    }
    let mut goals = given.operands.iter().filter(|word| !word.contains('='));
    let goal = goals.next_back()?;
    let named = given.value("-f").or_else(|| given.value("--justfile"));
    let found = match named {
        Some(name) => file(place.file(name)),
        None => names.iter().find_map(|name| file(place.file(name))),
    };
    let script = match found {
        Some(text) => Some(recipe(&text, goal)?),
        None => None,
    };
    Some(task(&place, script))
}

/// The lines below `goal: …`, as one script: each of them has to succeed.
fn recipe(text: &str, goal: &str) -> Option<String> {
    let heads = |line: &str| {
        let is_head = !line.starts_with([' ', '\t', '#', '@']);
        let (head, _) = line.split_once(':').filter(|_| is_head)?;
        let after = line.get(head.len() + 1..)?;
        let assigns = after.starts_with('=');
        (!assigns && head.split_whitespace().any(|word| word == goal)).then_some(())
    };
    let mut lines = text.lines().skip_while(|line| heads(line).is_none());
    lines.next()?;
    let body = lines.take_while(|line| line.trim().is_empty() || line.starts_with([' ', '\t']));
    let commands = body.map(|line| line.trim().trim_start_matches(['@', '-', '+']).trim());
    let commands: Vec<&str> = commands
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    Some(expanded(&commands.join("\n"), text))
}

/// Puts in the variables a Makefile sets; `$$` is the shell's `$`.
fn expanded(script: &str, text: &str) -> String {
    let mut script = script
        .replace("$$", "$")
        .replace("{{", "$(")
        .replace("}}", ")");
    let sets = text.lines().filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        let name = name.trim_end_matches([':', '?', '+']).trim();
        let plain = name
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || it == b'_');
        (plain && !name.is_empty()).then(|| (name, value.trim()))
    });
    for (name, value) in sets {
        script = script.replace(&format!("$({name})"), value);
        script = script.replace(&format!("${{{name}}}"), value);
    }
    script
}

fn composer(call: &Call, file: Read<'_>) -> Option<Task> {
    let given = Arguments::of(call.args(), |it| it == "-d" || it == "--working-dir");
    let mut operands = given.operands.iter();
    let mut name = *operands.next()?;
    if name == "run" || name == "run-script" {
        name = operands.next()?;
    }
    let mut place = call.clone();
    if let Some(directory) = given.value("-d").or_else(|| given.value("--working-dir")) {
        place.go(directory);
    }
    let Some(text) = file(place.file("composer.json")) else {
        return Some(task(&place, None));
    };
    let package: Value = serde_json::from_str(&text).ok()?;
    let given = package.get("scripts")?.get(name)?;
    let last = given.as_array().map_or(Some(given), |all| all.last());
    let script = last?.as_str()?;
    Some(task(&place, Some(script.replacen("@php ", "php ", 1))))
}

fn deno(call: &Call, file: Read<'_>) -> Option<Task> {
    let given = Arguments::of(call.args(), |it| it == "-c" || it == "--cwd");
    let name = match given.operands.as_slice() {
        ["task", name, ..] => *name,
        _ => return None,
    };
    let mut place = call.clone();
    if let Some(directory) = given.value("--cwd") {
        place.go(directory);
    }
    let found = ["deno.json", "deno.jsonc", "package.json"]
        .into_iter()
        .filter_map(|name| file(place.file(name)))
        .find_map(|text| {
            let config: Value = serde_json::from_str(&text).ok()?;
            let tasks = config.get("tasks").or_else(|| config.get("scripts"))?;
            let task = tasks.get(name)?;
            let script = task.get("command").unwrap_or(task);
            script.as_str().map(str::to_owned)
        });
    let mut task = task(&place, found);
    // Deno hands on all that follows the task's name.
    task.call.lead.clone_from(&call.lead);
    Some(task)
}

/// `pdm run dev`, `pipenv run dev`, `hatch run dev`, `poe dev`: scripts of a Python project.
fn python(call: &Call, file: Read<'_>) -> Option<Task> {
    let program = base_name(call.program());
    let given = Arguments::of(call.args(), |_| false);
    let name = match (program, given.operands.as_slice()) {
        ("poe", [name, ..]) => *name,
        (_, ["run", "poe", name, ..]) => *name,
        (_, ["run", name, ..]) => name.rsplit(':').next()?,
        (_, _) => return None,
    };
    let config = if program == "pipenv" {
        "Pipfile"
    } else {
        "pyproject.toml"
    };
    let parsed: toml::Table = toml::from_str(&file(call.file(config))?).ok()?;
    let places: [&[&str]; 6] = [
        &["scripts"],
        &["tool", "pdm", "scripts"],
        &["tool", "rye", "scripts"],
        &["tool", "poe", "tasks"],
        &["tool", "hatch", "envs", "default", "scripts"],
        &["tool", "hatch", "scripts"],
    ];
    // `scripts` at the top is Pipfile's.
    let places = places.into_iter().skip(usize::from(program != "pipenv"));
    let script = places
        .filter_map(|path| within(&parsed, path)?.get(name))
        .find_map(text_of)?;
    Some(task(call, Some(script)))
}

fn within<'a>(table: &'a toml::Table, path: &[&str]) -> Option<&'a toml::Table> {
    path.iter()
        .try_fold(table, |table, key| table.get(*key)?.as_table())
}

fn text_of(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Table(table) => {
            let text = table.get("cmd").or_else(|| table.get("shell"))?;
            text.as_str().map(str::to_owned)
        }
        toml::Value::Array(words) => words.last()?.as_str().map(str::to_owned),
        toml::Value::Integer(_)
        | toml::Value::Float(_)
        | toml::Value::Boolean(_)
        | toml::Value::Datetime(_) => None,
    }
}
