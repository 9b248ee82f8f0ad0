//! The walk from a command to the entry it belongs to.

use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;

use ostler_model::{Command, ReadyRule, ServiceKind, Text};

use super::call::Call;
use super::detect::{Detected, Files, Subject};
use super::packages::{self, Run};
use super::port;
use super::recipes;
use super::spread::{self, Spread};
use super::table::{Entry, Table};
use super::words::{Arguments, base_name, is_option};
use super::wrap::{self, ShellScript};
use super::{contents, script};

/// Scripts that name scripts, at most so deep.
const DEPTH: usize = 5;
/// Commands looked at and files read for one answer, at most.
const STEPS: usize = 96;

/// What a command is.
#[derive(Debug)]
enum Outcome {
    /// A service.
    Service(Box<Detected>),
    /// None: a program of the table that does something else, or one that ends.
    No,
    /// Nobody knows.
    Unknown,
}

/// The variable that says that a command is no service.
const OFF: &str = "OSTLER_SERVICE";

/// Programs that end by themselves: scripts called `dev` or `start` that are one of these are
/// no services.
const ENDS: [&str; 40] = [
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
/// Programs that run what people write: a script of those may be anything.
const INTERPRETERS: [&str; 22] = [
    "node", "bun", "deno", "python", "pypy", "ruby", "php", "perl", "java", "go", "cargo", "tsx",
    "ts-node", "make", "sh", "bash", "dotnet", "swift", "dart", "mix", "docker", "npm",
];

/// One question on its way to its answer.
pub(super) struct Walk<'a> {
    table: &'a Table,
    subject: Subject<'a>,
    files: &'a dyn Files,
    steps: Cell<usize>,
}

impl<'a> Walk<'a> {
    /// Begins with a command.
    pub(super) fn new(table: &'a Table, subject: Subject<'a>, files: &'a dyn Files) -> Self {
        Self {
            table,
            subject,
            files,
            steps: Cell::new(0),
        }
    }

    /// The answer.
    pub(super) fn detect(&self) -> Option<Detected> {
        let mut call = Call {
            words: Vec::new(),
            env: Vec::new(),
            cwd: Some(self.subject.cwd.to_path_buf()),
            lead: Some(Vec::new()),
        };
        let outcome = match self.subject.command {
            Command::Argv { program, args } => {
                let words = std::iter::once(program).chain(args);
                call.words = words.map(|it| it.to_string_lossy().into_owned()).collect();
                self.look(call, 0)
            }
            Command::Shell { shell: _, script } => {
                self.script(&script.to_string_lossy(), &call, &[], 0)
            }
        };
        match outcome {
            Outcome::Service(detected) => Some(*detected),
            Outcome::No | Outcome::Unknown => None,
        }
    }

    /// A variable as a call sees it.
    fn variable(&self, call: &Call, name: &str) -> Option<String> {
        if let Some(value) = call.variable(name) {
            return Some(value.to_owned());
        }
        let mut all = self.subject.env.iter().rev();
        let found = all.find(|(given, _)| given.as_bytes() == name.as_bytes());
        found.map(|(_, value)| value.to_string_lossy().into_owned())
    }

    /// Whether somebody says that it is to run as a plain command.
    fn is_off(&self, call: &Call) -> bool {
        let said = self.variable(call, OFF);
        said.is_some_and(|it| ["off", "no", "0", "false"].contains(&it.as_str()))
    }

    /// A file's text, as long as there is patience left.
    fn read(&self, path: Option<PathBuf>) -> Option<String> {
        if !self.step() {
            return None;
        }
        let bytes = self.files.read(&path?)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn step(&self) -> bool {
        self.steps.set(self.steps.get() + 1);
        self.steps.get() <= STEPS
    }

    /// A script, its last command given `args` more.
    fn script(&self, text: &str, base: &Call, args: &[String], depth: usize) -> Outcome {
        let chosen = script::deciding(text, base, &|name| self.variable(base, name));
        let mut outcome = Outcome::Unknown;
        for mut call in chosen {
            call.words.extend_from_slice(args);
            outcome = self.look(call, depth);
            if matches!(outcome, Outcome::Service(_)) {
                break;
            }
        }
        outcome
    }

    /// A simple command.
    fn look(&self, mut call: Call, depth: usize) -> Outcome {
        if depth > DEPTH || !self.step() {
            return Outcome::No;
        }
        loop {
            if call.words.is_empty() || asks_for_help(&call.words) || self.is_off(&call) {
                return Outcome::No;
            }
            if let Some(task) = recipes::read(&call, &|path| self.read(path)) {
                return self.task(&call, task, depth);
            }
            if !wrap::unwrap(&mut call, self.table) && !wrap::run_module(&mut call) {
                break;
            }
        }
        if let Some(given) = wrap::shell_script(&call) {
            return self.shell(&call, given, depth);
        }
        if let Some(run) = packages::read(&call) {
            return self.package(&call, &run, depth);
        }
        if let Some(outcome) = self.spread(&call, depth) {
            return outcome;
        }
        self.compare(&call)
    }

    fn shell(&self, call: &Call, given: ShellScript<'_>, depth: usize) -> Outcome {
        let text = match given {
            ShellScript::Text(text) => Some(text.to_owned()),
            ShellScript::File(path) => self.read(call.file(path)),
        };
        let mut inner = call.clone();
        inner.lead = None;
        match text {
            Some(text) => self.script(&text, &inner, &[], depth + 1),
            None => self.compare(call),
        }
    }

    /// A task of a Makefile and the like; where its script says nothing, its name may.
    fn task(&self, call: &Call, task: recipes::Task, depth: usize) -> Outcome {
        let Some(script) = &task.script else {
            return self.unnamed(call);
        };
        match self.script(script, &task.call, &[], depth + 1) {
            Outcome::Unknown => self.compare(call),
            known @ (Outcome::Service(_) | Outcome::No) => known,
        }
    }

    /// A task whose file is not there: what the entries make of the command itself.
    fn unnamed(&self, call: &Call) -> Outcome {
        let mut call = call.clone();
        call.lead = None;
        self.compare(&call)
    }

    /// A script of a package, or a program of its dependencies.
    fn package(&self, call: &Call, run: &Run, depth: usize) -> Outcome {
        let place = run.place(call, &|path| self.read(path));
        let mut named = vec![run.manager.to_owned(), "run".to_owned(), run.script.clone()];
        named.extend_from_slice(&run.args);
        let mut generic = place.with_words(named);
        if run.recursive {
            generic.words.push("--recursive".to_owned());
            generic.lead = None;
            return self.compare(&generic);
        }
        let package = self.read(place.file("package.json"));
        let scripts = package.as_deref().and_then(packages::scripts);
        let found = scripts.iter().flatten().find(|(it, _)| *it == run.script);
        if let Some((_, text)) = found {
            return match self.script(text, &place, &run.args, depth + 1) {
                Outcome::Unknown => self.compare(&generic),
                known @ (Outcome::Service(_) | Outcome::No) => known,
            };
        }
        if scripts.is_none() {
            // Nothing tells whether it is a script or a program: what is called like a
            // service is taken for a script.
            let outcome = self.compare(&generic);
            if matches!(outcome, Outcome::Service(_)) {
                return outcome;
            }
        }
        self.program_of_package(&place, run, (scripts.is_some(), &generic), depth)
    }

    /// What a name that is no script of its package runs.
    fn program_of_package(
        &self,
        place: &Call,
        run: &Run,
        (has_scripts, generic): (bool, &Call),
        depth: usize,
    ) -> Outcome {
        let mut program = vec![run.script.clone()];
        program.extend_from_slice(&run.args);
        let known = self.table.about(&run.script).next().is_some();
        if run.may_be_program && known {
            return self.look(place.with_words(program), depth + 1);
        }
        let is_file = run.manager == "bun" && run.script.contains('.');
        if is_file || !has_scripts {
            return self.compare(generic);
        }
        // `npm start` without such a script.
        let server = place.with_words(vec!["node".to_owned(), "server.js".to_owned()]);
        if run.script == "start" && self.read(place.file("server.js")).is_some() {
            return self.look(server, depth + 1);
        }
        Outcome::No
    }

    /// Programs that run several others; none for all others.
    fn spread(&self, call: &Call, depth: usize) -> Option<Outcome> {
        let family = [
            "concurrently",
            "conc",
            "run-p",
            "run-s",
            "npm-run-all",
            "npm-run-all2",
        ];
        if !family.contains(&base_name(call.program())) {
            return None;
        }
        let package = self.read(call.file("package.json"));
        let scripts = package.as_deref().and_then(packages::scripts);
        let names: Vec<String> = scripts
            .into_iter()
            .flatten()
            .map(|(name, _)| name)
            .collect();
        let mut inner = call.clone();
        inner.lead = None;
        let look = |script: &String| self.script(script, &inner, &[], depth + 1);
        match spread::read(call, &names)? {
            Spread::InTurn(scripts) => Some(scripts.last().map_or(Outcome::No, look)),
            Spread::Together(scripts) => {
                let mut outcomes = scripts.iter().map(look);
                let serves = outcomes.any(|it| matches!(it, Outcome::Service(_)));
                Some(if serves {
                    self.compare(&inner)
                } else {
                    Outcome::No
                })
            }
        }
    }

    /// Compares a command with the entries about its program.
    fn compare(&self, call: &Call) -> Outcome {
        let in_marks = |entry: &Entry, name: &str| {
            contents::paths(name).any(|path| {
                let text = self.read(call.file(&path));
                text.is_some_and(|text| contents::has_mark(&text, &self.marks(entry)))
            })
        };
        let mut about = false;
        for entry in self.table.about(call.program()) {
            about = true;
            let given = Arguments::of(call.args(), |option| entry.takes(option));
            let in_file = |name: &str| in_marks(entry, name);
            let matches =
                |it: &super::pattern::Pattern| it.matches(call.program(), &given, &in_file);
            if let Some(used) = entry.patterns.iter().find_map(matches) {
                let mut detected = self.answer(entry, call, (&given, used));
                let mut operands = given.operands.iter();
                if entry.kind_is_in_its_file() && operands.any(|it| in_file(it)) {
                    detected.ready.kind = ServiceKind::Server;
                }
                return Outcome::Service(Box::new(detected));
            }
        }
        let name = base_name(call.program());
        if ENDS.contains(&name) || (about && !INTERPRETERS.contains(&name)) {
            Outcome::No
        } else {
            Outcome::Unknown
        }
    }

    /// What stands in a file that starts a server: its own, and those of its language.
    fn marks<'b>(&'b self, entry: &'b Entry) -> Vec<&'b str> {
        let own = &entry.text.contains;
        let shared = self.table.language(&entry.text.language);
        let shared = shared.filter(|_| !own.is_empty()).map(|it| &it.contains);
        let all = own.iter().chain(shared.into_iter().flatten());
        all.map(String::as_str).collect()
    }

    /// The port that is written where the file of an operand starts its server.
    fn port_in_file(&self, entry: &Entry, call: &Call, given: &Arguments<'_>) -> Option<u16> {
        let marks = self.marks(entry);
        let first = given.operands.first().filter(|_| !marks.is_empty())?;
        let text = contents::paths(first).find_map(|path| self.read(call.file(&path)))?;
        contents::port(&text, &marks)
    }

    fn answer(&self, entry: &Entry, call: &Call, given: (&Arguments<'_>, usize)) -> Detected {
        let by_socket = port::by_socket(entry, given.0);
        let asked = port::asked(entry, call, given, &|name| self.variable(call, name));
        let text = &entry.text;
        let shared = self.table.language(&text.language);
        let mut env = shared.map(|it| it.env.clone()).unwrap_or_default();
        env.extend(text.env.clone());
        let pair = |(name, value): (String, String)| (Text::from(name), Text::from(value));
        Detected {
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
                port: asked.map(|asked| asked.port),
                default_port: self
                    .port_in_file(entry, call, given.0)
                    .or(entry.default_port(call.program())),
                compiles: text.compiles,
                listens_before_ready: text.listens_before_ready,
                ..ReadyRule::default()
            },
            env: env.into_iter().map(pair).collect(),
            terminal: text.terminal,
            port_arguments: port::arguments(entry, call, asked).filter(|_| !by_socket),
            normalised: call.words.join(" "),
        }
    }
}

/// Whether a command line only asks what the program can do.
fn asks_for_help(words: &[String]) -> bool {
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
