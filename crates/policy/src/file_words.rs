//! Finds words of a command line that may name a file whose content runs: programs, and the files
//! interpreters are given.

use ostler_model::Command;

use crate::analysis::{Invocation, STARTUP_VARIABLES};
use crate::analyze::analyze_command;
use crate::flags::is_flag;
use crate::word::{CommandWord, base_name};
use crate::wrappers::{loads_files, reads_code_from_input, runs_its_operand};

/// One word that may name such a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWord {
    /// The word.
    pub text: String,
    /// Its role for the program.
    pub role: FileRole,
}

/// The role of a word for its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRole {
    /// The program: a name for the search path, or a path.
    Program,
    /// A file that a program runs or loads code from.
    Script,
    /// An argument of the interpreter with this number: of these, the first that names a file is
    /// what it runs.
    Operand(usize),
    /// Any other argument: a program that is not analysed may run it.
    Argument,
}

/// The words, and the directories besides the working one against which relative paths may be
/// resolved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileWords {
    /// The words, in order.
    pub words: Vec<FileWord>,
    /// The directories the command line changes to.
    pub directories: Vec<String>,
}

/// The words of a command that may name a file whose content runs.
#[must_use]
pub fn file_words(command: &Command) -> FileWords {
    let analysis = analyze_command(command);
    let mut found = FileWords::default();
    for (number, call) in analysis.invocations.iter().enumerate() {
        found.collect(call, number);
    }
    for redirect in analysis
        .redirects
        .iter()
        .filter(|redirect| !redirect.writes)
    {
        found.add(&redirect.target, FileRole::Script);
    }
    for file in &analysis.startup_files {
        found.push(file, FileRole::Script);
    }
    if analysis.invocations.iter().any(reads_input) {
        found.bind_arguments();
    }
    found
}

/// Whether it runs what another program of the command line writes.
fn reads_input(invocation: &Invocation) -> bool {
    let words = invocation.words.split_first();
    words.is_some_and(|(program, args)| reads_code_from_input(base_name(&program.text), args))
}

impl FileWords {
    /// Any file that a program reads may become the code that another one takes from its input.
    fn bind_arguments(&mut self) {
        for word in &mut self.words {
            if word.role == FileRole::Argument {
                word.role = FileRole::Script;
            }
        }
    }

    fn collect(&mut self, invocation: &Invocation, number: usize) {
        let Some((program, args)) = invocation.words.split_first() else {
            return;
        };
        self.add(program, FileRole::Program);
        let name = base_name(&program.text);
        if matches!(name, "cd" | "pushd") {
            let plain = args.iter().filter(|word| !word.text.starts_with('-'));
            self.directories.extend(plain.map(|word| word.text.clone()));
            return;
        }
        let flags = loads_files(name);
        let runs_operand = runs_its_operand(name);
        let mut is_value = false;
        for word in args {
            let is_option = word.text.starts_with('-');
            let role = match (is_value, is_option, runs_operand) {
                (true, ..) => FileRole::Script,
                (false, false, true) => FileRole::Operand(number),
                (false, ..) => FileRole::Argument,
            };
            is_value = !is_value && is_option && flags.iter().any(|flag| is_flag(&word.text, flag));
            let is_bound = |name: &str| is_option || STARTUP_VARIABLES.contains(&name);
            let value = word.text.split_once('=').filter(|it| is_bound(it.0));
            match value {
                Some((_, value)) => self.push(value, FileRole::Script),
                None => self.add(word, role),
            }
        }
    }

    fn add(&mut self, word: &CommandWord, role: FileRole) {
        self.push(&word.text, role);
    }

    fn push(&mut self, text: &str, role: FileRole) {
        let text = text.to_owned();
        self.words.push(FileWord { text, role });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FileRole::{Argument, Operand, Program, Script};

    fn script(text: &str) -> FileWords {
        file_words(&Command::Shell {
            shell: "/bin/sh".into(),
            script: text.into(),
        })
    }

    /// The roles a word has.
    fn roles(text: &str, word: &str) -> Vec<FileRole> {
        let found = script(text);
        let same = found.words.iter().filter(|it| it.text == word);
        same.map(|it| it.role).collect()
    }

    #[test]
    fn programs_are_named_behind_wrappers_and_operators() {
        for text in [
            "./deploy.sh now",
            "make && ./deploy.sh",
            "env A=1 timeout 5 ./deploy.sh",
            "find . -exec ./deploy.sh {} +",
            "sudo ./deploy.sh",
            ". ./deploy.sh",
            "(cd x; ./deploy.sh)",
            "unknown --wrapper ./deploy.sh",
        ] {
            let roles = roles(text, "./deploy.sh");
            assert!(
                roles.contains(&Program) || roles.contains(&Argument),
                "{text}: {roles:?}"
            );
        }
    }

    #[test]
    fn interpreters_run_their_operand_and_load_what_options_name() {
        assert!(matches!(roles("python3 -u x.py", "x.py")[..], [Operand(_)]));
        assert!(matches!(roles("bash x.sh", "x.sh")[..], [Operand(_), ..]));
        assert!(roles("node -r ./hook.js app.js", "./hook.js").contains(&Script));
        assert!(matches!(
            roles("node -r ./hook.js app.js", "app.js")[..],
            [Operand(_), ..]
        ));
        assert!(roles("node --require=./hook.js app.js", "./hook.js").contains(&Script));
        assert!(roles("make -f other.mk", "other.mk").contains(&Script));
        assert!(roles("python3 < x.py", "x.py").contains(&Script));
        assert!(
            roles("cat app.log", "app.log")
                .iter()
                .all(|role| *role == Argument)
        );
    }

    #[test]
    fn files_that_a_shell_is_given_in_other_ways_are_scripts() {
        for text in [
            "bash -c 'source x.txt'",
            ". x.txt",
            "sh -c 'cat x.txt | sh'",
            "cat x.txt | bash -s a",
            "sed s/a/b/ x.txt | tee y | python3",
            "cat x.txt | python3 -",
            "env BASH_ENV=x.txt bash -c true",
            "env ENV=x.txt sh -ic true",
            "BASH_ENV=x.txt bash -c true",
            "export ENV=x.txt; sh -i",
        ] {
            let roles = roles(text, "x.txt");
            let binds = |role: &FileRole| matches!(role, Script | Operand(_));
            assert!(roles.iter().any(binds), "{text}: {roles:?}");
        }
        for text in [
            "cat x.txt | wc",
            "bash y.sh x.txt",
            "sh -c 'cat x.txt'",
            "env A=x.txt ls",
        ] {
            let roles = roles(text, "x.txt");
            assert!(!roles.contains(&Script), "{text}: {roles:?}");
        }
    }

    #[test]
    fn directories_of_a_script_are_found() {
        assert_eq!(script("cd sub && ./x.sh").directories, ["sub"]);
    }
}
