//! Parses the text of a script to its syntax tree.

use std::borrow::Cow;
use std::ops::ControlFlow;

use ostler_model::SCRIPT_BYTES;
use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

use super::command_list::{CommandList, ListBuilder};
use super::continuation::{joined_texts, joins_tokens};
use super::visitor::AstVisitor;
use crate::analysis::Analysis;
use crate::word::is_invisible;

/// How often the parser may report progress before it is stopped: error recovery on garbage is not
/// linear. An ordinary script of the longest length stays far below.
const PARSE_STEPS: usize = 200_000;

/// A script as a list of simple commands; none where it is more, or not understood.
#[must_use]
pub fn command_list(script: &str) -> Option<CommandList> {
    visit_script(script, true, &mut Analysis::default())
}

/// Adds what `script` would run, by bash or by any shell.
pub(crate) fn read_script(script: &str, bash: bool, analysis: &mut Analysis) {
    let _list = visit_script(script, bash, analysis);
}

fn visit_script(script: &str, bash: bool, analysis: &mut Analysis) -> Option<CommandList> {
    if script.len() > SCRIPT_BYTES {
        analysis.add_unresolved_text("a script of that length", script);
        return None;
    }
    if script.chars().any(is_invisible) {
        analysis.add_unresolved_text("a character that does not show", script);
    }
    let text = scanner_safe(script);
    let Some(tree) = parse(&text) else {
        analysis.add_unresolved_text("a script too tangled to parse", script);
        return None;
    };
    let root = tree.root_node();
    if matches!(text, Cow::Owned(_)) && has_here_document(root) {
        // A delimiter mapped to the same character could end a here-document too early, and hide
        // what follows.
        analysis.add_unresolved_text(
            "a here-document, and a brace before such a character",
            script,
        );
    }
    if root.has_error() {
        analysis.add_unresolved_text("a syntax error", script);
    }
    let is_joined = joins_tokens(script, root);
    if is_joined {
        analysis.add_unresolved_text("a line continued within a word", script);
    }
    let mut visitor = AstVisitor {
        source: script,
        analysis,
        depth: 0,
        bash,
        list: ListBuilder::default(),
        is_joined,
    };
    visitor.check_edges(root);
    visitor.visit_statement(root);
    let is_joined = visitor.is_joined;
    let list = visitor.list.finish();
    if is_joined {
        add_joined(script, bash, analysis);
    }
    list.filter(|_| !root.has_error() && !is_joined)
}

/// Adds what a script runs once its continuations are removed, for rules that deny. Each text is
/// shorter, and has none left.
fn add_joined(script: &str, bash: bool, analysis: &mut Analysis) {
    for text in joined_texts(script) {
        read_guess(&text, bash, analysis);
    }
}

/// Adds what `script` would run where it is not certain that it does.
pub(super) fn read_guess(script: &str, bash: bool, analysis: &mut Analysis) {
    let mut guessed = Analysis::default();
    read_script(script, bash, &mut guessed);
    for invocation in &mut guessed.invocations {
        invocation.certain = false;
    }
    analysis.append(guessed);
}

/// The parser's input: the script with characters beyond Latin-1 replaced where the grammar's
/// scanner looks for a digit, after `{`, `{1` or `{1..`. It passes them to isdigit(3), which is
/// defined for bytes only and reads beyond its table. Each becomes as many `%` as it has bytes: to
/// the grammar a character of a word like any other.
fn scanner_safe(script: &str) -> Cow<'_, [u8]> {
    let digits = |from: usize| {
        let rest = &script[from..];
        from + rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len())
    };
    let mut text = Cow::Borrowed(script.as_bytes());
    for (brace, _) in script.match_indices('{') {
        let first = digits(brace + 1);
        let last = script[first..].starts_with("..").then(|| digits(first + 2));
        for place in [Some(first), last].into_iter().flatten() {
            if let Some(wide) = script[place..].chars().next().filter(|c| *c > '\u{ff}') {
                text.to_mut()[place..place + wide.len_utf8()].fill(b'%');
            }
        }
    }
    text
}

fn has_here_document(root: Node<'_>) -> bool {
    let mut cursor = root.walk();
    loop {
        if cursor.node().kind() == "heredoc_redirect" {
            return true;
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return false;
            }
        }
    }
}

fn parse(script: &[u8]) -> Option<Tree> {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_bash::LANGUAGE.into())
        .ok()?;
    let mut steps = 0_usize;
    let mut progress = |_: &ParseState| {
        steps += 1;
        if steps > PARSE_STEPS {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let mut input = |offset: usize, _| script.get(offset..).unwrap_or_default();
    parser.parse_with_options(&mut input, None, Some(options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_scanner_cannot_look_up_is_written_differently_for_it() {
        for (script, given) in [
            ("{\u{80a00}a", "{%%%%a"),
            ("a {1\u{4e2d}", "a {1%%%"),
            ("{1..\u{1f600}}", "{1..%%%%}"),
            ("{..2\u{100}", "{..2%%"),
            ("{{\u{2026}\u{2026}", "{{%%%\u{2026}"),
        ] {
            assert_eq!(scanner_safe(script), given.as_bytes(), "{script}");
        }
        for script in [
            "{1..3}",
            "{\u{e4}}",
            "\u{4e2d}{a}",
            "{a\u{4e2d}}",
            "{1.\u{4e2d}",
            "{",
            "",
        ] {
            assert!(matches!(scanner_safe(script), Cow::Borrowed(_)), "{script}");
        }
    }

    #[test]
    fn a_here_document_is_not_understood_beside_them() {
        let doubts = |script: &str| {
            let mut seen = Analysis::default();
            read_script(script, true, &mut seen);
            seen.unresolved.len()
        };
        for script in [
            "cat <<'{\u{4e2d}'\n{\u{5b57}\ncat <<'X'\n{\u{4e2d}\nrm -rf /\nX\n",
            "cat <<'{%%%'\n{\u{4e2d}\ncat <<'X'\n{%%%\nrm -rf /\nX\n",
        ] {
            assert!(doubts(script) > 0, "{script}");
        }
        assert_eq!(doubts("echo '{\u{4e2d}' \"{\u{2026}}\" # {\u{4e2d}"), 0);
        assert_eq!(doubts("cat <<'E'\n\u{4e2d} {a}\nE\n"), 0);
    }
}
