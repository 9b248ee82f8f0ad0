//! YAML as a tree whose nodes know their position in the file.
//!
//! The tree is bounded in nodes and depth, and aliases count as what they expand to: a few lines of
//! them can expand to billions of nodes.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::ImportError;

/// The most nodes in a tree.
const NODES: usize = 20_000;
/// The greatest nesting depth.
const DEPTH: usize = 64;
/// The merge key: its maps are merged into the map that contains it.
const MERGE: &str = "<<";

/// A position in the text; both numbers from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct YamlPosition {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl YamlPosition {
    pub(super) fn error(self, problem: impl Into<String>) -> ImportError {
        ImportError {
            line: self.line,
            column: self.column,
            problem: problem.into(),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct YamlNode {
    pub(super) position: YamlPosition,
    pub(super) value: YamlValue,
    /// The number of nodes in this subtree, itself included.
    nodes: usize,
    depth: usize,
}

/// The content of a node. Numbers and booleans are texts: the caller knows the type it expects.
#[derive(Debug, Clone)]
pub(super) enum YamlValue {
    Null,
    Text(String),
    List(Vec<YamlNode>),
    Map(Vec<(String, YamlNode)>),
}

impl YamlNode {
    fn new(position: YamlPosition, value: YamlValue) -> Self {
        let children: Box<dyn Iterator<Item = &Self>> = match &value {
            YamlValue::Null | YamlValue::Text(_) => Box::new(std::iter::empty()),
            YamlValue::List(items) => Box::new(items.iter()),
            YamlValue::Map(pairs) => Box::new(pairs.iter().map(|(_, node)| node)),
        };
        let (nodes, depth) = children.fold((1, 0), |(nodes, depth): (usize, usize), it| {
            (nodes.saturating_add(it.nodes), depth.max(it.depth))
        });
        Self {
            position,
            value,
            nodes,
            depth: depth + 1,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            YamlValue::Text(text) => Some(text),
            YamlValue::Null | YamlValue::List(_) | YamlValue::Map(_) => None,
        }
    }

    /// The items of a list; a single text counts as a list of one.
    pub(super) fn items(&self) -> &[Self] {
        match &self.value {
            YamlValue::List(items) => items,
            YamlValue::Text(_) => std::slice::from_ref(self),
            YamlValue::Null | YamlValue::Map(_) => &[],
        }
    }

    pub(super) fn pairs(&self) -> &[(String, Self)] {
        match &self.value {
            YamlValue::Map(pairs) => pairs,
            YamlValue::Null | YamlValue::Text(_) | YamlValue::List(_) => &[],
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let found = self.pairs().iter().find(|(name, _)| name == key);
        found.map(|(_, node)| node)
    }
}

/// A list or a map whose end was not reached yet.
struct OpenCollection {
    position: YamlPosition,
    anchor: usize,
    content: CollectionContent,
}

enum CollectionContent {
    List(Vec<YamlNode>),
    Map(Vec<(String, YamlNode)>, Option<String>),
}

#[derive(Default)]
struct TreeBuilder {
    open: Vec<OpenCollection>,
    anchors: HashMap<usize, YamlNode>,
    root: Option<YamlNode>,
    nodes: usize,
}

/// Parses one document.
///
/// # Errors
/// A text that is not YAML, is too large, or has a duplicate key.
pub(super) fn parse(text: &str) -> Result<YamlNode, ImportError> {
    let mut tree = TreeBuilder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let marker = error.marker();
            let position = YamlPosition {
                line: marker.line().max(1),
                column: marker.col() + 1,
            };
            position.error(error.info())
        })?;
        tree.handle_event(event, position_of(span))?;
    }
    let empty = YamlPosition { line: 1, column: 1 };
    Ok(tree
        .root
        .unwrap_or_else(|| YamlNode::new(empty, YamlValue::Null)))
}

fn position_of(span: Span) -> YamlPosition {
    YamlPosition {
        line: span.start.line(),
        column: span.start.col() + 1,
    }
}

impl TreeBuilder {
    fn handle_event(
        &mut self,
        event: Event<'_>,
        position: YamlPosition,
    ) -> Result<(), ImportError> {
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(position.error("a second document begins"))
            }
            Event::Scalar(text, style, anchor, _) => {
                let is_null = style == ScalarStyle::Plain && ["", "~", "null"].contains(&&*text);
                let value = if is_null {
                    YamlValue::Null
                } else {
                    YamlValue::Text(text.into_owned())
                };
                self.add_node(YamlNode::new(position, value), anchor)
            }
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor).cloned();
                let node =
                    node.ok_or_else(|| position.error("stands for something it stands in"))?;
                self.add_node(node, 0)
            }
            Event::SequenceStart(anchor, _) => {
                self.open_collection(position, anchor, CollectionContent::List(Vec::new()))
            }
            Event::MappingStart(anchor, _) => {
                self.open_collection(position, anchor, CollectionContent::Map(Vec::new(), None))
            }
            Event::SequenceEnd | Event::MappingEnd => self.close_collection(),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    fn open_collection(
        &mut self,
        position: YamlPosition,
        anchor: usize,
        content: CollectionContent,
    ) -> Result<(), ImportError> {
        if self.open.len() >= DEPTH {
            return Err(position.error(format!("stands deeper than {DEPTH} levels")));
        }
        self.open.push(OpenCollection {
            position,
            anchor,
            content,
        });
        Ok(())
    }

    fn close_collection(&mut self) -> Result<(), ImportError> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let value = match open.content {
            CollectionContent::List(items) => YamlValue::List(items),
            CollectionContent::Map(pairs, _) => YamlValue::Map(merge(pairs)),
        };
        self.add_node(YamlNode::new(open.position, value), open.anchor)
    }

    /// Adds a complete node to the innermost open collection.
    fn add_node(&mut self, node: YamlNode, anchor: usize) -> Result<(), ImportError> {
        let position = node.position;
        self.nodes = self.nodes.saturating_add(node.nodes);
        if self.nodes > NODES * DEPTH || node.nodes > NODES || node.depth + self.open.len() > DEPTH
        {
            return Err(position.error(format!("is larger than {NODES} values or {DEPTH} levels")));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(node),
            Some(CollectionContent::List(items)) => items.push(node),
            Some(CollectionContent::Map(pairs, key)) => match key.take() {
                Some(name) => pairs.push((name, node)),
                None => *key = Some(key_of(&node, pairs)?),
            },
        }
        Ok(())
    }
}

fn key_of(node: &YamlNode, known: &[(String, YamlNode)]) -> Result<String, ImportError> {
    let key = match &node.value {
        YamlValue::Text(text) => text.clone(),
        YamlValue::Null => String::new(),
        YamlValue::List(_) | YamlValue::Map(_) => {
            return Err(node.position.error("a key has to be a text"));
        }
    };
    if key != MERGE && known.iter().any(|(name, _)| *name == key) {
        return Err(node
            .position
            .error(format!("the key '{key}' stands there twice")));
    }
    Ok(key)
}

/// A map with the pairs of its merge key; its own values take precedence.
fn merge(pairs: Vec<(String, YamlNode)>) -> Vec<(String, YamlNode)> {
    let (merge, mut own): (Vec<_>, Vec<_>) = pairs.into_iter().partition(|(key, _)| key == MERGE);
    for (_, node) in merge {
        let maps = match node.value {
            YamlValue::List(items) => items,
            YamlValue::Map(_) | YamlValue::Null | YamlValue::Text(_) => vec![node],
        };
        for (key, value) in maps.iter().flat_map(YamlNode::pairs) {
            if !own.iter().any(|(known, _)| known == key) {
                own.push((key.clone(), value.clone()));
            }
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_anchors_and_merges() {
        let root = parse("base: &b\n  a: 1\n  c: [x, y]\nuse:\n  <<: *b\n  a: 2\n").expect("yaml");
        let used = root.get("use").expect("a key");
        assert_eq!(used.get("a").and_then(YamlNode::text), Some("2"));
        let list = used.get("c").expect("merged");
        assert_eq!(list.items().len(), 2);
        assert_eq!(list.position, YamlPosition { line: 3, column: 6 });
    }

    #[test]
    fn what_cannot_be_parsed_is_reported_with_its_line() {
        for (text, at) in [
            ("a: [1, 2", "2:1"),
            ("a: 1\n  b: 2", "2:4"),
            ("a: 1\na: 2", "2:1"),
            ("a: 1\n---\nb: 2", "2:1"),
            ("a: \"open", "1:4"),
            ("[a]: 1\n? {b: c}\n: d", "1:1"),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.starts_with(at), "{text:?}: {error}");
        }
    }

    #[test]
    fn aliases_do_not_grow_without_bounds() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for at in 1..12 {
            let of = format!("*a{}, ", at - 1).repeat(9);
            text.push_str(&format!("a{at}: &a{at} [{of}]\n"));
        }
        assert!(
            parse(&text)
                .expect_err("too large")
                .problem
                .contains("larger")
        );
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert!(parse(&deep).is_err());
        assert!(parse("a: &a [*a]").is_err());
    }
}
