//! Scripts of JavaScript packages: `npm run dev`, `yarn workspace web dev`, `pnpm --filter web dev`.

use std::path::PathBuf;

use serde_json::Value;

use super::arguments::{base_name, is_option};
use super::simple_command::{SimpleCommand, resolve_path};

/// The usual directories of the packages of a workspace.
const PACKAGE_DIRECTORIES: [&str; 6] = ["packages", "apps", "services", "libs", "examples", "."];
/// Options of package managers that take a value.
const VALUE_OPTIONS: [&str; 16] = [
    "--prefix",
    "-C",
    "--dir",
    "--cwd",
    "-w",
    "--workspace",
    "--filter",
    "-F",
    "--loglevel",
    "--script-shell",
    "--userconfig",
    "--registry",
    "--env-file",
    "--reporter",
    "--workspace-concurrency",
    "--elide-lines",
];
/// Subcommands of package managers; scripts with these names are run by `run` only.
const BUILT_IN: [&str; 30] = [
    "add",
    "audit",
    "ci",
    "config",
    "create",
    "dedupe",
    "dlx",
    "exec",
    "help",
    "i",
    "info",
    "init",
    "install",
    "link",
    "list",
    "ls",
    "outdated",
    "pack",
    "publish",
    "remove",
    "test",
    "t",
    "un",
    "uninstall",
    "up",
    "update",
    "upgrade",
    "version",
    "view",
    "why",
];

/// A request to a package manager to run a script.
#[derive(Debug, Default)]
pub(super) struct PackageScriptRun {
    pub(super) manager: &'static str,
    pub(super) script: String,
    /// The arguments of the script.
    pub(super) args: Vec<String>,
    /// Whether appended arguments have to follow `--`.
    pub(super) needs_dashes: bool,
    /// Whether the name may be a program of the package's dependencies.
    pub(super) may_be_program: bool,
    /// Whether it is run in several packages.
    pub(super) recursive: bool,
    directory: Option<String>,
    workspace: Option<String>,
}

/// The script that a package manager runs; none for its other subcommands.
pub(super) fn parse_run(call: &SimpleCommand) -> Option<PackageScriptRun> {
    let program = base_name(call.program());
    let manager = ["npm", "pnpm", "yarn", "bun", "cnpm", "tnpm", "nr"]
        .into_iter()
        .find(|it| *it == program)?;
    let mut run = PackageScriptRun {
        manager,
        ..PackageScriptRun::default()
    };
    let npm = ["npm", "cnpm", "tnpm"].contains(&manager);
    let operands = run.operands(call.args(), npm)?;
    let mut operands = operands.into_iter();
    let mut verb = operands.next()?;
    if verb == "workspace" && manager == "yarn" {
        run.workspace = Some(operands.next()?);
        verb = operands.next()?;
    }
    if verb == "workspaces" && manager == "yarn" {
        run.recursive = true;
        let rest = operands.by_ref().skip_while(|word| word != "run");
        operands = rest.collect::<Vec<_>>().into_iter();
        verb = operands.next()?;
    }
    run.may_be_program = manager != "pnpm" && !npm;
    run.script = match verb.as_str() {
        "run" | "run-script" | "rum" | "urn" => operands.next()?,
        "start" | "restart" => "start".to_owned(),
        name if npm || BUILT_IN.contains(&name) => return None,
        _ => {
            run.may_be_program = true;
            verb
        }
    };
    run.args.splice(0..0, operands);
    Some(run)
}

impl PackageScriptRun {
    /// The operands, without the manager's own options. Options after the script's name belong to
    /// the script, except with npm, where those before `--` are npm's.
    fn operands(&mut self, args: &[String], npm: bool) -> Option<Vec<String>> {
        let mut operands: Vec<String> = Vec::new();
        let mut args = args.iter();
        let words_before_args = |operands: &[String]| match operands.first().map(String::as_str) {
            Some("workspace") if operands.get(2).is_some_and(|it| it == "run") => 4,
            Some("workspace") => 3,
            Some("run" | "run-script") => 2,
            Some("workspaces") => usize::MAX,
            Some(_) | None => 1,
        };
        while let Some(arg) = args.next() {
            let is_manager_arg = npm || operands.len() < words_before_args(&operands);
            if arg == "--" {
                self.args = args.cloned().collect();
                return Some(operands);
            }
            if !is_manager_arg {
                self.args.push(arg.clone());
                let rest = args.filter(|arg| *arg != "--");
                self.args.extend(rest.cloned());
                return Some(operands);
            }
            if is_option(arg) {
                self.option(arg, &mut args)?;
            } else {
                operands.push(arg.clone());
            }
        }
        self.needs_dashes = npm;
        Some(operands)
    }

    fn option(&mut self, arg: &str, args: &mut std::slice::Iter<'_, String>) -> Option<()> {
        let (name, value) = match arg.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None if VALUE_OPTIONS.contains(&arg) && !self.is_flag(arg) => {
                (arg, args.next().cloned())
            }
            None => (arg, None),
        };
        match name {
            "--prefix" | "-C" | "--dir" | "--cwd" => self.directory = value,
            "-w" | "--workspace" | "--filter" | "-F" => {
                // `pnpm -w` is the root of the workspace.
                self.workspace = value.or(self.workspace.take());
            }
            "-r" | "--recursive" | "-ws" | "--workspaces" | "--parallel" => self.recursive = true,
            // `bun --hot server.ts` runs a file.
            "--hot" | "--watch" | "-e" | "-p" if self.manager == "bun" => return None,
            _ => {}
        }
        Some(())
    }

    fn is_flag(&self, name: &str) -> bool {
        self.manager == "pnpm" && (name == "-w" || name == "--workspace-root")
    }

    /// The command as the manager runs it: in the directory or workspace that its options name.
    pub(super) fn resolve_target(
        &self,
        call: &SimpleCommand,
        read: &dyn Fn(Option<PathBuf>) -> Option<String>,
    ) -> SimpleCommand {
        let mut call = call.clone();
        if let Some(directory) = &self.directory {
            call.change_dir(directory);
        }
        if let Some(name) = &self.workspace {
            call.cwd = workspace_dir(&call, name, read);
        }
        if let (true, Some(lead)) = (self.needs_dashes, &mut call.argument_prefix) {
            lead.push("--".to_owned());
        }
        call
    }
}

/// The directory of a package of a workspace; none where it is not found.
fn workspace_dir(
    call: &SimpleCommand,
    name: &str,
    read: &dyn Fn(Option<PathBuf>) -> Option<String>,
) -> Option<PathBuf> {
    let path = name.trim_matches(['.', '{', '}', '/', '^']);
    let short = path.rsplit('/').next()?;
    let mut candidates = vec![path.to_owned()];
    candidates.extend(
        declared_workspaces(call, read)
            .into_iter()
            .filter_map(|glob| {
                let above = glob.trim_end_matches('*').trim_end_matches('/');
                let one = (above == glob && above.ends_with(short)).then(|| glob.clone());
                one.or_else(|| (above != glob).then(|| format!("{above}/{short}")))
            }),
    );
    candidates.extend(PACKAGE_DIRECTORIES.map(|directory| format!("{directory}/{short}")));
    let is_package = |candidate: &String| {
        let directory = resolve_path(call.cwd.as_deref(), candidate)?;
        read(Some(directory.join("package.json"))).map(|_| directory)
    };
    candidates.iter().find_map(is_package)
}

/// The workspaces that a root package declares.
fn declared_workspaces(
    call: &SimpleCommand,
    read: &dyn Fn(Option<PathBuf>) -> Option<String>,
) -> Vec<String> {
    let text = read(call.file("package.json")).unwrap_or_default();
    let package: Value = serde_json::from_str(&text).unwrap_or_default();
    let workspaces = &package["workspaces"];
    let list = workspaces.get("packages").unwrap_or(workspaces);
    let globs = list.as_array().into_iter().flatten();
    globs
        .filter_map(|it| it.as_str().map(str::to_owned))
        .collect()
}

/// The scripts of a package.
pub(super) fn scripts(text: &str) -> Option<Vec<(String, String)>> {
    let package: Value = serde_json::from_str(text).ok()?;
    let scripts = package.as_object()?.get("scripts");
    let all = scripts.and_then(Value::as_object).into_iter().flatten();
    let pair = |(name, text): (&String, &Value)| Some((name.clone(), text.as_str()?.to_owned()));
    Some(all.filter_map(pair).collect())
}
