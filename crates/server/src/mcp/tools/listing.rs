//! Lists as the tools answer them: a window of entries, counts, and where the next window begins.

use ostler_engine::ExecutionInfo;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::mcp::context::ToolCall;
use crate::pagination::{
    CursorKey, ListPage, ListPosition, NewestFirst, PageLimits, after_cursor, json_chars,
};
use crate::params::{Arguments, Parameter, ParameterKind};
use ostler_render::REPLY_CHARS;

/// Kept free for what stands around the entries.
const FRAME_CHARS: usize = 400;

pub(super) const CURSOR: Parameter =
    Parameter::optional("cursor", ParameterKind::Text, "The list before's next");

/// As many entries as an answer holds.
pub(super) const WHOLE_ANSWER: PageLimits = PageLimits {
    entries: usize::MAX,
    chars: REPLY_CHARS - FRAME_CHARS,
};
/// As many as an answer holds that carries them twice, as text and for programs.
pub(super) const HALF_ANSWER: PageLimits = PageLimits {
    entries: 20,
    chars: REPLY_CHARS / 2 - FRAME_CHARS,
};

/// What of a list comes behind the cursor of a call, in order.
///
/// # Errors
/// When the cursor is none.
pub(super) fn rest_after_cursor<T, K: CursorKey>(
    found: impl IntoIterator<Item = T>,
    position: impl Fn(&T) -> ListPosition<K>,
    arguments: &mut Arguments,
) -> Result<Vec<(ListPosition<K>, T)>, ApiError> {
    after_cursor(found, position, arguments.text("cursor").as_deref())
}

/// A window of the `all` entries there are from here on, each with the execution it tells of.
pub(super) fn fill_page<'f, K: CursorKey>(
    call: ToolCall<'_>,
    window: PageLimits,
    entries: impl IntoIterator<Item = (ListPosition<K>, (Option<&'f ExecutionInfo>, Value))>,
    all: usize,
) -> ListPage<Value> {
    let page = window.fill(entries, all, |(_, entry)| json_chars(entry));
    let mark_notified = |(info, entry): (Option<&ExecutionInfo>, Value)| {
        if let Some(info) = info {
            call.mark_notified(info);
        }
        entry
    };
    ListPage {
        entries: page.entries.into_iter().map(mark_notified).collect(),
        remaining: page.remaining,
        next: page.next,
    }
}

/// A window of executions, each as `entry` tells it.
pub(super) fn execution_page(
    call: ToolCall<'_>,
    window: PageLimits,
    remaining: Vec<(ListPosition<NewestFirst>, &ExecutionInfo)>,
    entry: impl Fn(&ExecutionInfo) -> Value,
) -> ListPage<Value> {
    let all = remaining.len();
    let entries = remaining
        .into_iter()
        .map(|(at, info)| (at, (Some(info), entry(info))));
    fill_page(call, window, entries, all)
}

/// Puts a window into an answer under `name`, and how much there is behind it.
pub(super) fn put_page(page: ListPage<Value>, body: &mut Value, name: &str) {
    body[name] = page.entries.into();
    if page.remaining > 0 {
        body["omitted"] = page.remaining.into();
        body["next"] = json!(page.next);
        body["hint"] = "cursor: this next".into();
    }
}
