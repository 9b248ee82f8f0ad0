//! Lists as the tools answer them: a window of entries, counts, and where the next window begins.

use ostler_engine::Info;
use serde_json::{Value, json};

use crate::error::Failure;
use crate::mcp::context::Call;
use crate::params::{Arguments, Kind, Parameter};
use crate::render::REPLY_CHARS;
use crate::window::{Key, Newest, Page, Position, Window, behind, json_chars};

/// Kept free for what stands around the entries.
const FRAME_CHARS: usize = 400;

pub(super) const CURSOR: Parameter =
    Parameter::optional("cursor", Kind::Text, "The list before's next");

/// As many entries as an answer holds.
pub(super) const WHOLE_ANSWER: Window = Window {
    entries: usize::MAX,
    chars: REPLY_CHARS - FRAME_CHARS,
};
/// As many as an answer holds that carries them twice, as text and for programs.
pub(super) const HALF_ANSWER: Window = Window {
    entries: 20,
    chars: REPLY_CHARS / 2 - FRAME_CHARS,
};

/// What of a list comes behind the cursor of a call, in order.
///
/// # Errors
/// When the cursor is none.
pub(super) fn rest<T, K: Key>(
    found: impl IntoIterator<Item = T>,
    position: impl Fn(&T) -> Position<K>,
    arguments: &mut Arguments,
) -> Result<Vec<(Position<K>, T)>, Failure> {
    behind(found, position, arguments.text("cursor").as_deref())
}

/// A window of the `all` entries there are from here on, each with the execution it tells of.
pub(super) fn window<'f, K: Key>(
    call: Call<'_>,
    window: Window,
    entries: impl IntoIterator<Item = (Position<K>, (Option<&'f Info>, Value))>,
    all: usize,
) -> Page<Value> {
    let page = window.fill(entries, all, |(_, entry)| json_chars(entry));
    let told = |(info, entry): (Option<&Info>, Value)| {
        if let Some(info) = info {
            call.told(info);
        }
        entry
    };
    Page {
        entries: page.entries.into_iter().map(told).collect(),
        left: page.left,
        next: page.next,
    }
}

/// A window of executions, each as `entry` tells it.
pub(super) fn executions(
    call: Call<'_>,
    of: Window,
    rest: Vec<(Position<Newest>, &Info)>,
    entry: impl Fn(&Info) -> Value,
) -> Page<Value> {
    let all = rest.len();
    let entries = rest
        .into_iter()
        .map(|(at, info)| (at, (Some(info), entry(info))));
    window(call, of, entries, all)
}

/// Puts a window into an answer under `name`, and how much there is behind it.
pub(super) fn put(page: Page<Value>, body: &mut Value, name: &str) {
    body[name] = page.entries.into();
    if page.left > 0 {
        body["omitted"] = page.left.into();
        body["next"] = json!(page.next);
        body["hint"] = "cursor: this next".into();
    }
}
