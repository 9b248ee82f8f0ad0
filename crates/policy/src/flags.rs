//! Matches options in all their spellings.

use crate::word::CommandWord;

/// Whether `flag` is among `words`: alone, with a joined value, in a cluster of short ones, or
/// abbreviated as getopt_long(3) lets long ones be. Errs on the side of finding it.
pub(crate) fn has_flag(words: &[CommandWord], flag: &str) -> bool {
    words.iter().any(|word| is_flag(&word.text, flag))
}

/// Whether one word is `flag` in one of its spellings.
pub(crate) fn is_flag(word: &str, flag: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    if let Some(long) = flag.strip_prefix("--") {
        let typed = name.strip_prefix("--").unwrap_or_default();
        return !typed.is_empty() && long.starts_with(typed);
    }
    let Some(letters) = flag.strip_prefix('-') else {
        return word == flag;
    };
    let Some(typed) = word.strip_prefix('-') else {
        return false;
    };
    if letters.chars().count() > 1 {
        // A long option with one dash; some programs take it with two as well.
        let name = typed.strip_prefix('-').unwrap_or(typed);
        return name.split('=').next() == Some(letters);
    }
    let cluster = typed.split(|c: char| !c.is_ascii_alphanumeric()).next();
    !typed.starts_with('-') && cluster.is_some_and(|cluster| cluster.contains(letters))
}

#[cfg(test)]
mod tests {
    use super::is_flag;

    #[test]
    fn all_spellings() {
        for (word, flag, is) in [
            ("-r", "-r", true),
            ("-rf", "-r", true),
            ("-fr", "-r", true),
            ("-f", "-r", false),
            ("--recursive", "--recursive", true),
            ("--rec", "--recursive", true),
            ("--r", "--recursive", true),
            ("--recursively", "--recursive", false),
            ("--output=x", "--output", true),
            ("--out=x", "--output", true),
            ("--", "--output", false),
            ("-", "-r", false),
            ("-ofile", "-o", true),
            ("-exec", "-exec", true),
            ("--exec", "-exec", true),
            ("-exec=x", "-exec", true),
            ("-execute", "-exec", false),
            ("recursive", "-r", false),
            ("SHELL=x", "SHELL=x", true),
        ] {
            assert_eq!(is_flag(word, flag), is, "{word} {flag}");
        }
    }
}
