//! Whether `git commit` opens an editor: one that reads a pipe takes commands from it.

use crate::word::CommandWord;

/// What a word of `git commit` says about the editor.
enum MessageWord {
    /// Nothing.
    Neutral,
    /// Nothing; the next word is its value.
    Valued,
    /// The message is given, or none is needed.
    Message,
    /// The same by the next word.
    MessageBehind,
    /// An editor is opened, or the option is not known.
    Editor,
}

/// Whether the message is not given, or an option asks for an editor.
pub(super) fn opens_editor(args: &[CommandWord]) -> bool {
    let mut has_message = false;
    let mut words = args.iter().map(|word| word.text.as_str());
    while let Some(word) = words.next().filter(|word| *word != "--") {
        match classify(word) {
            MessageWord::Neutral => {}
            MessageWord::Message => has_message = true,
            MessageWord::Editor => return true,
            MessageWord::Valued => {
                words.next();
            }
            MessageWord::MessageBehind => {
                has_message = true;
                words.next();
            }
        }
    }
    !has_message
}

fn classify(word: &str) -> MessageWord {
    if let Some(option) = word.strip_prefix("--") {
        return classify_long(option);
    }
    word.strip_prefix('-')
        .map_or(MessageWord::Neutral, classify_letters)
}

fn classify_long(option: &str) -> MessageWord {
    /// Options without a value, or with one that is joined, that do not concern the message.
    const FLAGS: [&str; 19] = [
        "all",
        "allow-empty",
        "allow-empty-message",
        "amend",
        "gpg-sign",
        "include",
        "no-gpg-sign",
        "no-post-rewrite",
        "no-signoff",
        "no-status",
        "no-verify",
        "only",
        "quiet",
        "reset-author",
        "signoff",
        "status",
        "untracked-files",
        "verbose",
        "verify",
    ];
    let (name, value) = option.split_once('=').unzip();
    let name = name.unwrap_or(option);
    match (name, value) {
        ("message" | "file" | "reuse-message", Some(_)) => MessageWord::Message,
        ("message" | "file" | "reuse-message", None) => MessageWord::MessageBehind,
        ("no-edit" | "dry-run" | "short" | "porcelain" | "help", _) => MessageWord::Message,
        ("fixup", Some(value)) if !value.contains(':') => MessageWord::Message,
        ("author" | "date" | "trailer" | "cleanup" | "pathspec-from-file", None) => {
            MessageWord::Valued
        }
        ("author" | "date" | "trailer" | "cleanup" | "pathspec-from-file", Some(_)) => {
            MessageWord::Neutral
        }
        _ if FLAGS.contains(&name) => MessageWord::Neutral,
        _ => MessageWord::Editor,
    }
}

fn classify_letters(letters: &str) -> MessageWord {
    let behind = letters.trim_start_matches(|c| "aqvnsoiz".contains(c));
    let mut rest = behind.chars();
    match rest.next() {
        None | Some('S' | 'u') => MessageWord::Neutral,
        Some('m' | 'F' | 'C') if rest.as_str().is_empty() => MessageWord::MessageBehind,
        Some('m' | 'F' | 'C' | 'h') => MessageWord::Message,
        Some(_) => MessageWord::Editor,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_editor_is_opened_where_no_message_is_given() {
        let words = |line: &str| -> Vec<CommandWord> {
            line.split_whitespace().map(CommandWord::certain).collect()
        };
        for line in [
            "",
            "-a",
            "--amend",
            "-v",
            "--author -m",
            "-m x -e",
            "-em x",
            "--edit -m x",
            "--ed -m x",
            "-c HEAD",
            "-t x",
            "--squash HEAD",
            "--fixup=amend:HEAD",
            "-p -m x",
            "--interactive",
            "-- -m",
            "--date -am x",
        ] {
            assert!(opens_editor(&words(line)), "{line}");
        }
        for line in [
            "-m x",
            "-mx",
            "-am x",
            "-qam x",
            "--message=x",
            "--amend --no-edit",
            "-F x",
            "-C HEAD",
            "-S -m x",
            "--fixup=HEAD",
            "--dry-run",
            "--author=a -m x f -- g",
        ] {
            assert!(!opens_editor(&words(line)), "{line}");
        }
    }
}
