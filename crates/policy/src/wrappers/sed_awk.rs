//! `sed` and `awk`: programs in a language that can run others.

use super::InnerCommands;
use crate::flags::is_flag;
use crate::word::CommandWord;

/// Accepts only scripts of plain addresses, substitutions and printing.
pub(super) fn analyze_sed(args: &[CommandWord]) -> InnerCommands {
    let mut inner = InnerCommands::default();
    let mut scripts: Vec<&CommandWord> = Vec::new();
    let mut named = false;
    let mut operands: Vec<&CommandWord> = Vec::new();
    let mut at = 0;
    while let Some(word) = args.get(at) {
        at += 1;
        let text = word.text.as_str();
        match text {
            "-e" | "--expression" => {
                named = true;
                scripts.extend(args.get(at));
                at += 1;
            }
            "-n" | "-E" | "-r" | "-s" | "-z" | "-u" | "-nE" | "-En" | "-nr" | "--quiet"
            | "--silent" | "--regexp-extended" | "--version" | "--posix" | "--sandbox" => {}
            // Editing in place is left to the rules; the script still counts.
            _ if is_flag(text, "--in-place") || text.starts_with("-i") => {}
            _ if text.starts_with('-') && text != "-" => {
                inner.unresolved.push(format!("'{text}' of 'sed'"));
            }
            _ => operands.push(word),
        }
    }
    if !named && !operands.is_empty() {
        scripts.push(operands.remove(0));
    }
    for script in scripts {
        if !script.is_certain() || !is_plain_sed(&script.text) {
            inner
                .unresolved
                .push("a script of 'sed' that is not understood".to_owned());
        }
    }
    inner
}

fn is_plain_sed(script: &str) -> bool {
    let mut rest = script.trim_start_matches([' ', ';', '\n']);
    while !rest.is_empty() {
        let Some(next) = sed_command(rest) else {
            return false;
        };
        let next = next.trim_start_matches([' ', '\t']);
        if !next.is_empty() && !next.starts_with([';', '\n']) {
            return false;
        }
        rest = next.trim_start_matches([' ', ';', '\n']);
    }
    true
}

/// The text after one understood command.
fn sed_command(text: &str) -> Option<&str> {
    let mut rest = sed_address(text)?;
    if let Some(second) = rest.strip_prefix(',') {
        rest = sed_address(second)?;
    }
    let rest = rest.trim_start_matches([' ', '!']);
    let mut chars = rest.chars();
    match chars.next()? {
        'p' | 'd' | '=' | 'D' | 'P' | 'h' | 'H' | 'g' | 'G' | 'x' | 'n' | 'N' | 'l' => {
            Some(chars.as_str())
        }
        'q' => Some(
            chars
                .as_str()
                .trim_start_matches(|c: char| c.is_ascii_digit()),
        ),
        's' => {
            let rest = delimited(chars.as_str(), 2)?;
            // Neither 'e' nor 'w'.
            Some(rest.trim_start_matches(|c: char| "gpiI".contains(c) || c.is_ascii_digit()))
        }
        'y' => delimited(chars.as_str(), 2),
        _ => None,
    }
}

fn sed_address(text: &str) -> Option<&str> {
    if let Some(regex) = text.strip_prefix('/') {
        return delimited_by(regex, '/', 1).map(|it| it.trim_start_matches('I'));
    }
    if let Some(rest) = text.strip_prefix('$') {
        return Some(rest);
    }
    Some(text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '~' || c == '+'))
}

fn delimited(text: &str, parts: usize) -> Option<&str> {
    let delimiter = text.chars().next()?;
    if delimiter.is_alphanumeric() || "\\\n ;".contains(delimiter) {
        return None;
    }
    delimited_by(text.get(delimiter.len_utf8()..)?, delimiter, parts)
}

/// The text after `parts` parts that each end with the delimiter. Some versions ignore a delimiter
/// within a class, so brackets containing one are not understood.
fn delimited_by(text: &str, delimiter: char, parts: usize) -> Option<&str> {
    let mut left = parts;
    let mut escaped = false;
    let mut class = false;
    for (at, c) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == '\n' {
            return None;
        } else if c == '[' && left == parts {
            class = true;
        } else if c == ']' && !begins_class(text, at) {
            class = false;
        } else if c == delimiter {
            if class {
                return None;
            }
            left -= 1;
            if left == 0 {
                return text.get(at + c.len_utf8()..);
            }
        }
    }
    None
}

/// Whether a closing bracket is the first character of a class, and belongs to it.
fn begins_class(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    before.ends_with('[') || before.ends_with("[^")
}

/// Accepts only programs that neither run, write, nor load.
pub(super) fn analyze_awk(args: &[CommandWord]) -> InnerCommands {
    let mut at = 0;
    while let Some(word) = args.get(at) {
        let text = word.text.as_str();
        match text {
            "-F" | "-v" => at += 2,
            _ if text.starts_with("-F") || text.starts_with("-v") => at += 1,
            "--version" => return InnerCommands::default(),
            _ if text.starts_with('-') => {
                return InnerCommands::unresolved(format!("'{text}' of 'awk'"));
            }
            _ => break,
        }
    }
    match args.get(at) {
        Some(program) if program.is_certain() && is_plain_awk(&program.text) => {
            InnerCommands::default()
        }
        Some(_) => InnerCommands::unresolved("a program of 'awk' that is not understood"),
        None => InnerCommands::default(),
    }
}

fn is_plain_awk(program: &str) -> bool {
    let runs = [
        "system", "getline", "close", "fflush", "|", ">", "@", "\\\n", "printf >", "ARGV",
        "ENVIRON", "PROCINFO", "SYMTAB", "FUNCTAB",
    ];
    !runs
        .iter()
        .any(|word| program.replace("||", "").replace(">=", "").contains(word))
}
