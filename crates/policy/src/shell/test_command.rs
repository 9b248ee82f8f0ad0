//! `[ … ]` and `[[ … ]]`.

use tree_sitter::Node;

use super::walk::Walk;
use crate::seen::Call;
use crate::word::Word;

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
/// Operators that evaluate arithmetic, and with it whatever an index contains.
const COUNTING: [&str; 8] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"];

impl Walk<'_, '_> {
    pub(super) fn test_command(&mut self, node: Node<'_>) {
        let text = self.text(node);
        let variable = text.contains('$')
            || text
                .get(2..text.len() - 1)
                .is_some_and(|it| it.trim_matches(['[', ']']).contains('['));
        let counts = text
            .split_ascii_whitespace()
            .any(|word| COUNTING.contains(&word));
        if counts && variable {
            self.doubt("a test that evaluates", node);
        }
        if text.contains(['<', '>']) && !text.starts_with("[[") {
            self.doubt("a redirection in a test", node);
        }
        self.looks_only(node);
        self.seen.calls.push(Call::new(vec![Word::sure("test")]));
    }

    fn looks_only(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            self.depth += 1;
            if child.is_named() && !LOOKING.contains(&child.kind()) {
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
}
