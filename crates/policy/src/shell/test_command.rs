//! Test commands: `[ … ]` and `[[ … ]]`.

use std::ops::Range;

use tree_sitter::Node;

use super::arithmetic::test_operand_variables;
use super::command_list::ListedCommand;
use super::visitor::{AstVisitor, add_piece};
use crate::analysis::{Invocation, ValueClass};
use crate::test_words::analyze_test;
use crate::word::CommandWord;

/// Node kinds of a test without side effects.
const SIDE_EFFECT_FREE: [&str; 12] = [
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
/// Those of them that consist of words.
const EXPRESSIONS: [&str; 2] = ["unary_expression", "binary_expression"];
/// Operators of `[[` that evaluate arithmetic, and with it whatever an index contains.
const ARITHMETIC_OPERATORS: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

impl AstVisitor<'_, '_> {
    pub(super) fn visit_test(&mut self, node: Node<'_>) {
        self.list.enter_value();
        self.check_side_effect_free(node);
        self.list.leave_value();
        let mut pieces = Vec::new();
        collect_pieces(node, &mut pieces);
        let inner = 1..pieces.len().saturating_sub(1).max(1);
        let pieces = pieces.get(inner).unwrap_or_default();
        if self.text(node).starts_with("[[") {
            self.visit_double_bracket(node, pieces);
        } else {
            self.visit_single_bracket(node, pieces);
        }
        let words = vec![CommandWord::certain("test")];
        self.list.add_command(ListedCommand {
            assignments: Vec::new(),
            words: words.clone(),
        });
        self.analysis.invocations.push(Invocation::new(words));
    }

    /// To `[` operators are words, but to a shell parsing the line they end the command.
    fn visit_single_bracket(&mut self, node: Node<'_>, pieces: &[Range<usize>]) {
        let ends = |it: &Range<usize>| matches!(self.slice(it.clone()), "&&" | "||" | "<" | ">");
        if pieces.iter().any(ends) || self.text(node).contains(['<', '>']) {
            self.add_unresolved("an operator of the shell in a test", node);
        }
        let words = pieces.iter().filter_map(|it| self.read_word(it.clone()));
        let words: Vec<CommandWord> = words.collect();
        let found = analyze_test(&words);
        for reason in found.unresolved {
            self.add_unresolved(reason, node);
        }
        self.analysis.uses.extend(found.uses);
    }

    fn visit_double_bracket(&mut self, node: Node<'_>, pieces: &[Range<usize>]) {
        if self.text(node).contains("\\\n") || (!self.bash && self.would_split(pieces)) {
            // Where `[[` is not a keyword, its operators are those of the shell.
            self.add_unresolved("a test that not every shell reads so", node);
        }
        for (at, piece) in pieces.iter().enumerate() {
            let operator = self.slice(piece.clone());
            if ARITHMETIC_OPERATORS.contains(&operator) {
                let before = at.checked_sub(1).and_then(|at| pieces.get(at));
                for operand in [before, pieces.get(at + 1)] {
                    self.add_arithmetic_operand(operand, node);
                }
            } else if matches!(operator, "-v" | "-R") {
                let name = pieces.get(at + 1).map(|it| self.slice(it.clone()));
                if !name.is_some_and(super::lex::is_name) {
                    self.add_unresolved("a test that evaluates", node);
                }
            }
        }
    }

    /// Whether a shell without `[[` would run or open something after an operator.
    fn would_split(&self, pieces: &[Range<usize>]) -> bool {
        let text = |at: usize| pieces.get(at).map_or("", |it| self.slice(it.clone()));
        (0..pieces.len()).any(|at| match text(at) {
            "<" | ">" => true,
            "&&" | "||" => !text(at + 1).starts_with('-'),
            _ => false,
        })
    }

    fn add_arithmetic_operand(&mut self, operand: Option<&Range<usize>>, node: Node<'_>) {
        let names = operand.and_then(|range| {
            let word = self.read_word(range.clone())?;
            test_operand_variables(self.slice(range.clone()), &word)
        });
        match names {
            Some(names) => self
                .analysis
                .add_uses("arithmetic", ValueClass::Number, names),
            None => self.add_unresolved("a test that evaluates", node),
        }
    }

    fn check_side_effect_free(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            self.depth += 1;
            if child.is_named()
                && !SIDE_EFFECT_FREE.contains(&child.kind())
                && !self.is_plain_parameter(child)
            {
                self.add_unresolved("a test", child);
                self.visit_statement(child);
            } else if self.depth < 100 {
                self.check_side_effect_free(child);
            } else {
                self.add_unresolved("nesting that deep", child);
            }
            self.depth -= 1;
        }
    }

    /// `${name}` and `${#name}`.
    fn is_plain_parameter(&self, node: Node<'_>) -> bool {
        node.kind() == "expansion" && super::visitor::is_plain_expansion(self.text(node))
    }
}

/// The words of a test, in order.
fn collect_pieces(node: Node<'_>, pieces: &mut Vec<Range<usize>>) {
    let mut cursor = node.walk();
    for child in node.children(&mut cursor) {
        if EXPRESSIONS.contains(&child.kind()) {
            collect_pieces(child, pieces);
        } else {
            add_piece(pieces, child.byte_range());
        }
    }
}
