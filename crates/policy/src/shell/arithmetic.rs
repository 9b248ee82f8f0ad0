//! Arithmetic expressions: a variable in one is evaluated, whatever its value contains.

use super::lex::is_name;
use crate::word::CommandWord;

/// The variables an expression evaluates; none where it may do more than compute: an index, an
/// expansion that is not plain, a name composed of parts.
pub(super) fn evaluated_variables(expression: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = expression;
    let mut after_operand = false;
    while let Some(c) = rest.chars().next() {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_operand = is_part(c) || c == '$';
        if is_operand && after_operand {
            return None;
        }
        after_operand = is_operand;
        let length = if c == '$' {
            parse_expansion(rest, &mut names)?
        } else if is_part(c) {
            let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            parse_operand(rest.get(..length)?, &mut names)?;
            length
        } else if " \t+-*/%<>=!&|^~?:,()".contains(c) {
            1
        } else {
            return None;
        };
        rest = rest.get(length..)?;
    }
    Some(names)
}

/// Parses a number or a name.
fn parse_operand(text: &str, names: &mut Vec<String>) -> Option<()> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit());
    if number && text.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(());
    }
    if !is_name(text) || text == "_" {
        return None;
    }
    names.push(text.to_owned());
    Some(())
}

/// The length of a plain expansion: `$name`, `${name}`, or a number: `$#`, `$?`, `$$`, `$!`,
/// `${#name}`.
fn parse_expansion(text: &str, names: &mut Vec<String>) -> Option<usize> {
    if ["$#", "$?", "$$", "$!"]
        .iter()
        .any(|it| text.starts_with(it))
    {
        return Some(2);
    }
    let (name, length) = match text.strip_prefix("${") {
        Some(rest) => {
            let end = rest.find('}')?;
            (rest.get(..end)?, end + 3)
        }
        None => {
            let rest = text.get(1..)?;
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            (rest.get(..end)?, end + 1)
        }
    };
    match name.strip_prefix('#') {
        Some(counted) if length > name.len() + 1 => return is_name(counted).then_some(length),
        Some(_) | None => {}
    }
    (is_name(name) && name != "_").then(|| names.push(name.to_owned()))?;
    Some(length)
}

/// The variables that an operand of `[[ … -eq … ]]` evaluates.
pub(super) fn test_operand_variables(source: &str, word: &CommandWord) -> Option<Vec<String>> {
    if word.is_certain() {
        return evaluated_variables(&word.text).filter(|_| !word.text.contains('$'));
    }
    let bare = source.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    evaluated_variables(bare.unwrap_or(source))
}

/// Whether a value is a number whatever its variables hold; returns those it evaluates.
pub(super) fn number_variables(source: &str) -> Option<Vec<String>> {
    let bare = source.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    let text = bare.unwrap_or(source);
    let inner = text
        .strip_prefix("$((")
        .and_then(|it| it.strip_suffix("))"));
    match inner {
        Some(inner) => evaluated_variables(inner),
        None => {
            let counts = ["$#", "$?", "$$", "$!"].contains(&text)
                || text
                    .strip_prefix("${#")
                    .and_then(|it| it.strip_suffix('}'))
                    .is_some_and(is_name);
            counts.then(Vec::new)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::evaluated_variables;

    #[test]
    fn what_is_evaluated() {
        let none: Option<&[&str]> = None;
        for (text, names) in [
            ("1", Some(&[][..])),
            ("1 + 2*3", Some(&[][..])),
            ("i++", Some(&["i"][..])),
            ("i < $n && ${m} > ${#x}", Some(&["i", "n", "m"][..])),
            ("$# > 0 || $?", Some(&[][..])),
            ("0xff", Some(&[][..])),
            ("x$i", none),
            ("$a$b", none),
            ("1$i", none),
            ("a[0]", none),
            ("$1", none),
            ("$_", none),
            ("_", none),
            ("${1}", none),
            ("${x:-1}", none),
            ("${#x[0]}", none),
            ("$(id)", none),
            ("`id`", none),
            ("'x'", none),
            ("\"x\"", none),
            ("x;y", none),
            ("x\ny", none),
            ("16#ff", none),
        ] {
            let found = evaluated_variables(text);
            let found: Option<Vec<&str>> = found
                .as_ref()
                .map(|it| it.iter().map(String::as_str).collect());
            assert_eq!(found.as_deref(), names, "{text}");
        }
    }
}
