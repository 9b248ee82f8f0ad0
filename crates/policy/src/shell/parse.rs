//! From the text of a script to its tree.

use std::ops::ControlFlow;

use ostler_model::SCRIPT_BYTES;
use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

use super::walk::Walk;
use crate::seen::Seen;
use crate::word::is_invisible;

/// How often the parser may report progress before it is stopped: error recovery on garbage
/// is not linear. An ordinary script of the longest length stays far below.
const PARSE_STEPS: usize = 200_000;

/// Adds what `script` would run, by bash or by whatever shell there is.
pub(crate) fn read_script(script: &str, bash: bool, seen: &mut Seen) {
    if script.len() > SCRIPT_BYTES {
        seen.doubt_text("a script of that length", script);
        return;
    }
    if script.chars().any(is_invisible) {
        seen.doubt_text("a character that does not show", script);
    }
    let Some(tree) = parse(script) else {
        seen.doubt_text("a script too tangled to parse", script);
        return;
    };
    let root = tree.root_node();
    if root.has_error() {
        seen.doubt_text("a syntax error", script);
    }
    let mut walk = Walk {
        source: script,
        seen,
        depth: 0,
        bash,
    };
    walk.edges(root);
    walk.statement(root);
}

fn parse(script: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_bash::LANGUAGE.into())
        .ok()?;
    let mut steps = 0_usize;
    let mut progress = |_: &ParseState| {
        steps += 1;
        if steps > PARSE_STEPS {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let bytes = script.as_bytes();
    let mut input = |offset: usize, _| bytes.get(offset..).unwrap_or_default();
    parser.parse_with_options(&mut input, None, Some(options))
}
