//! Backquoted commands within an expansion.

use tree_sitter::Node;

use super::parse::read_guess;
use super::visitor::AstVisitor;

impl AstVisitor<'_, '_> {
    /// Adds the commands between backquotes, where the grammar does not always find them, for rules
    /// that deny.
    pub(super) fn add_backquoted(&mut self, node: Node<'_>) {
        let mut around = std::iter::successors(node.parent(), Node::parent);
        if around.any(|it| it.kind() == "expansion") {
            return;
        }
        for script in self.text(node).split('`').skip(1).step_by(2) {
            read_guess(script, self.bash, self.analysis);
        }
    }
}
