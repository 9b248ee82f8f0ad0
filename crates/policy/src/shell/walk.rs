//! The walk over a script's tree, by an allow list of node kinds.

use std::ops::Range;

use tree_sitter::Node;

use super::lex::lex;
use crate::seen::{Call, Seen};
use crate::word::Word;

/// How deep a tree is followed.
const DEPTH: usize = 200;

/// Kinds that hold statements, and nothing that needs another look.
const STRUCTURE: [&str; 13] = [
    "program",
    "list",
    "pipeline",
    "subshell",
    "if_statement",
    "elif_clause",
    "else_clause",
    "while_statement",
    "do_group",
    "negated_command",
    "redirected_statement",
    "variable_assignments",
    "case_item",
];
/// Kinds that are values, or parts of them.
const VALUES: [&str; 13] = [
    "word",
    "string",
    "string_content",
    "raw_string",
    "ansi_c_string",
    "translated_string",
    "number",
    "concatenation",
    "simple_expansion",
    "variable_name",
    "special_variable_name",
    "extglob_pattern",
    "expansion",
];
/// Tokens between statements.
const TOKENS: [&str; 29] = [
    ";", ";;", "&&", "||", "|", "|&", "&", "(", ")", "{", "}", "!", "if", "then", "else", "elif",
    "fi", "while", "until", "for", "in", "do", "done", "case", "esac", "\n", "[", "]", "select",
];

pub(super) struct Walk<'s, 'o> {
    pub(super) source: &'s str,
    pub(super) seen: &'o mut Seen,
    pub(super) depth: usize,
}

impl<'s> Walk<'s, '_> {
    pub(super) fn text(&self, node: Node<'_>) -> &'s str {
        self.slice(node.byte_range())
    }

    pub(super) fn slice(&self, range: Range<usize>) -> &'s str {
        self.source.get(range).unwrap_or_default()
    }

    pub(super) fn doubt(&mut self, what: impl Into<String>, node: Node<'_>) {
        let text = self.text(node);
        self.seen.doubt_text(what, text);
    }

    /// Whatever lies before and behind the tree must be blank.
    pub(super) fn edges(&mut self, root: Node<'_>) {
        let before = self.slice(0..root.start_byte());
        let behind = self.slice(root.end_byte()..self.source.len());
        if !is_blank(before, true) || !is_blank(behind, true) {
            self.doubt("text outside of every command", root);
        }
    }

    pub(super) fn statement(&mut self, node: Node<'_>) {
        self.depth += 1;
        if self.depth > DEPTH {
            self.doubt("nesting that deep", node);
        } else {
            self.dispatch(node);
        }
        self.depth -= 1;
    }

    fn dispatch(&mut self, node: Node<'_>) {
        let kind = node.kind();
        if node.is_missing() || node.is_error() {
            self.doubt("a syntax error", node);
        }
        if !node.is_named() {
            if !TOKENS.contains(&kind) {
                self.doubt(format!("'{kind}'"), node);
            }
            return;
        }
        match kind {
            _ if STRUCTURE.contains(&kind) => self.children(node, true),
            _ if VALUES.contains(&kind) => self.value(node),
            "command" => self.command(node),
            "compound_statement" => {
                if !self.text(node).starts_with('{') || self.text(node).starts_with("((") {
                    self.doubt("arithmetic", node);
                }
                self.children(node, true);
            }
            "for_statement" => self.for_loop(node),
            "case_statement" => self.children(node, true),
            "variable_assignment" => self.assignment(node),
            "declaration_command" | "unset_command" => self.declaration(node),
            "file_redirect" => self.file_redirect(node),
            "herestring_redirect" => self.herestring(node),
            "heredoc_redirect" => self.heredoc(node),
            "test_command" => self.test_command(node),
            "comment" => self.comment(node),
            other => {
                self.doubt(other.replace('_', " "), node);
                self.children(node, false);
            }
        }
    }

    /// Every child; the text between them must be blank where that is understood.
    pub(super) fn children(&mut self, node: Node<'_>, understood: bool) {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        if understood {
            self.gaps(&children, true);
            self.ends(node, &children);
        }
        for child in children {
            if understood || child.is_named() {
                self.statement(child);
            }
        }
    }

    /// Between neighbours there are only blanks; what the grammar skips besides is no blank to
    /// a shell.
    pub(super) fn gaps(&mut self, children: &[Node<'_>], newlines: bool) {
        for pair in children.windows(2) {
            let gap = self.slice(pair[0].end_byte()..pair[1].start_byte());
            if !is_blank(gap, newlines) {
                self.doubt("text between words", pair[0]);
            }
        }
    }

    /// Nor is there anything else before the first and behind the last of them.
    fn ends(&mut self, node: Node<'_>, children: &[Node<'_>]) {
        let (Some(first), Some(last)) = (children.first(), children.last()) else {
            return;
        };
        let before = self.slice(node.start_byte()..first.start_byte());
        let behind = self.slice(last.end_byte()..node.end_byte());
        if !is_blank(before, true) || !is_blank(behind, true) {
            self.doubt("text between words", node);
        }
    }

    fn comment(&mut self, node: Node<'_>) {
        let text = self.text(node);
        let before = self.slice(0..node.start_byte()).chars().next_back();
        let begins = before.is_none_or(|c| " \t\n;&|()".contains(c));
        if !text.starts_with('#') || text.contains('\n') || !begins {
            self.doubt("a comment", node);
        }
    }

    /// A value: one word to the shell, and without anything that runs inside.
    pub(super) fn value(&mut self, node: Node<'_>) {
        self.inside(node);
        let _told = self.word(node.byte_range()).is_none();
    }

    pub(super) fn word(&mut self, range: Range<usize>) -> Option<Word> {
        let text = self.slice(range);
        match lex(text) {
            Ok(word) => Some(word),
            Err(what) => {
                self.seen.doubt_text(what, text);
                None
            }
        }
    }

    /// Looks for what runs or has effects inside of a value.
    fn inside(&mut self, node: Node<'_>) {
        self.depth += 1;
        let kind = node.kind();
        if self.depth > DEPTH {
            self.doubt("nesting that deep", node);
        } else if kind == "expansion" && !is_plain_expansion(self.text(node)) {
            self.doubt("an expansion", node);
            self.children(node, false);
        } else if node.is_named() && !VALUES.contains(&kind) {
            self.doubt(kind.replace('_', " "), node);
            self.children(node, false);
        } else {
            let mut cursor = node.walk();
            for child in node.children(&mut cursor) {
                self.inside(child);
            }
        }
        self.depth -= 1;
    }

    fn command(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        self.gaps(&children, false);
        let mut pieces: Vec<Range<usize>> = Vec::new();
        for child in children {
            match child.kind() {
                "variable_assignment" if pieces.is_empty() => self.assignment(child),
                "file_redirect" => self.file_redirect(child),
                "herestring_redirect" => self.herestring(child),
                "subshell" => {
                    self.doubt("a command like a function", child);
                    self.statement(child);
                }
                "command_name" => {
                    let mut inner = child.walk();
                    for part in child.children(&mut inner) {
                        self.inside(part);
                    }
                    add_piece(&mut pieces, child.byte_range());
                }
                _ => {
                    self.inside(child);
                    add_piece(&mut pieces, child.byte_range());
                }
            }
        }
        let words: Vec<Word> = pieces.into_iter().filter_map(|it| self.word(it)).collect();
        if !words.is_empty() {
            self.seen.calls.push(Call::new(words));
        }
    }

    fn for_loop(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        self.gaps(&children, true);
        for child in children {
            if child.kind() == "variable_name" {
                let name = self.text(child).to_owned();
                self.seen.variables.push(name);
            } else {
                self.statement(child);
            }
        }
    }

    pub(super) fn assignment(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let text = self.text(node);
        let name = text.split(['=', '+']).next().unwrap_or(text);
        if !is_name(name) {
            self.doubt("an assignment", node);
        }
        self.seen.variables.push(name.to_owned());
        let value = text.split_once('=').map_or("", |(_, value)| value);
        if !value.is_empty()
            && let Err(what) = lex(value)
        {
            self.doubt(what, node);
        }
        for child in node.children(&mut cursor) {
            self.inside(child);
        }
    }

    /// `export NAME=value` and its like: only plain names.
    fn declaration(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        self.gaps(&children, false);
        for (place, child) in children.into_iter().enumerate() {
            let text = self.text(child);
            match child.kind() {
                _ if place == 0 => {
                    if !matches!(text, "export" | "local" | "readonly" | "unset") {
                        self.doubt(format!("'{text}'"), node);
                    }
                }
                "variable_assignment" => self.assignment(child),
                _ if is_name(text) => self.seen.variables.push(text.to_owned()),
                _ => {
                    self.doubt("a declaration", child);
                    self.inside(child);
                }
            }
        }
    }
}

/// Adjacent pieces are one word.
pub(super) fn add_piece(pieces: &mut Vec<Range<usize>>, piece: Range<usize>) {
    match pieces.last_mut() {
        Some(last) if last.end == piece.start => last.end = piece.end,
        Some(_) | None => pieces.push(piece),
    }
}

fn is_blank(gap: &str, newlines: bool) -> bool {
    let joined = gap.replace("\\\n", "");
    joined
        .chars()
        .all(|c| matches!(c, ' ' | '\t') || (newlines && c == '\n'))
}

pub(super) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// `${name}`, and nothing more.
fn is_plain_expansion(text: &str) -> bool {
    text.strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
        .is_some_and(is_name)
}
