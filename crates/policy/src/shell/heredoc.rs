//! Here-documents: their end is verified independently of the grammar.

use tree_sitter::Node;

use super::visitor::AstVisitor;

impl AstVisitor<'_, '_> {
    pub(super) fn visit_heredoc(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        let found = |kind: &str| children.iter().find(|it| it.kind() == kind).copied();
        let parts = (
            found("heredoc_start"),
            found("heredoc_body"),
            found("heredoc_end"),
        );
        let (Some(start), Some(body), Some(end)) = parts else {
            self.add_unresolved("a here-document", node);
            self.visit_children(node, false);
            return;
        };
        let word = self.text(start);
        let bare = word.trim_matches(['\'', '"']);
        let quoted = bare.len() != word.len();
        let plain = word.len() - bare.len() != 1
            && !bare.is_empty()
            && bare.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let tabs = children.iter().any(|it| it.kind() == "<<-");
        if !plain || !self.ends_at(start, end, bare, tabs) {
            self.add_unresolved("a here-document", node);
        }
        if self.is_continued(start, end, quoted) {
            self.is_joined = true;
            self.add_unresolved("a line continued in a here-document", node);
        }
        if !quoted {
            self.visit_expansions(body);
        }
        for child in &children {
            match child.kind() {
                "heredoc_start" | "heredoc_body" | "heredoc_end" | "<<" | "<<-" | "\n" => {}
                "file_descriptor" => self.add_unresolved("a here-document on a descriptor", *child),
                "file_redirect" => {
                    self.visit_file_redirect(*child);
                }
                "&&" | "||" | "|" => {}
                "pipeline" | "command" | "list" | "subshell" | "redirected_statement" => {
                    self.visit_statement(*child);
                }
                _ => {
                    self.add_unresolved("a word after a here-document", *child);
                    self.visit_statement(*child);
                }
            }
        }
    }

    /// Whether the first line that ends the document is the one the grammar found.
    fn ends_at(&self, start: Node<'_>, end: Node<'_>, word: &str, tabs: bool) -> bool {
        let rest = self.slice(start.end_byte()..self.source.len());
        if rest.lines().next().is_some_and(|line| line.contains("<<")) {
            return false;
        }
        let mut at = start.end_byte();
        let mut lines = rest.split_inclusive('\n');
        at += lines.next().map_or(0, str::len);
        for line in lines {
            let content = line.strip_suffix('\n').unwrap_or(line);
            let content = if tabs {
                content.trim_start_matches('\t')
            } else {
                content
            };
            if content == word {
                return (at..=at + line.len()).contains(&end.end_byte())
                    && end.end_byte() > at
                    && self.text(end).trim_matches(['\t', '\n']) == word;
            }
            at += line.len();
        }
        false
    }

    /// Whether the document begins on another line than the grammar finds, or, unquoted, may end on
    /// another one: a shell joins continued lines before it compares them with the delimiter.
    fn is_continued(&self, start: Node<'_>, end: Node<'_>, quoted: bool) -> bool {
        let text = self.slice(start.end_byte()..end.start_byte().max(start.end_byte()));
        let first = text.split_inclusive('\n').next().unwrap_or_default();
        first.ends_with("\\\n") || (!quoted && text.contains("\\\n"))
    }

    /// In an unquoted document variables are data; any other expansion is not understood.
    fn visit_expansions(&mut self, body: Node<'_>) {
        let text = self.text(body);
        let mut cursor = body.walk();
        for child in body.named_children(&mut cursor) {
            match child.kind() {
                "heredoc_content" | "simple_expansion" => {}
                _ => self.visit_statement(child),
            }
        }
        if text.contains('`') || text.contains("$(") || text.contains("${") || text.contains("$[") {
            self.add_unresolved("an expansion in a here-document", body);
        }
    }
}
