//! Visits a script's syntax tree, by an allow list of node kinds.

use std::ops::Range;

use tree_sitter::Node;

use super::arithmetic::{evaluated_variables, number_variables};
use super::command_list::{Assignment, ListBuilder, ListedCommand};
use super::lex::{is_name, lex_word};
use crate::analysis::{Analysis, Invocation, STARTUP_VARIABLES, ValueClass};
use crate::word::CommandWord;

/// The greatest depth that is visited.
const DEPTH_MAX: usize = 200;

/// Node kinds that contain statements and need no check of their own.
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
/// Node kinds that are values, or parts of them.
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
/// Node kinds that lists of simple commands consist of.
const LIST_PARTS: [&str; 16] = [
    "program",
    "list",
    "pipeline",
    "subshell",
    "compound_statement",
    "negated_command",
    "redirected_statement",
    "variable_assignments",
    "variable_assignment",
    "command",
    "declaration_command",
    "unset_command",
    "file_redirect",
    "herestring_redirect",
    "test_command",
    "comment",
];
/// Tokens between statements.
const TOKENS: [&str; 29] = [
    ";", ";;", "&&", "||", "|", "|&", "&", "(", ")", "{", "}", "!", "if", "then", "else", "elif",
    "fi", "while", "until", "for", "in", "do", "done", "case", "esac", "\n", "[", "]", "select",
];

pub(super) struct AstVisitor<'s, 'o> {
    pub(super) source: &'s str,
    pub(super) analysis: &'o mut Analysis,
    pub(super) depth: usize,
    /// Whether the shell is known to be bash: in others `[[` and `((` are not keywords.
    pub(super) bash: bool,
    pub(super) list: ListBuilder,
    /// Whether a shell finds other tokens than the grammar once it has removed continuations.
    pub(super) is_joined: bool,
}

impl<'s> AstVisitor<'s, '_> {
    pub(super) fn text(&self, node: Node<'_>) -> &'s str {
        self.slice(node.byte_range())
    }

    pub(super) fn slice(&self, range: Range<usize>) -> &'s str {
        self.source.get(range).unwrap_or_default()
    }

    pub(super) fn add_unresolved(&mut self, reason: impl Into<String>, node: Node<'_>) {
        let text = self.text(node);
        self.analysis.add_unresolved_text(reason, text);
    }

    /// Checks that the text before and after the tree is blank.
    pub(super) fn check_edges(&mut self, root: Node<'_>) {
        let before = self.slice(0..root.start_byte());
        let behind = self.slice(root.end_byte()..self.source.len());
        if !is_blank(before, true) || !is_blank(behind, true) {
            self.list.reject();
            self.add_unresolved("text outside of every command", root);
        }
    }

    pub(super) fn visit_statement(&mut self, node: Node<'_>) {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            self.list.reject();
            self.add_unresolved("nesting that deep", node);
        } else {
            self.dispatch(node);
        }
        self.depth -= 1;
    }

    fn dispatch(&mut self, node: Node<'_>) {
        let kind = node.kind();
        if node.is_missing() || node.is_error() {
            self.add_unresolved("a syntax error", node);
        }
        if !node.is_named() {
            if !TOKENS.contains(&kind) {
                self.add_unresolved(format!("'{kind}'"), node);
            }
            self.list.add_token(kind);
            return;
        }
        if !LIST_PARTS.contains(&kind) {
            self.list.reject();
        }
        match kind {
            _ if STRUCTURE.contains(&kind) => self.visit_children(node, true),
            _ if VALUES.contains(&kind) => self.visit_value(node),
            "command" => self.visit_command(node),
            "compound_statement" if self.text(node).starts_with('{') => {
                self.visit_children(node, true);
            }
            "compound_statement" => self.visit_compound(node),
            "arithmetic_expansion" => self.visit_arithmetic(node, "$((", "))"),
            "c_style_for_statement" => self.visit_counted_loop(node),
            "for_statement" => self.visit_for_loop(node),
            "case_statement" => self.visit_children(node, true),
            "variable_assignment" => {
                let assignment = self.visit_assignment(node);
                let parent = node.parent().map(|it| it.kind());
                let is_first = node.prev_sibling().is_none();
                let begins = is_first || parent != Some("variable_assignments");
                self.list.add_assignment(assignment, begins);
            }
            "declaration_command" | "unset_command" => self.visit_declaration(node),
            "file_redirect" => {
                let words = self.visit_file_redirect(node);
                if !words.is_empty() {
                    let begins_command = node.prev_sibling().is_none();
                    self.list.add_words(words, begins_command);
                }
            }
            "herestring_redirect" => self.visit_herestring(node),
            "heredoc_redirect" => self.visit_heredoc(node),
            "test_command" => self.visit_test(node),
            "comment" => self.visit_comment(node),
            other => {
                self.add_unresolved(other.replace('_', " "), node);
                self.visit_children(node, false);
            }
        }
    }

    /// Visits every child; the text between them must be blank where that is understood.
    pub(super) fn visit_children(&mut self, node: Node<'_>, understood: bool) {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        if understood {
            self.check_gaps(&children, true);
            self.check_ends(node, &children);
        }
        for child in children {
            if understood || child.is_named() {
                self.visit_statement(child);
            }
        }
    }

    /// Checks that neighbours are separated by blanks only; other characters the grammar skips are
    /// not blank to a shell.
    pub(super) fn check_gaps(&mut self, children: &[Node<'_>], newlines: bool) {
        for pair in children.windows(2) {
            let gap = self.slice(pair[0].end_byte()..pair[1].start_byte());
            if !is_blank(gap, newlines) {
                self.list.reject();
                self.add_unresolved("text between words", pair[0]);
            }
        }
    }

    /// Checks the same before the first and after the last of them.
    fn check_ends(&mut self, node: Node<'_>, children: &[Node<'_>]) {
        let (Some(first), Some(last)) = (children.first(), children.last()) else {
            return;
        };
        let before = self.slice(node.start_byte()..first.start_byte());
        let behind = self.slice(last.end_byte()..node.end_byte());
        if !is_blank(before, true) || !is_blank(behind, true) {
            self.list.reject();
            self.add_unresolved("text between words", node);
        }
    }

    fn visit_comment(&mut self, node: Node<'_>) {
        let text = self.text(node);
        let before = self.slice(0..node.start_byte()).chars().next_back();
        let begins = before.is_none_or(|c| " \t\n;&|()".contains(c));
        if !text.starts_with('#') || text.contains('\n') || !begins {
            self.add_unresolved("a comment", node);
        }
        self.list.add_comment();
    }

    /// Visits a value: one word to the shell, and without anything that runs inside.
    pub(super) fn visit_value(&mut self, node: Node<'_>) {
        self.visit_inside(node);
        let _reported = self.read_word(node.byte_range()).is_none();
    }

    pub(super) fn read_word(&mut self, range: Range<usize>) -> Option<CommandWord> {
        let text = self.slice(range);
        match lex_word(text) {
            Ok(word) => Some(word),
            Err(reason) => {
                self.analysis.add_unresolved_text(reason, text);
                None
            }
        }
    }

    /// Visits what runs or has side effects inside of a value.
    fn visit_inside(&mut self, node: Node<'_>) {
        self.depth += 1;
        self.list.enter_value();
        let kind = node.kind();
        if self.depth > DEPTH_MAX {
            self.add_unresolved("nesting that deep", node);
        } else if kind == "arithmetic_expansion" {
            self.visit_arithmetic(node, "$((", "))");
        } else if kind == "expansion" && !is_plain_expansion(self.text(node)) {
            self.add_unresolved("an expansion", node);
            self.add_backquoted(node);
            self.visit_children(node, false);
        } else if node.is_named() && !VALUES.contains(&kind) {
            self.add_unresolved(kind.replace('_', " "), node);
            self.visit_children(node, false);
        } else {
            let mut cursor = node.walk();
            for child in node.children(&mut cursor) {
                self.visit_inside(child);
            }
        }
        self.list.leave_value();
        self.depth -= 1;
    }

    fn visit_command(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        self.check_gaps(&children, false);
        let mut pieces: Vec<Range<usize>> = Vec::new();
        let mut assignments = Vec::new();
        let mut behind_redirects = Vec::new();
        for child in children {
            match child.kind() {
                "variable_assignment" if pieces.is_empty() => {
                    assignments.push(self.visit_assignment(child));
                }
                "file_redirect" => behind_redirects.extend(self.visit_file_redirect(child)),
                "herestring_redirect" => self.visit_herestring(child),
                "subshell" => {
                    self.list.reject();
                    self.add_unresolved("a command like a function", child);
                    self.visit_statement(child);
                }
                "command_name" => {
                    let mut inner = child.walk();
                    for part in child.children(&mut inner) {
                        self.visit_inside(part);
                    }
                    add_piece(&mut pieces, child.byte_range());
                }
                _ => {
                    self.visit_inside(child);
                    add_piece(&mut pieces, child.byte_range());
                }
            }
        }
        let words: Vec<CommandWord> = pieces
            .into_iter()
            .filter_map(|it| self.read_word(it))
            .collect();
        // The order of words is that of the grammar, unless a redirection came first.
        let all = words.iter().cloned().chain(behind_redirects).collect();
        self.list.add_command(ListedCommand {
            assignments,
            words: all,
        });
        if !words.is_empty() {
            self.analysis.invocations.push(Invocation::new(words));
        }
    }

    /// Visits `(( … ))`: to a shell without it, two subshells and a command.
    fn visit_compound(&mut self, node: Node<'_>) {
        if self.bash {
            self.list.reject();
            self.visit_arithmetic(node, "((", "))");
        } else {
            self.list.reject();
            self.add_unresolved("arithmetic", node);
            self.visit_children(node, false);
        }
    }

    /// Visits arithmetic, which is allowed to compute with variables that are numbers.
    fn visit_arithmetic(&mut self, node: Node<'_>, before: &str, behind: &str) {
        let text = self.text(node).strip_prefix(before);
        let text = text.and_then(|rest| rest.strip_suffix(behind));
        if let Some(names) = text.and_then(evaluated_variables) {
            self.analysis
                .add_uses("arithmetic", ValueClass::Number, names);
        } else {
            self.add_unresolved("arithmetic", node);
            self.visit_children(node, false);
        }
    }

    /// Visits `for ((…; …; …))`: a syntax error to a shell without it.
    fn visit_counted_loop(&mut self, node: Node<'_>) {
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
        let names: Option<Vec<Vec<String>>> =
            parts.iter().map(|it| evaluated_variables(it)).collect();
        match (names, body) {
            (Some(names), Some(body)) if parts.len() == 3 && text.starts_with("for") => {
                self.analysis.add_uses(
                    "arithmetic",
                    ValueClass::Number,
                    names.into_iter().flatten().collect(),
                );
                self.add_loop_variables(parts[0]);
                self.visit_statement(body);
            }
            _ => {
                self.add_unresolved("a counted loop", node);
                self.visit_children(node, false);
            }
        }
    }

    /// `i=0` in a counted loop sets a number.
    fn add_loop_variables(&mut self, part: &str) {
        for one in part.split(',') {
            if let Some((name, value)) = one.split_once('=')
                && is_name(name.trim())
                && ValueClass::of(value.trim()) == ValueClass::Number
            {
                self.analysis.add_variable(name.trim(), ValueClass::Number);
            }
        }
    }

    fn visit_for_loop(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        self.check_gaps(&children, true);
        let is_value = |it: &&Node<'_>| VALUES.contains(&it.kind()) && it.kind() != "variable_name";
        let values = children.iter().filter(is_value);
        let value = values.map(|it| self.classify_value(self.text(*it))).max();
        let select = children.first().is_some_and(|it| it.kind() == "select");
        let value = value.filter(|_| !select).unwrap_or(ValueClass::Unknown);
        for child in children {
            if child.kind() == "variable_name" {
                let name = self.text(child).to_owned();
                self.analysis.add_variable(name, value);
            } else {
                self.visit_statement(child);
            }
        }
    }

    /// Classifies a value as written.
    fn classify_value(&self, source: &str) -> ValueClass {
        if number_variables(source).is_some() {
            return ValueClass::Number;
        }
        match lex_word(source) {
            Ok(word) if word.is_certain() => ValueClass::of(&word.text),
            Ok(_) | Err(_) => ValueClass::Unknown,
        }
    }

    pub(super) fn visit_assignment(&mut self, node: Node<'_>) -> Assignment {
        let mut cursor = node.walk();
        let text = self.text(node);
        let name = text.split(['=', '+']).next().unwrap_or(text);
        if !is_name(name) {
            self.add_unresolved("an assignment", node);
        }
        let value = text.split_once('=').map_or("", |(_, value)| value);
        self.analysis.add_variable(name, self.classify_value(value));
        let word = lex_word(value).unwrap_or_else(|reason| {
            self.add_unresolved(reason, node);
            CommandWord::opaque(value)
        });
        if STARTUP_VARIABLES.contains(&name) {
            self.analysis.startup_files.push(word.text.clone());
        }
        for child in node.children(&mut cursor) {
            self.visit_inside(child);
        }
        Assignment {
            name: name.to_owned(),
            value: word,
        }
    }

    /// Visits `export NAME=value` and the like: only plain names are understood.
    fn visit_declaration(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        self.check_gaps(&children, false);
        let words = children.iter().map(|child| lex_word(self.text(*child)));
        let words = words.filter_map(Result::ok).collect();
        self.list.add_command(ListedCommand {
            assignments: Vec::new(),
            words,
        });
        for (place, child) in children.into_iter().enumerate() {
            let text = self.text(child);
            match child.kind() {
                _ if place == 0 => {
                    if !matches!(text, "export" | "local" | "readonly" | "unset") {
                        self.add_unresolved(format!("'{text}'"), node);
                    }
                }
                "variable_assignment" => {
                    self.visit_assignment(child);
                }
                _ if is_name(text) => self.analysis.add_variable(text, ValueClass::Unchanged),
                _ => {
                    self.add_unresolved("a declaration", child);
                    self.visit_inside(child);
                }
            }
        }
    }
}

/// Adds a piece; adjacent pieces are one word.
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

/// Whether a text is `${name}` or `${#name}`, and nothing more.
pub(super) fn is_plain_expansion(text: &str) -> bool {
    text.strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
        .is_some_and(|name| is_name(name.strip_prefix('#').unwrap_or(name)))
}
