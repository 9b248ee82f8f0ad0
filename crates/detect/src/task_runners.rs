//! Tasks of task runners: Makefiles, justfiles, `composer.json`, `deno.json`, `pyproject.toml`,
//! `Pipfile`.

use std::path::PathBuf;

use serde_json::Value;

use super::arguments::{ParsedArguments, base_name};
use super::simple_command::SimpleCommand;

/// A named task.
#[derive(Debug)]
pub(super) struct RunnerTask {
    /// The command, in the directory the task runs in.
    pub(super) call: SimpleCommand,
    /// Its script, if its file was found.
    pub(super) script: Option<String>,
}

/// Reads a file's text.
pub(super) type ReadFile<'a> = &'a dyn Fn(Option<PathBuf>) -> Option<String>;

/// The task that a task runner runs; none for other programs.
pub(super) fn parse_task(call: &SimpleCommand, file: ReadFile<'_>) -> Option<RunnerTask> {
    match base_name(call.program()) {
        "make" | "gmake" => {
            let names = ["GNUmakefile", "makefile", "Makefile"];
            recipe_task(call, &["-C", "-f", "-j", "-I", "-o"], &names, file)
        }
        "just" => {
            let takes = ["-f", "--justfile", "-d", "--working-directory", "--set"];
            recipe_task(call, &takes, &["justfile", "Justfile", ".justfile"], file)
        }
        "composer" => composer_task(call, file),
        "deno" => deno_task(call, file),
        "pipenv" | "pdm" | "hatch" | "rye" | "poe" | "poetry" => python_task(call, file),
        _ => None,
    }
}

/// A task; without a script the entries match its command.
fn build_task(call: &SimpleCommand, script: Option<String>) -> RunnerTask {
    let mut call = call.clone();
    // What is appended goes to the runner.
    call.argument_prefix = None;
    RunnerTask { call, script }
}

fn recipe_task(
    call: &SimpleCommand,
    takes: &[&str],
    names: &[&str],
    file: ReadFile<'_>,
) -> Option<RunnerTask> {
    let arguments = ParsedArguments::parse(call.args(), |option| takes.contains(&option));
    let mut target = call.clone();
    for option in ["-C", "-d", "--working-directory"] {
        if let Some(directory) = arguments.value(option) {
            target.change_dir(directory);
        }
    }
    let mut goals = arguments.operands.iter().filter(|word| !word.contains('='));
    let goal = goals.next_back()?;
    let named = arguments
        .value("-f")
        .or_else(|| arguments.value("--justfile"));
    let found = match named {
        Some(name) => file(target.file(name)),
        None => names.iter().find_map(|name| file(target.file(name))),
    };
    let script = match found {
        Some(text) => Some(recipe(&text, goal)?),
        None => None,
    };
    Some(build_task(&target, script))
}

/// The lines below `goal: …` as one script.
fn recipe(text: &str, goal: &str) -> Option<String> {
    let is_header = |line: &str| {
        let is_head = !line.starts_with([' ', '\t', '#', '@']);
        let (head, _) = line.split_once(':').filter(|_| is_head)?;
        let after = line.get(head.len() + 1..)?;
        let assigns = after.starts_with('=');
        (!assigns && head.split_whitespace().any(|word| word == goal)).then_some(())
    };
    let mut lines = text.lines().skip_while(|line| is_header(line).is_none());
    lines.next()?;
    let body = lines.take_while(|line| line.trim().is_empty() || line.starts_with([' ', '\t']));
    let commands = body.map(|line| line.trim().trim_start_matches(['@', '-', '+']).trim());
    let commands: Vec<&str> = commands
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    Some(expand_variables(&commands.join("\n"), text))
}

/// Expands the variables that a Makefile sets; `$$` is the shell's `$`.
fn expand_variables(script: &str, text: &str) -> String {
    let mut script = script
        .replace("$$", "$")
        .replace("{{", "$(")
        .replace("}}", ")");
    let assignments = text.lines().filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        let name = name.trim_end_matches([':', '?', '+']).trim();
        let plain = name
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || it == b'_');
        (plain && !name.is_empty()).then(|| (name, value.trim()))
    });
    for (name, value) in assignments {
        script = script.replace(&format!("$({name})"), value);
        script = script.replace(&format!("${{{name}}}"), value);
    }
    script
}

fn composer_task(call: &SimpleCommand, file: ReadFile<'_>) -> Option<RunnerTask> {
    let arguments = ParsedArguments::parse(call.args(), |it| it == "-d" || it == "--working-dir");
    let mut operands = arguments.operands.iter();
    let mut name = *operands.next()?;
    if name == "run" || name == "run-script" {
        name = operands.next()?;
    }
    let mut target = call.clone();
    if let Some(directory) = arguments
        .value("-d")
        .or_else(|| arguments.value("--working-dir"))
    {
        target.change_dir(directory);
    }
    let Some(text) = file(target.file("composer.json")) else {
        return Some(build_task(&target, None));
    };
    let package: Value = serde_json::from_str(&text).ok()?;
    let script_value = package.get("scripts")?.get(name)?;
    let last = script_value
        .as_array()
        .map_or(Some(script_value), |all| all.last());
    let script = last?.as_str()?;
    Some(build_task(
        &target,
        Some(script.replacen("@php ", "php ", 1)),
    ))
}

fn deno_task(call: &SimpleCommand, file: ReadFile<'_>) -> Option<RunnerTask> {
    let arguments = ParsedArguments::parse(call.args(), |it| it == "-c" || it == "--cwd");
    let name = match arguments.operands.as_slice() {
        ["task", name, ..] => *name,
        _ => return None,
    };
    let mut target = call.clone();
    if let Some(directory) = arguments.value("--cwd") {
        target.change_dir(directory);
    }
    let found = ["deno.json", "deno.jsonc", "package.json"]
        .into_iter()
        .filter_map(|name| file(target.file(name)))
        .find_map(|text| {
            let config: Value = serde_json::from_str(&text).ok()?;
            let tasks = config.get("tasks").or_else(|| config.get("scripts"))?;
            let task = tasks.get(name)?;
            let script = task.get("command").unwrap_or(task);
            script.as_str().map(str::to_owned)
        });
    let mut task = build_task(&target, found);
    // Deno hands on all that follows the task's name.
    task.call.argument_prefix.clone_from(&call.argument_prefix);
    Some(task)
}

/// `pdm run dev`, `pipenv run dev`, `hatch run dev`, `poe dev`: scripts of a Python project.
fn python_task(call: &SimpleCommand, file: ReadFile<'_>) -> Option<RunnerTask> {
    let program = base_name(call.program());
    let arguments = ParsedArguments::parse(call.args(), |_| false);
    let name = match (program, arguments.operands.as_slice()) {
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
    let paths: [&[&str]; 6] = [
        &["scripts"],
        &["tool", "pdm", "scripts"],
        &["tool", "rye", "scripts"],
        &["tool", "poe", "tasks"],
        &["tool", "hatch", "envs", "default", "scripts"],
        &["tool", "hatch", "scripts"],
    ];
    // `scripts` at the top is Pipfile's.
    let paths = paths.into_iter().skip(usize::from(program != "pipenv"));
    let script = paths
        .filter_map(|path| table_at(&parsed, path)?.get(name))
        .find_map(script_text)?;
    Some(build_task(call, Some(script)))
}

fn table_at<'a>(table: &'a toml::Table, path: &[&str]) -> Option<&'a toml::Table> {
    path.iter()
        .try_fold(table, |table, key| table.get(*key)?.as_table())
}

fn script_text(value: &toml::Value) -> Option<String> {
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
