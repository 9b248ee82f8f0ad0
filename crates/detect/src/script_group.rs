//! The scripts of programs that run several (`concurrently`, `npm-run-all`).

use super::arguments::{ParsedArguments, base_name, glob};
use super::simple_command::SimpleCommand;

/// Options of `concurrently` and the `npm-run-all` family that take a value.
const VALUE_OPTIONS: [&str; 19] = [
    "-n",
    "--names",
    "-c",
    "--prefix-colors",
    "-p",
    "--prefix",
    "-s",
    "--success",
    "-m",
    "--max-processes",
    "-l",
    "--prefix-length",
    "-t",
    "--timestamp-format",
    "--restart-tries",
    "--restart-after",
    "--name-separator",
    "--default-input-target",
    "--hide",
];

/// The scripts, by the way they run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ScriptGroup {
    /// At the same time.
    Parallel(Vec<String>),
    /// One after the other: only the last can be a service.
    Sequential(Vec<String>),
}

/// The scripts that such a program runs; `names` are the scripts of the package, if known.
pub(super) fn parse_group(call: &SimpleCommand, names: &[String]) -> Option<ScriptGroup> {
    let program = base_name(call.program());
    match program {
        "concurrently" | "conc" => {
            let arguments =
                ParsedArguments::parse(call.args(), |option| VALUE_OPTIONS.contains(&option));
            let scripts = arguments.operands.iter();
            Some(ScriptGroup::Parallel(
                scripts.flat_map(|it| expand_shortcut(it, names)).collect(),
            ))
        }
        "run-p" => Some(ScriptGroup::Parallel(run_all(call.args(), names))),
        "run-s" => Some(ScriptGroup::Sequential(run_all(call.args(), names))),
        "npm-run-all" | "npm-run-all2" => {
            let parallel = ["-p", "--parallel", "-l"];
            let at = call.args().iter().rposition(|arg| {
                parallel.contains(&arg.as_str())
                    || ["-s", "--serial", "--sequential"].contains(&arg.as_str())
            });
            let at = at.unwrap_or(0);
            let is_parallel = call
                .args()
                .get(at)
                .is_some_and(|arg| parallel.contains(&arg.as_str()));
            let scripts = run_all(call.args().get(at..).unwrap_or_default(), names);
            Some(if is_parallel {
                ScriptGroup::Parallel(scripts)
            } else {
                ScriptGroup::Sequential(scripts)
            })
        }
        _ => None,
    }
}

/// `npm:dev:*` of `concurrently`.
fn expand_shortcut(text: &str, names: &[String]) -> Vec<String> {
    let managers = ["npm", "yarn", "pnpm", "bun"];
    let found = text.split_once(':').filter(|(it, _)| managers.contains(it));
    match found {
        None => vec![text.to_owned()],
        Some((manager, pattern)) => {
            let (pattern, args) = pattern.split_once(' ').unwrap_or((pattern, ""));
            let run = |name: &String| format!("{manager} run {name} {args}");
            matching(pattern, names).iter().map(run).collect()
        }
    }
}

/// `run-p dev:* css`; a word may contain arguments.
fn run_all(args: &[String], names: &[String]) -> Vec<String> {
    let arguments = ParsedArguments::parse(args, |option| option == "--max-parallel");
    let patterns = arguments.operands.iter();
    patterns
        .flat_map(|it| matching(it.split(' ').next().unwrap_or(it), names))
        .map(|name| format!("npm run {name}"))
        .collect()
}

/// The scripts of the package that match a pattern; without known scripts, the pattern's start.
fn matching(pattern: &str, names: &[String]) -> Vec<String> {
    let found: Vec<String> = names
        .iter()
        .filter(|it| glob(pattern, it))
        .cloned()
        .collect();
    if !found.is_empty() || !names.is_empty() {
        return found;
    }
    vec![pattern.trim_end_matches(['*', ':']).to_owned()]
}
