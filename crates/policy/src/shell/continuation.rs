//! Line continuations: a backslash before the end of a line. A shell removes both before it looks
//! for words and operators; the grammar ends a word there.

use std::ops::Range;

use tree_sitter::Node;

/// Whether a continuation makes one token of what stands before and behind it, or may do so.
pub(super) fn joins_tokens(script: &str, root: Node<'_>) -> bool {
    let halved = if script.contains('`') {
        runs(script)
    } else {
        Vec::new()
    };
    let mut all = continuations(script).into_iter().chain(halved);
    all.any(|it| is_joint(script, &it) && !is_literal(script, root, &it))
}

/// The script as a shell reads it: without continuations, where it has any. A backquoted command
/// loses half of its backslashes before it is read, so there another text has none before the end of
/// a line.
pub(super) fn joined_texts(script: &str) -> Vec<String> {
    let mut texts = vec![without(script, &continuations(script))];
    if script.contains('`') {
        texts.push(without(script, &runs(script)));
    }
    texts.retain(|text| text.len() < script.len());
    texts.dedup();
    texts
}

/// All backslashes before the end of a line, with that end.
fn runs(script: &str) -> Vec<Range<usize>> {
    let ends = script.match_indices('\n');
    let runs = ends.map(|(end, _)| script[..end].trim_end_matches('\\').len()..end + 1);
    runs.filter(|run| run.len() > 1).collect()
}

/// The continuations, those that follow one another as one: a backslash before a line's end, unless
/// another one escapes it.
fn continuations(script: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let is_continuation = |run: &Range<usize>| run.len().is_multiple_of(2);
    for run in runs(script).into_iter().filter(is_continuation) {
        match found.last_mut() {
            Some(last) if last.end == run.end - 2 => last.end = run.end,
            Some(_) | None => found.push(run.end - 2..run.end),
        }
    }
    found
}

fn without(script: &str, removed: &[Range<usize>]) -> String {
    let mut text = String::new();
    let mut from = 0;
    for range in removed {
        text.push_str(&script[from..range.start]);
        from = range.end;
    }
    text.push_str(&script[from..]);
    text
}

/// Whether a token may continue behind it: neither neighbour is blank, and they are not an operator
/// and a word.
fn is_joint(script: &str, continuation: &Range<usize>) -> bool {
    let is_blank = |c: char| matches!(c, ' ' | '\t' | '\n');
    let is_operator = |c: char| matches!(c, ';' | '&' | '|');
    let ends_word = |c: char| c.is_ascii_alphanumeric() || "\"'/.)}*".contains(c);
    let begins_word = |c: char| !";&|<>()#\\".contains(c);
    let head = &script[..continuation.start];
    let behind = script[continuation.end..].chars().next();
    let (Some(before), Some(behind)) = (head.chars().next_back(), behind) else {
        return false;
    };
    let escaping = &head[..head.len() - before.len_utf8()];
    let backslashes = escaping.len() - escaping.trim_end_matches('\\').len();
    let is_escaped = backslashes % 2 == 1;
    let is_separate = is_blank(before)
        || (is_operator(before) && begins_word(behind))
        || (ends_word(before) && is_operator(behind));
    !is_blank(behind) && (is_escaped || !is_separate)
}

/// Whether it stands where a shell leaves it: in single quotes, or in a here-document whose delimiter
/// is quoted. What precedes the first continuation the grammar reads as a shell does.
fn is_literal(script: &str, root: Node<'_>, continuation: &Range<usize>) -> bool {
    let node = root.descendant_for_byte_range(continuation.start, continuation.end);
    let Some(node) = node.filter(|_| !root.has_error()) else {
        return false;
    };
    match node.kind() {
        "raw_string" => true,
        "heredoc_body" => node
            .parent()
            .is_some_and(|it| has_quoted_delimiter(script, it)),
        _ => false,
    }
}

fn has_quoted_delimiter(script: &str, redirect: Node<'_>) -> bool {
    let mut cursor = redirect.walk();
    let mut children = redirect.children(&mut cursor);
    let start = children.find(|it| it.kind() == "heredoc_start");
    start.is_some_and(|it| script[it.byte_range()].starts_with(['\'', '"']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_that_is_escaped_continues_no_line() {
        for (script, wanted) in [
            ("a\\\nb", &[(1, 3)][..]),
            ("a\\\\\nb", &[][..]),
            ("a\\\\\\\nb", &[(3, 5)]),
            ("a\\\n\\\nb", &[(1, 5)]),
            ("a\\\n \\\nb", &[(1, 3), (4, 6)]),
            ("a\\\r\nb", &[][..]),
            ("\\\n", &[(0, 2)]),
            ("a\nb\\", &[][..]),
        ] {
            let found: Vec<(usize, usize)> = (continuations(script).into_iter())
                .map(|it| (it.start, it.end))
                .collect();
            assert_eq!(found, wanted, "{script:?}");
        }
        assert_eq!(joined_texts("a\\\nb\\\\\nc"), ["ab\\\\\nc"]);
        assert_eq!(joined_texts("`a\\\\\nb`"), ["`ab`"]);
    }

    #[test]
    fn tokens_are_joined_unless_something_separates_them() {
        let is_joined = |script: &str| {
            let mut all = continuations(script).into_iter();
            all.any(|it| is_joint(script, &it))
        };
        for script in [
            "a\\\nb",
            "a\\\n\\\nb",
            "$\\\n(b)",
            "<\\\n(b)",
            "&\\\n&",
            "a\\\n#b",
            "a;\\\n#b",
            "\\;\\\nb",
            "a\\ \\\nb",
            "2\\\n>f",
            ">\\\n&1",
            "&\\\n>f",
            "a\\\n\\b",
            "\"$\\\nb\"",
        ] {
            assert!(is_joined(script), "{script:?}");
        }
        for script in [
            "a \\\nb",
            "a\\\n b",
            "a|\\\nb",
            "a &&\\\nb",
            "a\\\n&& b",
            "a \\\n\\\n b",
            "\\\na",
            "a\\\n",
            "a\\\n\nb",
            "a\\\\\nb",
            "\\\\;\\\nb",
        ] {
            assert!(!is_joined(script), "{script:?}");
        }
    }
}
