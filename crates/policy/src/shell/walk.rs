//! The walk over a script's tree, by an allow list of node kinds.

use std::ops::Range;

use tree_sitter::Node;

use super::arithmetic::{evaluated, number};
use super::lex::{is_name, lex};
use crate::seen::{Call, Seen, Value};
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
    /// Whether the shell is known to be bash: to others `[[` and `((` are no keywords.
    pub(super) bash: bool,
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
            "compound_statement" if self.text(node).starts_with('{') => self.children(node, true),
            "compound_statement" => self.compound(node),
            "arithmetic_expansion" => self.expression(node, "$((", "))"),
            "c_style_for_statement" => self.counted_loop(node),
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
        } else if kind == "arithmetic_expansion" {
            self.expression(node, "$((", "))");
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

    /// `(( … ))`: to a shell without it, two subshells and a command.
    fn compound(&mut self, node: Node<'_>) {
        if self.bash {
            self.expression(node, "((", "))");
        } else {
            self.doubt("arithmetic", node);
            self.children(node, false);
        }
    }

    /// Arithmetic that only counts with variables that are numbers.
    fn expression(&mut self, node: Node<'_>, before: &str, behind: &str) {
        let text = self.text(node).strip_prefix(before);
        let text = text.and_then(|rest| rest.strip_suffix(behind));
        if let Some(names) = text.and_then(evaluated) {
            self.seen.uses("arithmetic", Value::Number, names);
        } else {
            self.doubt("arithmetic", node);
            self.children(node, false);
        }
    }

    /// `for ((…; …; …))`: a syntax error to a shell without it.
    fn counted_loop(&mut self, node: Node<'_>) {
        let text = self.text(node);
        let body = node.child_by_field_name("body");
        let end = body.map_or(node.end_byte(), |it| it.start_byte());
        let head = self.slice(node.start_byte()..end).trim_end();
        let head = head.strip_suffix("do").unwrap_or(head);
        let head = head.trim_end_matches([' ', '\t', '\n', ';']);
        let inner = head
            .strip_prefix("for")
            .map(str::trim_start)
            .and_then(|it| it.strip_prefix("(("))
            .and_then(|it| it.strip_suffix("))"));
        let parts: Vec<&str> = inner.map_or_else(Vec::new, |it| it.split(';').collect());
        let names: Option<Vec<Vec<String>>> = parts.iter().map(|it| evaluated(it)).collect();
        match (names, body) {
            (Some(names), Some(body)) if parts.len() == 3 && text.starts_with("for") => {
                self.seen.uses(
                    "arithmetic",
                    Value::Number,
                    names.into_iter().flatten().collect(),
                );
                self.begins_with_a_number(parts[0]);
                self.statement(body);
            }
            _ => {
                self.doubt("a counted loop", node);
                self.children(node, false);
            }
        }
    }

    /// `i=0` in a counted loop sets a number.
    fn begins_with_a_number(&mut self, part: &str) {
        for one in part.split(',') {
            if let Some((name, value)) = one.split_once('=')
                && is_name(name.trim())
                && Value::of(value.trim()) == Value::Number
            {
                self.seen.set(name.trim(), Value::Number);
            }
        }
    }

    fn for_loop(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        self.gaps(&children, true);
        let is_value = |it: &&Node<'_>| VALUES.contains(&it.kind()) && it.kind() != "variable_name";
        let values = children.iter().filter(is_value);
        let value = values.map(|it| self.value_of(self.text(*it))).max();
        let select = children.first().is_some_and(|it| it.kind() == "select");
        let value = value.filter(|_| !select).unwrap_or(Value::Unknown);
        for child in children {
            if child.kind() == "variable_name" {
                let name = self.text(child).to_owned();
                self.seen.set(name, value);
            } else {
                self.statement(child);
            }
        }
    }

    /// What is known of a value as it is written.
    fn value_of(&self, source: &str) -> Value {
        if number(source).is_some() {
            return Value::Number;
        }
        match lex(source) {
            Ok(word) if word.is_sure() => Value::of(&word.text),
            Ok(_) | Err(_) => Value::Unknown,
        }
    }

    pub(super) fn assignment(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let text = self.text(node);
        let name = text.split(['=', '+']).next().unwrap_or(text);
        if !is_name(name) {
            self.doubt("an assignment", node);
        }
        let value = text.split_once('=').map_or("", |(_, value)| value);
        self.seen.set(name, self.value_of(value));
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
                _ if is_name(text) => self.seen.set(text, Value::Kept),
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

/// `${name}` or `${#name}`, and nothing more.
pub(super) fn is_plain_expansion(text: &str) -> bool {
    text.strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
        .is_some_and(|name| is_name(name.strip_prefix('#').unwrap_or(name)))
}
