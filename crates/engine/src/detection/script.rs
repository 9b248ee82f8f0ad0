//! The command a shell script comes down to: the one it ends with.

use std::path::PathBuf;

use super::call::{Call, assignment, go, name_and_value};
use super::lex::{Operator, Token, Word, lex};
use super::words::base_name;

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
    stages: Vec<Call>,
    /// What comes after it.
    after: Option<Operator>,
}

/// The commands that may decide what a script is, best first; each runs where `base` does.
/// Empty for scripts that are more than lists of commands.
pub(super) fn deciding(
    script: &str,
    base: &Call,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Vec<Call> {
    let Some(pieces) = lex(script, variable) else {
        return Vec::new();
    };
    let mut reader = Reader::new(base);
    let tokens = pieces.tokens.into_iter();
    let open_end = !pieces.ends_in_comment && !script.ends_with('\n');
    match tokens.map(|token| reader.token(token)).collect() {
        Some(()) => {}
        None => return Vec::new(),
    }
    reader.end_pipeline(None);
    choose(reader.pipelines, open_end && !reader.closed)
}

struct Reader<'a> {
    base: &'a Call,
    cwd: Option<PathBuf>,
    env: Vec<(String, String)>,
    /// Directories to go back to at the ends of subshells.
    outer: Vec<Option<PathBuf>>,
    stage: Vec<Word>,
    pipeline: Pipeline,
    pipelines: Vec<Pipeline>,
    /// Whether a group was closed: text appended is outside of it.
    closed: bool,
}

impl<'a> Reader<'a> {
    fn new(base: &'a Call) -> Self {
        Self {
            base,
            cwd: base.cwd.clone(),
            env: base.env.clone(),
            outer: Vec::new(),
            stage: Vec::new(),
            pipeline: Pipeline::default(),
            pipelines: Vec::new(),
            closed: false,
        }
    }

    /// Takes one piece; none where it is more than a list of commands.
    fn token(&mut self, token: Token) -> Option<()> {
        match token {
            Token::Word(word) => return self.word(word),
            Token::Operator(Operator::Open) => {
                if !self.stage.is_empty() {
                    return None;
                }
                self.outer.push(self.cwd.clone());
            }
            Token::Operator(Operator::Close) => {
                self.end_pipeline(None);
                self.cwd = self.outer.pop()?;
                self.closed = true;
            }
            Token::Operator(Operator::Pipe) => self.end_stage(),
            Token::Operator(operator) => self.end_pipeline(Some(operator)),
        }
        Some(())
    }

    fn word(&mut self, word: Word) -> Option<()> {
        if self.stage.is_empty() && word.quoted_at.is_none() {
            match word.text.as_str() {
                "{" | "!" => return Some(()),
                "}" => {
                    self.closed = true;
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
        self.pipeline.stages.push(Call {
            words,
            env,
            cwd: self.cwd.clone(),
            lead: self.base.lead.clone(),
        });
    }

    fn end_pipeline(&mut self, after: Option<Operator>) {
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
            after == Some(Operator::Background),
        ) {
            self.effect(&only.clone());
        }
        self.pipelines.push(pipeline);
    }

    /// What a command does to those after it.
    fn effect(&mut self, call: &Call) {
        match call.program() {
            "cd" | "pushd" => {
                let to = call.args().iter().find(|arg| *arg != "--");
                self.cwd = to.and_then(|to| go(self.cwd.as_deref(), to));
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
fn choose(mut pipelines: Vec<Pipeline>, open_end: bool) -> Vec<Call> {
    let Some(last) = pipelines.pop() else {
        return Vec::new();
    };
    let waits = |call: &Call| call.program() == "wait";
    if last.stages.first().is_some_and(waits) {
        let running = pipelines.into_iter().rev();
        let running = running.filter(|it| it.after == Some(Operator::Background));
        return running.filter_map(|it| stage_of(it, false)).collect();
    }
    let mut chosen = Vec::new();
    // `a || exit 1`: what comes last runs only where the other has failed.
    if pipelines
        .last()
        .is_some_and(|it| it.after == Some(Operator::Or))
    {
        chosen.extend(pipelines.pop().and_then(|it| stage_of(it, false)));
    }
    chosen.extend(stage_of(last, open_end));
    chosen
}

/// The command of a pipeline that matters, apart from filters and those that answer for it.
fn stage_of(pipeline: Pipeline, open_end: bool) -> Option<Call> {
    let reached = open_end && pipeline.after.is_none() && pipeline.stages.len() == 1;
    let mut stages = pipeline.stages;
    while stages.len() > 1 && stages.last().is_some_and(is_filter) {
        stages.pop();
    }
    let answers = |call: &Call| ANSWERERS.contains(&base_name(call.program()));
    if stages.len() == 2 && stages.first().is_some_and(answers) {
        stages.remove(0);
    }
    if stages.len() != 1 {
        return None;
    }
    let mut call = stages.pop()?;
    if !reached {
        call.lead = None;
    }
    Some(call)
}

fn is_filter(call: &Call) -> bool {
    let ends_early = |arg: &String| {
        let short = arg.starts_with('-') && !arg.starts_with("--");
        (short && arg.contains(['m', 'q'])) || arg == "--quiet" || arg.starts_with("--max-count")
    };
    let name = base_name(call.program());
    FILTERS.contains(&name) && !(name.ends_with("grep") && call.args().iter().any(ends_early))
}
