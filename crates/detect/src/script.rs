//! Chooses the simple command that decides whether a shell script is a service.

use std::path::PathBuf;

use ostler_policy::{ListOperator, ListStep, ListedCommand, command_list};

use super::arguments::base_name;
use super::simple_command::{SimpleCommand, name_and_value, resolve_path};

/// Programs after a `|` that copy their input until it ends.
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
/// Programs before a `|` that only answer prompts.
const ANSWERERS: [&str; 4] = ["echo", "yes", "printf", "true"];

/// A list of simple commands joined by `|`.
#[derive(Debug, Default)]
struct Pipeline {
    stages: Vec<SimpleCommand>,
    /// The operator after it.
    after: Option<ListOperator>,
}

/// The commands that may decide, best first; `base` has their initial directory and variables. Empty
/// for scripts that are more than lists of commands.
pub(super) fn deciding_commands(
    script: &str,
    base: &SimpleCommand,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Vec<SimpleCommand> {
    let Some(list) = command_list(script) else {
        return Vec::new();
    };
    let is_open_ended = !list.ends_in_comment && !script.ends_with('\n');
    let mut reader = PipelineReader::new(base, variable);
    let steps = list.steps.into_iter();
    match steps.map(|step| reader.push_step(step)).collect() {
        Some(()) => {}
        None => return Vec::new(),
    }
    reader.end_pipeline(None);
    choose_commands(reader.pipelines, is_open_ended && !reader.group_closed)
}

struct PipelineReader<'a> {
    base: &'a SimpleCommand,
    variable: &'a dyn Fn(&str) -> Option<String>,
    cwd: Option<PathBuf>,
    env: Vec<(String, String)>,
    /// The directories to restore at the ends of subshells.
    saved_dirs: Vec<Option<PathBuf>>,
    stage: Option<ListedCommand>,
    pipeline: Pipeline,
    pipelines: Vec<Pipeline>,
    /// Whether a group was closed: appended text is outside of it.
    group_closed: bool,
}

impl<'a> PipelineReader<'a> {
    fn new(base: &'a SimpleCommand, variable: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self {
            base,
            variable,
            cwd: base.cwd.clone(),
            env: base.env.clone(),
            saved_dirs: Vec::new(),
            stage: None,
            pipeline: Pipeline::default(),
            pipelines: Vec::new(),
            group_closed: false,
        }
    }

    /// Adds one step; none where the steps are no list of commands.
    fn push_step(&mut self, step: ListStep) -> Option<()> {
        match step {
            ListStep::Command(command) => {
                if self.stage.replace(command).is_some() {
                    return None;
                }
            }
            ListStep::SubshellStart => {
                if self.stage.is_some() {
                    return None;
                }
                self.saved_dirs.push(self.cwd.clone());
            }
            ListStep::SubshellEnd => {
                self.end_pipeline(None);
                self.cwd = self.saved_dirs.pop()?;
                self.group_closed = true;
            }
            ListStep::GroupEnd => self.group_closed = true,
            ListStep::Operator(ListOperator::Pipe) => self.end_stage(),
            ListStep::Operator(operator) => self.end_pipeline(Some(operator)),
        }
        Some(())
    }

    fn end_stage(&mut self) {
        let Some(command) = self.stage.take() else {
            return;
        };
        let mut env = self.env.clone();
        let assignments = command.assignments.into_iter();
        env.extend(assignments.map(|it| (it.name, it.value.expand(self.variable))));
        let words = command.words.iter();
        self.pipeline.stages.push(SimpleCommand {
            words: words.map(|word| word.expand(self.variable)).collect(),
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

    /// Applies `cd` and `export` to the commands after them.
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

/// The command of a pipeline without its filters and answerers.
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
