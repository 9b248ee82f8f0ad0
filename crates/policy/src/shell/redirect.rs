//! Files a shell opens.

use std::ops::Range;

use tree_sitter::Node;

use super::walk::{Walk, add_piece};
use crate::seen::{Call, Redirect};
use crate::word::Word;

impl Walk<'_, '_> {
    pub(super) fn file_redirect(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        self.gaps(&children, false);
        let mut operator = "";
        let mut pieces: Vec<Range<usize>> = Vec::new();
        for child in children {
            let text = self.text(child);
            if child.kind() == "file_descriptor" {
                if !text.chars().all(|c| c.is_ascii_digit()) {
                    self.doubt("a named file descriptor", child);
                }
            } else if !child.is_named() && operator.is_empty() {
                operator = child.kind();
            } else {
                self.value(child);
                add_piece(&mut pieces, child.byte_range());
            }
        }
        let mut words: Vec<Word> = pieces.into_iter().filter_map(|it| self.word(it)).collect();
        if words.len() > 1 {
            // The grammar takes words after a redirection for part of it; to a shell they are
            // the command's.
            self.doubt("words after a redirection", node);
            self.seen.calls.push(Call::guess(words.split_off(1)));
        }
        self.target(operator, words.pop(), node);
    }

    fn target(&mut self, operator: &str, target: Option<Word>, node: Node<'_>) {
        let duplicates = matches!(operator, ">&" | "<&");
        let writes = match operator {
            "<" => false,
            ">" | ">>" | ">|" | "&>" | "&>>" => true,
            ">&" | "<&" => operator == ">&",
            "<&-" | ">&-" => return,
            _ => {
                self.doubt("a redirection", node);
                true
            }
        };
        let Some(target) = target else {
            self.doubt("a redirection", node);
            return;
        };
        let is_descriptor = target.is_sure() && target.text.chars().all(|c| c.is_ascii_digit());
        if !(duplicates && is_descriptor) {
            self.seen.redirects.push(Redirect { target, writes });
        }
    }

    pub(super) fn herestring(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        self.gaps(&children, false);
        for child in children.into_iter().filter(Node::is_named) {
            if child.kind() != "file_descriptor" {
                self.value(child);
            }
        }
    }
}
