//! `[ … ]` and `[[ … ]]`.

use std::ops::Range;

use tree_sitter::Node;

use super::arithmetic::operand_of_test;
use super::walk::{Walk, add_piece};
use crate::seen::{Call, Value};
use crate::word::Word;
use crate::wrap::tested;

/// Kinds of a test that only look.
const LOOKING: [&str; 12] = [
    "word",
    "string",
    "string_content",
    "raw_string",
    "number",
    "test_operator",
    "unary_expression",
    "binary_expression",
    "concatenation",
    "simple_expansion",
    "variable_name",
    "special_variable_name",
];
/// Of these, those that are made of words.
const EXPRESSIONS: [&str; 2] = ["unary_expression", "binary_expression"];
/// Operators of `[[` that evaluate arithmetic, and with it whatever an index contains.
const COUNTING: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

impl Walk<'_, '_> {
    pub(super) fn test_command(&mut self, node: Node<'_>) {
        self.looks_only(node);
        let mut pieces = Vec::new();
        pieces_of(node, &mut pieces);
        let inner = 1..pieces.len().saturating_sub(1).max(1);
        let pieces = pieces.get(inner).unwrap_or_default();
        if self.text(node).starts_with("[[") {
            self.double(node, pieces);
        } else {
            self.single(node, pieces);
        }
        self.seen.calls.push(Call::new(vec![Word::sure("test")]));
    }

    /// To `[` operators are words, and to the shell before it they end the command.
    fn single(&mut self, node: Node<'_>, pieces: &[Range<usize>]) {
        let ends = |it: &Range<usize>| matches!(self.slice(it.clone()), "&&" | "||" | "<" | ">");
        if pieces.iter().any(ends) || self.text(node).contains(['<', '>']) {
            self.doubt("an operator of the shell in a test", node);
        }
        let words = pieces.iter().filter_map(|it| self.word(it.clone()));
        let words: Vec<Word> = words.collect();
        let found = tested(&words);
        for what in found.doubts {
            self.doubt(what, node);
        }
        self.seen.uses.extend(found.uses);
    }

    fn double(&mut self, node: Node<'_>, pieces: &[Range<usize>]) {
        if self.text(node).contains("\\\n") || (!self.bash && self.is_split(pieces)) {
            // Where `[[` is no keyword, its operators are those of the shell.
            self.doubt("a test that not every shell reads so", node);
        }
        for (at, piece) in pieces.iter().enumerate() {
            let operator = self.slice(piece.clone());
            if COUNTING.contains(&operator) {
                let before = at.checked_sub(1).and_then(|at| pieces.get(at));
                for operand in [before, pieces.get(at + 1)] {
                    self.counted(operand, node);
                }
            } else if matches!(operator, "-v" | "-R") {
                let name = pieces.get(at + 1).map(|it| self.slice(it.clone()));
                if !name.is_some_and(super::lex::is_name) {
                    self.doubt("a test that evaluates", node);
                }
            }
        }
    }

    /// Whether a shell without `[[` would run or open something behind an operator.
    fn is_split(&self, pieces: &[Range<usize>]) -> bool {
        let text = |at: usize| pieces.get(at).map_or("", |it| self.slice(it.clone()));
        (0..pieces.len()).any(|at| match text(at) {
            "<" | ">" => true,
            "&&" | "||" => !text(at + 1).starts_with('-'),
            _ => false,
        })
    }

    fn counted(&mut self, operand: Option<&Range<usize>>, node: Node<'_>) {
        let names = operand.and_then(|range| {
            let word = self.word(range.clone())?;
            operand_of_test(self.slice(range.clone()), &word)
        });
        match names {
            Some(names) => self.seen.uses("arithmetic", Value::Number, names),
            None => self.doubt("a test that evaluates", node),
        }
    }

    fn looks_only(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            self.depth += 1;
            if child.is_named() && !LOOKING.contains(&child.kind()) && !self.counts(child) {
                self.doubt("a test", child);
                self.statement(child);
            } else if self.depth < 100 {
                self.looks_only(child);
            } else {
                self.doubt("nesting that deep", child);
            }
            self.depth -= 1;
        }
    }

    /// `${name}` and `${#name}`.
    fn counts(&self, node: Node<'_>) -> bool {
        node.kind() == "expansion" && super::walk::is_plain_expansion(self.text(node))
    }
}

/// The words of a test, in their order.
fn pieces_of(node: Node<'_>, pieces: &mut Vec<Range<usize>>) {
    let mut cursor = node.walk();
    for child in node.children(&mut cursor) {
        if EXPRESSIONS.contains(&child.kind()) {
            pieces_of(child, pieces);
        } else {
            add_piece(pieces, child.byte_range());
        }
    }
}
