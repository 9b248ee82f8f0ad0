//! YAML as a tree whose nodes know where they stand.
//!
//! The tree is bounded in nodes and depth, aliases counted as what they stand for: a few lines
//! of them can stand for billions of nodes.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::ImportError;

/// Nodes of the largest tree.
const NODES: usize = 20_000;
/// How deep nodes stand in each other.
const DEPTH: usize = 64;
/// The key whose maps are merged into the one it stands in.
const MERGE: &str = "<<";

/// Where something stands, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Position {
    pub(super) fn error(self, problem: impl Into<String>) -> ImportError {
        ImportError {
            line: self.line,
            column: self.column,
            problem: problem.into(),
        }
    }
}

/// A node.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) place: Position,
    pub(super) value: Value,
    /// Itself and all below it.
    nodes: usize,
    depth: usize,
}

/// What a node is. Numbers and truths are texts: who reads them knows what they are for.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Null,
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    fn new(place: Position, value: Value) -> Self {
        let children: Box<dyn Iterator<Item = &Self>> = match &value {
            Value::Null | Value::Text(_) => Box::new(std::iter::empty()),
            Value::List(items) => Box::new(items.iter()),
            Value::Map(pairs) => Box::new(pairs.iter().map(|(_, node)| node)),
        };
        let (nodes, depth) = children.fold((1, 0), |(nodes, depth): (usize, usize), it| {
            (nodes.saturating_add(it.nodes), depth.max(it.depth))
        });
        Self {
            place,
            value,
            nodes,
            depth: depth + 1,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            Value::Null | Value::List(_) | Value::Map(_) => None,
        }
    }

    /// Its items; itself where it is one text.
    pub(super) fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            Value::Text(_) => std::slice::from_ref(self),
            Value::Null | Value::Map(_) => &[],
        }
    }

    pub(super) fn pairs(&self) -> &[(String, Self)] {
        match &self.value {
            Value::Map(pairs) => pairs,
            Value::Null | Value::Text(_) | Value::List(_) => &[],
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let found = self.pairs().iter().find(|(name, _)| name == key);
        found.map(|(_, node)| node)
    }
}

/// A list or a map that is not finished.
struct Open {
    place: Position,
    anchor: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map(Vec<(String, Node)>, Option<String>),
}

#[derive(Default)]
struct Tree {
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    root: Option<Node>,
    nodes: usize,
}

/// Reads one document.
///
/// # Errors
/// What is no YAML, is too large, or has a key twice.
pub(super) fn read(text: &str) -> Result<Node, ImportError> {
    let mut tree = Tree::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let marker = error.marker();
            let place = Position {
                line: marker.line().max(1),
                column: marker.col() + 1,
            };
            place.error(error.info())
        })?;
        tree.take(event, place_of(span))?;
    }
    let empty = Position { line: 1, column: 1 };
    Ok(tree.root.unwrap_or_else(|| Node::new(empty, Value::Null)))
}

fn place_of(span: Span) -> Position {
    Position {
        line: span.start.line(),
        column: span.start.col() + 1,
    }
}

impl Tree {
    fn take(&mut self, event: Event<'_>, place: Position) -> Result<(), ImportError> {
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(place.error("a second document begins"))
            }
            Event::Scalar(text, style, anchor, _) => {
                let is_null = style == ScalarStyle::Plain && ["", "~", "null"].contains(&&*text);
                let value = if is_null {
                    Value::Null
                } else {
                    Value::Text(text.into_owned())
                };
                self.put(Node::new(place, value), anchor)
            }
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor).cloned();
                let node = node.ok_or_else(|| place.error("stands for something it stands in"))?;
                self.put(node, 0)
            }
            Event::SequenceStart(anchor, _) => self.begin(place, anchor, Content::List(Vec::new())),
            Event::MappingStart(anchor, _) => {
                self.begin(place, anchor, Content::Map(Vec::new(), None))
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    fn begin(
        &mut self,
        place: Position,
        anchor: usize,
        content: Content,
    ) -> Result<(), ImportError> {
        if self.open.len() >= DEPTH {
            return Err(place.error(format!("stands deeper than {DEPTH} levels")));
        }
        self.open.push(Open {
            place,
            anchor,
            content,
        });
        Ok(())
    }

    fn end(&mut self) -> Result<(), ImportError> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let value = match open.content {
            Content::List(items) => Value::List(items),
            Content::Map(pairs, _) => Value::Map(merged(pairs)),
        };
        self.put(Node::new(open.place, value), open.anchor)
    }

    /// Puts a finished node where it belongs.
    fn put(&mut self, node: Node, anchor: usize) -> Result<(), ImportError> {
        let place = node.place;
        self.nodes = self.nodes.saturating_add(node.nodes);
        if self.nodes > NODES * DEPTH || node.nodes > NODES || node.depth + self.open.len() > DEPTH
        {
            return Err(place.error(format!("is larger than {NODES} values or {DEPTH} levels")));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(node),
            Some(Content::List(items)) => items.push(node),
            Some(Content::Map(pairs, key)) => match key.take() {
                Some(name) => pairs.push((name, node)),
                None => *key = Some(key_of(&node, pairs)?),
            },
        }
        Ok(())
    }
}

fn key_of(node: &Node, known: &[(String, Node)]) -> Result<String, ImportError> {
    let key = match &node.value {
        Value::Text(text) => text.clone(),
        Value::Null => String::new(),
        Value::List(_) | Value::Map(_) => return Err(node.place.error("a key has to be a text")),
    };
    if key != MERGE && known.iter().any(|(name, _)| *name == key) {
        return Err(node
            .place
            .error(format!("the key '{key}' stands there twice")));
    }
    Ok(key)
}

/// A map with those of its merge key: its own values win.
fn merged(pairs: Vec<(String, Node)>) -> Vec<(String, Node)> {
    let (merge, mut own): (Vec<_>, Vec<_>) = pairs.into_iter().partition(|(key, _)| key == MERGE);
    for (_, node) in merge {
        let maps = match node.value {
            Value::List(items) => items,
            Value::Map(_) | Value::Null | Value::Text(_) => vec![node],
        };
        for (key, value) in maps.iter().flat_map(Node::pairs) {
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
        let root = read("base: &b\n  a: 1\n  c: [x, y]\nuse:\n  <<: *b\n  a: 2\n").expect("yaml");
        let used = root.get("use").expect("a key");
        assert_eq!(used.get("a").and_then(Node::text), Some("2"));
        let list = used.get("c").expect("merged");
        assert_eq!(list.items().len(), 2);
        assert_eq!(list.place, Position { line: 3, column: 6 });
    }

    #[test]
    fn what_cannot_be_read_has_its_place() {
        for (text, at) in [
            ("a: [1, 2", "2:1"),
            ("a: 1\n  b: 2", "2:4"),
            ("a: 1\na: 2", "2:1"),
            ("a: 1\n---\nb: 2", "2:1"),
            ("a: \"open", "1:4"),
            ("[a]: 1\n? {b: c}\n: d", "1:1"),
        ] {
            let error = read(text).expect_err(text).to_string();
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
            read(&text)
                .expect_err("too large")
                .problem
                .contains("larger")
        );
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert!(read(&deep).is_err());
        assert!(read("a: &a [*a]").is_err());
    }
}
