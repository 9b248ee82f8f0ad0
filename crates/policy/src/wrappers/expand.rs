//! Follows every program into what it runs in turn.

use super::option_scripts::option_scripts;
use super::{builtins, command_wrappers, find, git, interpreters, jq, sed_awk, test_runners};
use crate::analysis::{Analysis, Invocation, VariableAssignment, VariableUse};
use crate::shell::read_script;
use crate::word::{CommandWord, base_name, texts};

/// The greatest nesting of wrappers.
const DEPTH_MAX: usize = 12;
/// The most invocations of one command line that are analysed.
const INVOCATIONS_MAX: usize = 4_096;

/// What a program was given to run.
#[derive(Debug, Default)]
pub(crate) struct InnerCommands {
    /// Programs with their arguments.
    pub(super) commands: Vec<Vec<CommandWord>>,
    /// Programs that a launcher runs.
    pub(super) launched: Vec<Vec<CommandWord>>,
    /// Scripts for a POSIX shell.
    pub(super) scripts: Vec<String>,
    /// Variables set for it.
    pub(super) variables: Vec<VariableAssignment>,
    /// Parts that were not understood.
    pub(crate) unresolved: Vec<String>,
    /// Variables whose values decide what runs.
    pub(crate) uses: Vec<VariableUse>,
    /// Whether the shell that runs the scripts is bash.
    pub(super) bash: bool,
    /// Whether the program does nothing else.
    pub(super) transparent: bool,
    /// The words by which the program itself is evaluated, where its own options hide them.
    pub(super) rewritten_args: Option<Vec<CommandWord>>,
}

impl InnerCommands {
    pub(super) fn unresolved(reason: impl Into<String>) -> Self {
        Self {
            unresolved: vec![reason.into()],
            ..Self::default()
        }
    }
}

/// Expands every invocation.
pub(crate) fn expand(analysis: Analysis) -> Analysis {
    let mut all = Analysis {
        invocations: Vec::new(),
        ..analysis
    };
    let mut level = analysis.invocations;
    for _ in 0..DEPTH_MAX {
        let mut next = Vec::new();
        for invocation in level {
            if all.invocations.len() >= INVOCATIONS_MAX {
                all.add_unresolved("more commands than are looked at", &invocation.words);
                return all;
            }
            next.extend(expand_one(invocation, &mut all));
        }
        if next.is_empty() {
            return all;
        }
        level = next;
    }
    all.unresolved
        .extend(level.iter().map(|call| crate::analysis::Unresolved {
            reason: format!("more than {DEPTH_MAX} programs behind one another"),
            words: texts(&call.words),
        }));
    all.invocations.extend(level);
    all
}

/// Expands one invocation: what it runs, and the invocation itself.
fn expand_one(mut invocation: Invocation, all: &mut Analysis) -> Vec<Invocation> {
    let Some(program) = invocation.words.first() else {
        return Vec::new();
    };
    let name = base_name(&program.text).to_owned();
    let inner_commands = analyze(&name, invocation.words.get(1..).unwrap_or_default());
    let mut inner = Vec::new();
    let mut own = Analysis::default();
    for script in &inner_commands.scripts {
        let mut script_analysis = Analysis::default();
        read_script(script, inner_commands.bash, &mut script_analysis);
        inner.append(&mut script_analysis.invocations);
        own.append(script_analysis);
    }
    inner.extend(inner_commands.commands.into_iter().map(Invocation::new));
    inner.extend(
        inner_commands
            .launched
            .into_iter()
            .map(Invocation::launched),
    );
    let has_unresolved = !inner_commands.unresolved.is_empty();
    for reason in inner_commands.unresolved {
        own.add_unresolved(reason, &invocation.words);
    }
    if has_unresolved && invocation.tries_suffixes {
        // Any of the following words may be what runs.
        let suffixes = 1..invocation.words.len().min(SUFFIXES_MAX);
        inner.extend(suffixes.map(|from| Invocation::guess(invocation.words[from..].to_vec())));
    }
    own.variables.extend(inner_commands.variables);
    own.uses.extend(inner_commands.uses);
    for one in &mut inner {
        one.certain &= invocation.certain;
        one.launched |= invocation.launched;
        one.tries_suffixes &= invocation.tries_suffixes;
    }
    if !invocation.launched {
        all.append(own);
    }
    invocation.transparent = inner_commands.transparent && !inner.is_empty();
    if let Some(mut plain) = inner_commands.rewritten_args {
        plain.insert(0, invocation.words[0].clone());
        invocation.words = plain;
    }
    all.invocations.push(invocation);
    inner
}

/// How many words after an unresolved program are tried as the beginning of another.
const SUFFIXES_MAX: usize = 24;

fn analyze(name: &str, args: &[CommandWord]) -> InnerCommands {
    let mut inner = analyze_program(name, args);
    inner.launched = command_wrappers::launched_commands(name, args);
    if let Some(subcommand) = name.strip_prefix("git-") {
        // The programs behind the subcommands of git are files of their own, too.
        let git = ["git", subcommand].map(CommandWord::certain);
        inner
            .launched
            .push(git.into_iter().chain(args.iter().cloned()).collect());
    }
    let scripts = option_scripts(name, args);
    if !scripts.is_empty() {
        let reason = format!("an option of '{name}' with a script");
        inner.unresolved.push(reason);
        inner.scripts.extend(scripts);
    }
    inner
}

fn analyze_program(name: &str, args: &[CommandWord]) -> InnerCommands {
    if let Some(given) = command_wrappers::analyze(name, args) {
        return given;
    }
    if let Some(given) = builtins::analyze(name, args).or_else(|| test_runners::analyze(name, args))
    {
        return given;
    }
    match name {
        "find" | "gfind" => find::analyze(args),
        "git" => git::analyze(args),
        "jq" => jq::analyze(args),
        "sed" | "gsed" => sed_awk::analyze_sed(args),
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => sed_awk::analyze_awk(args),
        _ => interpreters::analyze(name, args),
    }
}
