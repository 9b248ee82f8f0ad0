//! The detector: finds the table entry that a command belongs to.

use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;

use ostler_model::{ByteString, Command, ReadyRule, ServiceKind};

use super::arguments::{ParsedArguments, base_name, is_option};
use super::package_scripts::{self, PackageScriptRun};
use super::port;
use super::script_group::{self, ScriptGroup};
use super::simple_command::SimpleCommand;
use super::table::{DetectionTable, TableEntry};
use super::task_runners;
use super::types::{DetectedService, DetectionQuery, WorkspaceFiles};
use super::wrappers::{self, ShellScript};
use super::{script, source_file};

/// The greatest nesting of scripts that run scripts.
const DEPTH: usize = 5;
/// The most commands analysed and files read for one query.
const STEPS: usize = 96;

/// The result for one command.
#[derive(Debug)]
enum DetectionOutcome {
    Service(Box<DetectedService>),
    /// A program of the table with another function, or one that ends by itself.
    NotService,
    Unknown,
}

/// The variable that switches detection off for a command.
const OFF_VARIABLE: &str = "OSTLER_SERVICE";

/// Programs that end by themselves: a script called `dev` or `start` that runs one of them is no
/// service.
const ONE_SHOT_PROGRAMS: [&str; 40] = [
    "echo",
    "printf",
    "true",
    "false",
    "exit",
    "cat",
    "ls",
    "rm",
    "cp",
    "mv",
    "mkdir",
    "touch",
    "git",
    "curl",
    "wget",
    "test",
    "[",
    "jest",
    "vitest",
    "mocha",
    "ava",
    "eslint",
    "prettier",
    "biome",
    "playwright",
    "cypress",
    "pytest",
    "tox",
    "rimraf",
    "kill",
    "pkill",
    "sleep",
    "open",
    "grep",
    "sed",
    "tar",
    "zip",
    "which",
    "export",
    "cd",
];
/// Programs that run code of the workspace: without a matching entry the result is unknown.
const INTERPRETERS: [&str; 22] = [
    "node", "bun", "deno", "python", "pypy", "ruby", "php", "perl", "java", "go", "cargo", "tsx",
    "ts-node", "make", "sh", "bash", "dotnet", "swift", "dart", "mix", "docker", "npm",
];

impl DetectionTable {
    /// The service that a command is; none for builds, tests, one-shot scripts and unknown
    /// commands.
    #[must_use]
    pub fn detect(
        &self,
        query: DetectionQuery<'_>,
        files: &dyn WorkspaceFiles,
    ) -> Option<DetectedService> {
        Detector::new(self, query, files).detect()
    }
}

/// One query with the table and the number of steps it took.
pub(super) struct Detector<'a> {
    table: &'a DetectionTable,
    query: DetectionQuery<'a>,
    files: &'a dyn WorkspaceFiles,
    steps: Cell<usize>,
}

impl<'a> Detector<'a> {
    /// A detector for one query.
    pub(super) fn new(
        table: &'a DetectionTable,
        query: DetectionQuery<'a>,
        files: &'a dyn WorkspaceFiles,
    ) -> Self {
        Self {
            table,
            query,
            files,
            steps: Cell::new(0),
        }
    }

    pub(super) fn detect(&self) -> Option<DetectedService> {
        let mut call = SimpleCommand {
            words: Vec::new(),
            env: Vec::new(),
            cwd: Some(self.query.cwd.to_path_buf()),
            argument_prefix: Some(Vec::new()),
        };
        let outcome = match self.query.command {
            Command::Argv { program, args } => {
                let words = std::iter::once(program).chain(args);
                call.words = words.map(|it| it.to_string_lossy().into_owned()).collect();
                self.analyze(call, 0)
            }
            Command::Shell { shell: _, script } => {
                self.detect_script(&script.to_string_lossy(), &call, &[], 0)
            }
        };
        match outcome {
            DetectionOutcome::Service(detected) => Some(*detected),
            DetectionOutcome::NotService | DetectionOutcome::Unknown => None,
        }
    }

    /// The value of a variable in the environment of a command.
    fn variable(&self, call: &SimpleCommand, name: &str) -> Option<String> {
        if let Some(value) = call.variable(name) {
            return Some(value.to_owned());
        }
        let mut all = self.query.env.iter().rev();
        let found = all.find(|(given, _)| given.as_bytes() == name.as_bytes());
        found.map(|(_, value)| value.to_string_lossy().into_owned())
    }

    /// Whether the environment switches detection off.
    fn is_off(&self, call: &SimpleCommand) -> bool {
        let value = self.variable(call, OFF_VARIABLE);
        value.is_some_and(|it| ["off", "no", "0", "false"].contains(&it.as_str()))
    }

    /// The text of a file; none once the steps of the query are used up.
    fn read(&self, path: Option<PathBuf>) -> Option<String> {
        if !self.consume_step() {
            return None;
        }
        let bytes = self.files.read(&path?)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn consume_step(&self) -> bool {
        self.steps.set(self.steps.get() + 1);
        self.steps.get() <= STEPS
    }

    /// Analyses a script; `args` are appended to its last command.
    fn detect_script(
        &self,
        text: &str,
        base: &SimpleCommand,
        args: &[String],
        depth: usize,
    ) -> DetectionOutcome {
        let candidates = script::deciding_commands(text, base, &|name| self.variable(base, name));
        let mut outcome = DetectionOutcome::Unknown;
        for mut call in candidates {
            call.words.extend_from_slice(args);
            outcome = self.analyze(call, depth);
            if matches!(outcome, DetectionOutcome::Service(_)) {
                break;
            }
        }
        outcome
    }

    /// Analyses a simple command.
    fn analyze(&self, mut call: SimpleCommand, depth: usize) -> DetectionOutcome {
        if depth > DEPTH || !self.consume_step() {
            return DetectionOutcome::NotService;
        }
        loop {
            if call.words.is_empty() || is_help_request(&call.words) || self.is_off(&call) {
                return DetectionOutcome::NotService;
            }
            if let Some(task) = task_runners::parse_task(&call, &|path| self.read(path)) {
                return self.detect_task(&call, task, depth);
            }
            if !wrappers::strip_wrapper(&mut call, self.table)
                && !wrappers::strip_module_runner(&mut call)
            {
                break;
            }
        }
        if let Some(script) = wrappers::shell_script(&call) {
            return self.detect_shell(&call, script, depth);
        }
        if let Some(run) = package_scripts::parse_run(&call) {
            return self.detect_package_script(&call, &run, depth);
        }
        if let Some(outcome) = self.detect_script_group(&call, depth) {
            return outcome;
        }
        self.match_entries(&call)
    }

    fn detect_shell(
        &self,
        call: &SimpleCommand,
        script: ShellScript<'_>,
        depth: usize,
    ) -> DetectionOutcome {
        let text = match script {
            ShellScript::Text(text) => Some(text.to_owned()),
            ShellScript::File(path) => self.read(call.file(path)),
        };
        let mut inner = call.clone();
        inner.argument_prefix = None;
        match text {
            Some(text) => self.detect_script(&text, &inner, &[], depth + 1),
            None => self.match_entries(call),
        }
    }

    /// Analyses a task of a task runner: by its script, else by its name.
    fn detect_task(
        &self,
        call: &SimpleCommand,
        task: task_runners::RunnerTask,
        depth: usize,
    ) -> DetectionOutcome {
        let Some(script) = &task.script else {
            return self.detect_unnamed_task(call);
        };
        match self.detect_script(script, &task.call, &[], depth + 1) {
            DetectionOutcome::Unknown => self.match_entries(call),
            known @ (DetectionOutcome::Service(_) | DetectionOutcome::NotService) => known,
        }
    }

    /// Analyses a task whose file is missing: by the task runner's own entries.
    fn detect_unnamed_task(&self, call: &SimpleCommand) -> DetectionOutcome {
        let mut call = call.clone();
        call.argument_prefix = None;
        self.match_entries(&call)
    }

    /// Analyses a script of a package, or a program of its dependencies.
    fn detect_package_script(
        &self,
        call: &SimpleCommand,
        run: &PackageScriptRun,
        depth: usize,
    ) -> DetectionOutcome {
        let target = run.resolve_target(call, &|path| self.read(path));
        let mut named = vec![run.manager.to_owned(), "run".to_owned(), run.script.clone()];
        named.extend_from_slice(&run.args);
        let mut generic = target.with_words(named);
        if run.recursive {
            generic.words.push("--recursive".to_owned());
            generic.argument_prefix = None;
            return self.match_entries(&generic);
        }
        let package = self.read(target.file("package.json"));
        let scripts = package.as_deref().and_then(package_scripts::scripts);
        let found = scripts.iter().flatten().find(|(it, _)| *it == run.script);
        if let Some((_, text)) = found {
            return match self.detect_script(text, &target, &run.args, depth + 1) {
                DetectionOutcome::Unknown => self.match_entries(&generic),
                known @ (DetectionOutcome::Service(_) | DetectionOutcome::NotService) => known,
            };
        }
        if scripts.is_none() {
            // Nothing tells whether it is a script or a program: what is called like a
            // service is taken for a script.
            let outcome = self.match_entries(&generic);
            if matches!(outcome, DetectionOutcome::Service(_)) {
                return outcome;
            }
        }
        self.detect_package_program(&target, run, scripts.is_some(), &generic, depth)
    }

    /// Analyses a name that is not a script of its package.
    fn detect_package_program(
        &self,
        target: &SimpleCommand,
        run: &PackageScriptRun,
        has_scripts: bool,
        generic: &SimpleCommand,
        depth: usize,
    ) -> DetectionOutcome {
        let mut program = vec![run.script.clone()];
        program.extend_from_slice(&run.args);
        let known = self.table.entries_for(&run.script).next().is_some();
        if run.may_be_program && known {
            return self.analyze(target.with_words(program), depth + 1);
        }
        let is_file = run.manager == "bun" && run.script.contains('.');
        if is_file || !has_scripts {
            return self.match_entries(generic);
        }
        // `npm start` without such a script.
        let server = target.with_words(vec!["node".to_owned(), "server.js".to_owned()]);
        if run.script == "start" && self.read(target.file("server.js")).is_some() {
            return self.analyze(server, depth + 1);
        }
        DetectionOutcome::NotService
    }

    /// Analyses programs that run several scripts; none for any other program.
    fn detect_script_group(&self, call: &SimpleCommand, depth: usize) -> Option<DetectionOutcome> {
        let runners = [
            "concurrently",
            "conc",
            "run-p",
            "run-s",
            "npm-run-all",
            "npm-run-all2",
        ];
        if !runners.contains(&base_name(call.program())) {
            return None;
        }
        let package = self.read(call.file("package.json"));
        let scripts = package.as_deref().and_then(package_scripts::scripts);
        let names: Vec<String> = scripts
            .into_iter()
            .flatten()
            .map(|(name, _)| name)
            .collect();
        let mut inner = call.clone();
        inner.argument_prefix = None;
        let detect = |script: &String| self.detect_script(script, &inner, &[], depth + 1);
        match script_group::parse_group(call, &names)? {
            ScriptGroup::Sequential(scripts) => {
                Some(scripts.last().map_or(DetectionOutcome::NotService, detect))
            }
            ScriptGroup::Parallel(scripts) => {
                let mut outcomes = scripts.iter().map(detect);
                let serves = outcomes.any(|it| matches!(it, DetectionOutcome::Service(_)));
                Some(if serves {
                    self.match_entries(&inner)
                } else {
                    DetectionOutcome::NotService
                })
            }
        }
    }

    /// Matches a command against the entries for its program.
    fn match_entries(&self, call: &SimpleCommand) -> DetectionOutcome {
        let has_marker = |entry: &TableEntry, name: &str| {
            source_file::candidate_paths(name).any(|path| {
                let text = self.read(call.file(&path));
                text.is_some_and(|text| source_file::contains_marker(&text, &self.markers(entry)))
            })
        };
        let mut has_entries = false;
        for entry in self.table.entries_for(call.program()) {
            has_entries = true;
            let arguments = ParsedArguments::parse(call.args(), |option| entry.takes_value(option));
            let has_marker_in = |name: &str| has_marker(entry, name);
            let matches = |it: &super::pattern::CommandPattern| {
                it.matches(call.program(), &arguments, &has_marker_in)
            };
            if let Some(used) = entry.patterns.iter().find_map(matches) {
                let mut detected = self.build_result(entry, call, &arguments, used);
                let mut operands = arguments.operands.iter();
                if entry.kind_depends_on_file() && operands.any(|it| has_marker_in(it)) {
                    detected.ready.kind = ServiceKind::Server;
                }
                return DetectionOutcome::Service(Box::new(detected));
            }
        }
        let name = base_name(call.program());
        if ONE_SHOT_PROGRAMS.contains(&name) || (has_entries && !INTERPRETERS.contains(&name)) {
            DetectionOutcome::NotService
        } else {
            DetectionOutcome::Unknown
        }
    }

    /// The texts that mark a source file as a server: those of the entry and of its language.
    fn markers<'b>(&'b self, entry: &'b TableEntry) -> Vec<&'b str> {
        let own = &entry.text.contains;
        let shared = self.table.language(&entry.text.language);
        let shared = shared.filter(|_| !own.is_empty()).map(|it| &it.contains);
        let all = own.iter().chain(shared.into_iter().flatten());
        all.map(String::as_str).collect()
    }

    /// The port in the source file that the first operand names.
    fn port_in_file(
        &self,
        entry: &TableEntry,
        call: &SimpleCommand,
        arguments: &ParsedArguments<'_>,
    ) -> Option<u16> {
        let markers = self.markers(entry);
        let first = arguments.operands.first().filter(|_| !markers.is_empty())?;
        let text =
            source_file::candidate_paths(first).find_map(|path| self.read(call.file(&path)))?;
        source_file::find_port(&text, &markers)
    }

    fn build_result(
        &self,
        entry: &TableEntry,
        call: &SimpleCommand,
        arguments: &ParsedArguments<'_>,
        used: usize,
    ) -> DetectedService {
        let by_socket = port::uses_unix_socket(entry, arguments);
        let variable = |name: &str| self.variable(call, name);
        let requested = port::requested_port(entry, call, arguments, used, &variable);
        let text = &entry.text;
        let shared = self.table.language(&text.language);
        let mut env = shared.map(|it| it.env.clone()).unwrap_or_default();
        env.extend(text.env.clone());
        let pair =
            |(name, value): (String, String)| (ByteString::from(name), ByteString::from(value));
        DetectedService {
            id: text.id.clone(),
            name: match &text.programs {
                Some(_) => base_name(call.program()).to_owned(),
                None => text.id.clone(),
            },
            title: text.title.clone(),
            ready: ReadyRule {
                kind: if by_socket {
                    ServiceKind::Socket
                } else {
                    text.kind
                },
                timeout: text.timeout_s.map(Duration::from_secs),
                ready: text.ready.clone(),
                fail: text.fail.clone(),
                url: text.url.clone(),
                port: requested.map(|port| port.port),
                default_port: self
                    .port_in_file(entry, call, arguments)
                    .or(entry.default_port(call.program())),
                compiles: text.compiles,
                listens_before_ready: text.listens_before_ready,
                ..ReadyRule::default()
            },
            env: env.into_iter().map(pair).collect(),
            terminal: text.terminal,
            port_arguments: port::port_arguments(entry, call, requested).filter(|_| !by_socket),
            normalised: call.words.join(" "),
        }
    }
}

/// Whether a command line only prints help or a version.
fn is_help_request(words: &[String]) -> bool {
    let args = words.get(1..).unwrap_or_default();
    let own = args.iter().take_while(|arg| *arg != "--");
    let mut long = own.filter(|arg| is_option(arg));
    if long.any(|arg| ["--help", "--version", "--usage"].contains(&arg.as_str())) {
        return true;
    }
    let short = ["-h", "-v", "-V", "-?", "help", "version"];
    match args {
        [only] => short.contains(&only.as_str()),
        [first, ..] if first == "help" => true,
        [.., last] => last == "-h",
        [] => false,
    }
}
