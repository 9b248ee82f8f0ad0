//! The last simple command of a shell script, which decides what the script is.

use std::path::PathBuf;

use super::arguments::base_name;
use super::lex::{ListOperator, ShellToken, ShellWord, lex};
use super::simple_command::{SimpleCommand, assignment, name_and_value, resolve_path};

/// Words that begin what is more than a list of commands.
const KEYWORDS: [&str; 14] = [
    "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "select", "function",
];
/// Programs behind a `|` that pass on what they read until it ends.
const FILTERS: [&str; 16] = [
    "tee",
    "cat",
    "grep",
    "egrep",
    "sed",
    "awk",
    "ts",
    "pino-pretty",
    "bunyan",
    "jq",
    "less",
    "ccze",
    "logger",
    "stdbuf",
    "humanlog",
    "roarr",
];
/// Programs before a `|` that only answer questions.
const ANSWERERS: [&str; 4] = ["echo", "yes", "printf", "true"];

/// A list of simple commands joined by `|`.
#[derive(Debug, Default)]
struct Pipeline {
    stages: Vec<SimpleCommand>,
    /// What comes after it.
    after: Option<ListOperator>,
}

/// The commands that may decide what a script is, best first; each runs where `base` does.
/// Empty for scripts that are more than lists of commands.
pub(super) fn deciding_commands(
    script: &str,
    base: &SimpleCommand,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Vec<SimpleCommand> {
    let Some(lexed) = lex(script, variable) else {
        return Vec::new();
    };
    let mut reader = PipelineReader::new(base);
    let tokens = lexed.tokens.into_iter();
    let is_open_ended = !lexed.ends_in_comment && !script.ends_with('\n');
    match tokens.map(|token| reader.push_token(token)).collect() {
        Some(()) => {}
        None => return Vec::new(),
    }
    reader.end_pipeline(None);
    choose_commands(reader.pipelines, is_open_ended && !reader.group_closed)
}

struct PipelineReader<'a> {
    base: &'a SimpleCommand,
    cwd: Option<PathBuf>,
    env: Vec<(String, String)>,
    /// Directories to go back to at the ends of subshells.
    saved_dirs: Vec<Option<PathBuf>>,
    stage: Vec<ShellWord>,
    pipeline: Pipeline,
    pipelines: Vec<Pipeline>,
    /// Whether a group was closed: text appended is outside of it.
    group_closed: bool,
}

impl<'a> PipelineReader<'a> {
    fn new(base: &'a SimpleCommand) -> Self {
        Self {
            base,
            cwd: base.cwd.clone(),
            env: base.env.clone(),
            saved_dirs: Vec::new(),
            stage: Vec::new(),
            pipeline: Pipeline::default(),
            pipelines: Vec::new(),
            group_closed: false,
        }
    }

    /// Takes one piece; none where it is more than a list of commands.
    fn push_token(&mut self, token: ShellToken) -> Option<()> {
        match token {
            ShellToken::Word(word) => return self.push_word(word),
            ShellToken::Operator(ListOperator::Open) => {
                if !self.stage.is_empty() {
                    return None;
                }
                self.saved_dirs.push(self.cwd.clone());
            }
            ShellToken::Operator(ListOperator::Close) => {
                self.end_pipeline(None);
                self.cwd = self.saved_dirs.pop()?;
                self.group_closed = true;
            }
            ShellToken::Operator(ListOperator::Pipe) => self.end_stage(),
            ShellToken::Operator(operator) => self.end_pipeline(Some(operator)),
        }
        Some(())
    }

    fn push_word(&mut self, word: ShellWord) -> Option<()> {
        if self.stage.is_empty() && word.quoted_at.is_none() {
            match word.text.as_str() {
                "{" | "!" => return Some(()),
                "}" => {
                    self.group_closed = true;
                    return Some(());
                }
                text if KEYWORDS.contains(&text) => return None,
                _ => {}
            }
        }
        self.stage.push(word);
        Some(())
    }

    fn end_stage(&mut self) {
        if self.stage.is_empty() {
            return;
        }
        let mut env = self.env.clone();
        let mut words = Vec::new();
        for word in self.stage.drain(..) {
            match assignment(&word).filter(|_| words.is_empty()) {
                Some(pair) => env.push(pair),
                None => words.push(word.text),
            }
        }
        self.pipeline.stages.push(SimpleCommand {
            words,
            env,
            cwd: self.cwd.clone(),
            argument_prefix: self.base.argument_prefix.clone(),
        });
    }

    fn end_pipeline(&mut self, after: Option<ListOperator>) {
        self.end_stage();
        if self.pipeline.stages.is_empty() {
            // `(a) &`: the operator is about what was closed before.
            if let (Some(last), true) = (self.pipelines.last_mut(), after.is_some()) {
                last.after = last.after.or(after);
            }
            return;
        }
        let mut pipeline = std::mem::take(&mut self.pipeline);
        pipeline.after = after;
        if let ([only], false) = (
            pipeline.stages.as_slice(),
            after == Some(ListOperator::Background),
        ) {
            self.apply_builtin(&only.clone());
        }
        self.pipelines.push(pipeline);
    }

    /// What a command does to those after it.
    fn apply_builtin(&mut self, call: &SimpleCommand) {
        match call.program() {
            "cd" | "pushd" => {
                let to = call.args().iter().find(|arg| *arg != "--");
                self.cwd = to.and_then(|to| resolve_path(self.cwd.as_deref(), to));
            }
            "export" => {
                let pairs = call.args().iter().filter_map(|arg| name_and_value(arg));
                let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
                self.env.extend(pairs.map(owned));
            }
            _ => {}
        }
    }
}

/// Chooses among a script's commands.
fn choose_commands(mut pipelines: Vec<Pipeline>, is_open_ended: bool) -> Vec<SimpleCommand> {
    let Some(last) = pipelines.pop() else {
        return Vec::new();
    };
    let waits = |call: &SimpleCommand| call.program() == "wait";
    if last.stages.first().is_some_and(waits) {
        let running = pipelines.into_iter().rev();
        let running = running.filter(|it| it.after == Some(ListOperator::Background));
        return running.filter_map(|it| main_command(it, false)).collect();
    }
    let mut commands = Vec::new();
    // `a || exit 1`: what comes last runs only where the other has failed.
    if pipelines
        .last()
        .is_some_and(|it| it.after == Some(ListOperator::Or))
    {
        commands.extend(pipelines.pop().and_then(|it| main_command(it, false)));
    }
    commands.extend(main_command(last, is_open_ended));
    commands
}

/// The command of a pipeline that matters, apart from filters and those that answer for it.
fn main_command(pipeline: Pipeline, is_open_ended: bool) -> Option<SimpleCommand> {
    let accepts_arguments = is_open_ended && pipeline.after.is_none() && pipeline.stages.len() == 1;
    let mut stages = pipeline.stages;
    while stages.len() > 1 && stages.last().is_some_and(is_filter) {
        stages.pop();
    }
    let is_answerer = |call: &SimpleCommand| ANSWERERS.contains(&base_name(call.program()));
    if stages.len() == 2 && stages.first().is_some_and(is_answerer) {
        stages.remove(0);
    }
    if stages.len() != 1 {
        return None;
    }
    let mut call = stages.pop()?;
    if !accepts_arguments {
        call.argument_prefix = None;
    }
    Some(call)
}

fn is_filter(call: &SimpleCommand) -> bool {
    let ends_early = |arg: &String| {
        let short = arg.starts_with('-') && !arg.starts_with("--");
        (short && arg.contains(['m', 'q'])) || arg == "--quiet" || arg.starts_with("--max-count")
    };
    let name = base_name(call.program());
    FILTERS.contains(&name) && !(name.ends_with("grep") && call.args().iter().any(ends_early))
}
