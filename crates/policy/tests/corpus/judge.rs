//! Reading the corpora, and judging their lines.

use ostler_model::{Command, Text};
use ostler_policy::{PolicySet, Source, Subject, Verdict};

/// The shipped rules.
pub(crate) fn shipped() -> PolicySet {
    PolicySet::load(&Source::shipped()).expect("the shipped rules")
}

/// The lines of a corpus; `# ` begins a comment, ␤ stands for a newline.
pub(crate) fn lines(corpus: &str) -> impl Iterator<Item = String> {
    let told = corpus
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "));
    told.map(|line| line.replace('␤', "\n"))
}

/// Judges `argv [...]`, `set NAME=VALUE SCRIPT` or a script.
pub(crate) fn judge(set: &PolicySet, line: &str) -> Verdict {
    let cwd = Text::from("/srv/project");
    let (variable, line) = match line.strip_prefix("set ") {
        Some(rest) if rest.contains('=') && rest.contains(' ') => {
            rest.split_once(' ').expect("a blank")
        }
        Some(_) | None => ("", line),
    };
    let command = match line.strip_prefix("argv ") {
        Some(words) => {
            let words: Vec<String> = serde_json::from_str(words).expect("a list of words");
            let mut words = words.into_iter().map(Text::from);
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
    let set_env: Vec<(Text, Text)> = variable
        .split_once('=')
        .map(|(name, value)| (name.into(), value.into()))
        .into_iter()
        .collect();
    set.judge(&Subject {
        set_env: &set_env,
        ..Subject::new(&command, &cwd)
    })
}
