//! Shell integration: scripts that a shell loads at its start, and that make it print marks.

use ostler_model::{ByteString, ShellKind, ShellSession};

/// A file of the integration, by its path below the common directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptFile {
    /// The relative path, for example `zsh/.zshenv`.
    pub path: &'static str,
    /// The content.
    pub text: &'static str,
}

/// Every file of every integration, to be written below one directory, `scripts` of [`shell_launch`].
pub const SCRIPTS: &[ScriptFile] = &[
    ScriptFile {
        path: BASH_RC,
        text: include_str!("scripts/bash/rc.bash"),
    },
    ScriptFile {
        path: "zsh/.zshenv",
        text: include_str!("scripts/zsh/zshenv.zsh"),
    },
    ScriptFile {
        path: "zsh/.zshrc",
        text: include_str!("scripts/zsh/zshrc.zsh"),
    },
    ScriptFile {
        path: FISH_INIT,
        text: include_str!("scripts/fish/init.fish"),
    },
];

const BASH_RC: &str = "bash/rc.bash";
const ZSH_DIRECTORY: &str = "zsh";
const FISH_INIT: &str = "fish/init.fish";

/// The variable that passes the nonce to the script, which removes it from the environment first.
const NONCE: &str = "OSTLER_SHELL_NONCE";
/// Set for a shell that programs type into: it does not expand history, so that an exclamation mark
/// is one. The script removes it from the environment.
pub const LITERAL_INPUT: &str = "OSTLER_SHELL_LITERAL";
/// The directory where zsh looks for its startup files.
const ZDOTDIR: &str = "ZDOTDIR";
/// The user's own [`ZDOTDIR`], for the script to restore.
const OWN_ZDOTDIR: &str = "OSTLER_SHELL_ZDOTDIR";

/// The arguments and environment of an integrated shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellLaunch {
    /// The arguments after the program.
    pub args: Vec<ByteString>,
    /// Variables to be set in addition to its environment.
    pub set_env: Vec<(ByteString, ByteString)>,
}

/// Builds the launch of a shell that loads its script from the directory `scripts`; `base_env` is
/// the environment it would have (zsh's own `ZDOTDIR` is kept for the user's files).
#[must_use]
pub fn shell_launch(
    session: &ShellSession,
    scripts: &ByteString,
    base_env: &[(ByteString, ByteString)],
) -> ShellLaunch {
    let mut set_env = vec![(
        ByteString::from(NONCE),
        ByteString::from(session.nonce.as_str()),
    )];
    let args = match session.kind {
        ShellKind::Bash => vec![ByteString::from("--rcfile"), join_path(scripts, BASH_RC)],
        ShellKind::Zsh => {
            set_env.push((ByteString::from(ZDOTDIR), join_path(scripts, ZSH_DIRECTORY)));
            let own = base_env
                .iter()
                .find(|(name, _)| *name == ByteString::from(ZDOTDIR));
            set_env.extend(own.map(|(_, own)| (ByteString::from(OWN_ZDOTDIR), own.clone())));
            Vec::new()
        }
        ShellKind::Fish => {
            let source = [&b"source "[..], &fish_quote(&join_path(scripts, FISH_INIT))].concat();
            vec![ByteString::from("--init-command"), ByteString::from(source)]
        }
    };
    ShellLaunch { args, set_env }
}

fn join_path(directory: &ByteString, path: &str) -> ByteString {
    ByteString::from([directory.as_bytes(), b"/", path.as_bytes()].concat())
}

/// Quotes a word for fish: within single quotes only `'` and `\` need an escape.
fn fish_quote(word: &ByteString) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for byte in word.as_bytes() {
        if matches!(byte, b'\'' | b'\\') {
            quoted.push(b'\\');
        }
        quoted.push(*byte);
    }
    quoted.push(b'\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(kind: ShellKind) -> ShellSession {
        ShellSession {
            kind,
            nonce: "n0".to_owned(),
        }
    }

    fn variable<'a>(launch: &'a ShellLaunch, name: &str) -> Option<&'a ByteString> {
        let found = launch
            .set_env
            .iter()
            .find(|(it, _)| *it == ByteString::from(name));
        found.map(|(_, value)| value)
    }

    #[test]
    fn bash_reads_our_file_as_its_own() {
        let launch = shell_launch(&session(ShellKind::Bash), &"/s p".into(), &[]);
        assert_eq!(
            launch.args,
            [ByteString::from("--rcfile"), "/s p/bash/rc.bash".into()]
        );
        assert_eq!(variable(&launch, NONCE), Some(&"n0".into()));
    }

    #[test]
    fn zsh_finds_our_directory_and_keeps_the_persons() {
        let none = shell_launch(&session(ShellKind::Zsh), &"/s".into(), &[]);
        assert_eq!(variable(&none, ZDOTDIR), Some(&"/s/zsh".into()));
        assert_eq!(variable(&none, OWN_ZDOTDIR), None);
        let own = [(ByteString::from(ZDOTDIR), ByteString::from("/home/me/.zsh"))];
        let kept = shell_launch(&session(ShellKind::Zsh), &"/s".into(), &own);
        assert_eq!(variable(&kept, ZDOTDIR), Some(&"/s/zsh".into()));
        assert_eq!(variable(&kept, OWN_ZDOTDIR), Some(&"/home/me/.zsh".into()));
    }

    #[test]
    fn fish_gets_the_path_as_one_word() {
        let launch = shell_launch(&session(ShellKind::Fish), &r"/it's \ here".into(), &[]);
        let source = ByteString::from(r"source '/it\'s \\ here/fish/init.fish'");
        assert_eq!(launch.args, [ByteString::from("--init-command"), source]);
    }

    #[test]
    fn every_file_that_is_named_is_there() {
        let paths: Vec<&str> = SCRIPTS.iter().map(|file| file.path).collect();
        assert_eq!(paths, [BASH_RC, "zsh/.zshenv", "zsh/.zshrc", FISH_INIT]);
        let taking = SCRIPTS.iter().filter(|file| file.text.contains(NONCE));
        assert_eq!(taking.count(), 3);
    }
}
