//! Reads the corpora and evaluates their lines.

use ostler_model::{ByteString, Command};
use ostler_policy::{CommandContext, PolicyVerdict, RuleSet, RuleSource};

/// The shipped rules.
pub(crate) fn shipped() -> RuleSet {
    RuleSet::load(&RuleSource::shipped()).expect("the shipped rules")
}

/// The lines of a corpus; `# ` begins a comment, ␤ stands for a newline.
pub(crate) fn lines(corpus: &str) -> impl Iterator<Item = String> {
    let actual = corpus
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "));
    actual.map(|line| line.replace('␤', "\n"))
}

/// Evaluates `argv [...]`, `set NAME=VALUE SCRIPT` or a script.
pub(crate) fn judge(set: &RuleSet, line: &str) -> PolicyVerdict {
    let cwd = ByteString::from("/srv/project");
    let (variable, line) = match line.strip_prefix("set ") {
        Some(rest) if rest.contains('=') && rest.contains(' ') => {
            rest.split_once(' ').expect("a blank")
        }
        Some(_) | None => ("", line),
    };
    let command = match line.strip_prefix("argv ") {
        Some(words) => {
            let words: Vec<String> = serde_json::from_str(words).expect("a list of words");
            let mut words = words.into_iter().map(ByteString::from);
            Command::Argv {
                program: words.next().expect("a program"),
                args: words.collect(),
            }
        }
        None => Command::Shell {
            shell: "/bin/sh".into(),
            script: line.into(),
        },
    };
    let set_env: Vec<(ByteString, ByteString)> = variable
        .split_once('=')
        .map(|(name, value)| (name.into(), value.into()))
        .into_iter()
        .collect();
    set.evaluate(&CommandContext {
        set_env: &set_env,
        ..CommandContext::new(&command, &cwd)
    })
}
