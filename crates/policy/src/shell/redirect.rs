//! Redirections: files a shell opens.

use std::ops::Range;

use tree_sitter::Node;

use super::visitor::{AstVisitor, add_piece};
use crate::analysis::{Invocation, Redirect};
use crate::word::CommandWord;

impl AstVisitor<'_, '_> {
    /// Returns the words of the command that stand after the file's name.
    pub(super) fn visit_file_redirect(&mut self, node: Node<'_>) -> Vec<CommandWord> {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        self.check_gaps(&children, false);
        let mut operator = "";
        let mut pieces: Vec<Range<usize>> = Vec::new();
        for child in children {
            let text = self.text(child);
            if child.kind() == "file_descriptor" {
                if !text.chars().all(|c| c.is_ascii_digit()) {
                    self.add_unresolved("a named file descriptor", child);
                }
            } else if !child.is_named() && operator.is_empty() {
                operator = child.kind();
            } else {
                self.visit_value(child);
                add_piece(&mut pieces, child.byte_range());
            }
        }
        let mut words: Vec<CommandWord> = pieces
            .into_iter()
            .filter_map(|it| self.read_word(it))
            .collect();
        let behind = words.split_off(words.len().min(1));
        if !behind.is_empty() {
            // The grammar treats words after a redirection as part of it; to a shell they are the
            // command's.
            self.add_unresolved("words after a redirection", node);
            self.analysis
                .invocations
                .push(Invocation::guess(behind.clone()));
        }
        self.add_redirect(operator, words.pop(), node);
        behind
    }

    fn add_redirect(&mut self, operator: &str, target: Option<CommandWord>, node: Node<'_>) {
        let duplicates = matches!(operator, ">&" | "<&");
        let writes = match operator {
            "<" => false,
            ">" | ">>" | ">|" | "&>" | "&>>" => true,
            ">&" | "<&" => operator == ">&",
            "<&-" | ">&-" => return,
            _ => {
                self.add_unresolved("a redirection", node);
                true
            }
        };
        let Some(target) = target else {
            self.add_unresolved("a redirection", node);
            return;
        };
        let is_descriptor = target.is_certain() && target.text.chars().all(|c| c.is_ascii_digit());
        if !(duplicates && is_descriptor) {
            self.analysis.redirects.push(Redirect { target, writes });
        }
    }

    pub(super) fn visit_herestring(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        self.check_gaps(&children, false);
        for child in children.into_iter().filter(Node::is_named) {
            if child.kind() != "file_descriptor" {
                self.visit_value(child);
            }
        }
    }
}
