//! Following every program into what it runs in turn.

use super::{builtins, code, editors, find, git, runners, wrappers};
use crate::seen::{Call, Seen, Use, Variable};
use crate::shell::read_script;
use crate::word::{Word, base_name, texts};

/// Programs behind programs, at most.
const DEPTH: usize = 12;
/// Calls of one command line that are looked at, at most.
const CALLS: usize = 4_096;

/// What a program was given to run.
#[derive(Debug, Default)]
pub(crate) struct Given {
    /// Programs with their arguments.
    pub(super) commands: Vec<Vec<Word>>,
    /// Scripts for a POSIX shell.
    pub(super) scripts: Vec<String>,
    /// Variables set for it.
    pub(super) variables: Vec<Variable>,
    /// What was not understood.
    pub(crate) doubts: Vec<String>,
    /// Variables whose values decide what runs.
    pub(crate) uses: Vec<Use>,
    /// Whether the shell that reads the scripts is bash.
    pub(super) bash: bool,
    /// Whether the program does nothing besides.
    pub(super) transparent: bool,
    /// The words the program itself is to be judged by, where its own options hide them.
    pub(super) plain: Option<Vec<Word>>,
}

impl Given {
    pub(super) fn doubt(what: impl Into<String>) -> Self {
        Self {
            doubts: vec![what.into()],
            ..Self::default()
        }
    }
}

/// Follows every call into what it runs in turn.
pub(crate) fn expand(seen: Seen) -> Seen {
    let mut all = Seen {
        calls: Vec::new(),
        ..seen
    };
    let mut level = seen.calls;
    for _ in 0..DEPTH {
        let mut next = Vec::new();
        for call in level {
            if all.calls.len() >= CALLS {
                all.doubt("more commands than are looked at", &call.words);
                return all;
            }
            next.extend(step(call, &mut all));
        }
        if next.is_empty() {
            return all;
        }
        level = next;
    }
    all.doubts
        .extend(level.iter().map(|call| crate::seen::Doubt {
            what: format!("more than {DEPTH} programs behind one another"),
            words: texts(&call.words),
        }));
    all.calls.extend(level);
    all
}

/// One call: what it runs, and the call itself.
fn step(mut call: Call, all: &mut Seen) -> Vec<Call> {
    let Some(program) = call.words.first() else {
        return Vec::new();
    };
    let name = base_name(&program.text).to_owned();
    let given = look(&name, call.words.get(1..).unwrap_or_default());
    let mut inner = Vec::new();
    for script in &given.scripts {
        let mut seen = Seen::default();
        read_script(script, given.bash, &mut seen);
        inner.append(&mut seen.calls);
        all.doubts.append(&mut seen.doubts);
        all.redirects.append(&mut seen.redirects);
        all.variables.append(&mut seen.variables);
        all.uses.append(&mut seen.uses);
    }
    inner.extend(given.commands.into_iter().map(Call::new));
    let doubtful = !given.doubts.is_empty();
    for doubt in given.doubts {
        all.doubt(doubt, &call.words);
    }
    if doubtful && call.certain {
        // Whatever follows may be what runs.
        let suffixes = 1..call.words.len().min(SUFFIXES);
        inner.extend(suffixes.map(|from| Call::guess(call.words[from..].to_vec())));
    }
    for one in &mut inner {
        one.certain &= call.certain;
    }
    all.variables.extend(given.variables);
    all.uses.extend(given.uses);
    call.transparent = given.transparent && !inner.is_empty();
    if let Some(mut plain) = given.plain {
        plain.insert(0, call.words[0].clone());
        call.words = plain;
    }
    all.calls.push(call);
    inner
}

/// How many words behind a doubtful program are taken for the beginning of another.
const SUFFIXES: usize = 24;

fn look(name: &str, args: &[Word]) -> Given {
    if let Some(given) = wrappers::look(name, args) {
        return given;
    }
    if let Some(given) = builtins::look(name, args).or_else(|| runners::look(name, args)) {
        return given;
    }
    match name {
        "find" | "gfind" => find::look(args),
        "git" => git::look(args),
        "sed" | "gsed" => editors::sed(args),
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => editors::awk(args),
        _ => code::look(name, args),
    }
}
