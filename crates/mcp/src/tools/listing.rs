//! Lists in tool answers: a page of entries, counts, and the cursor of the next page.

use ostler_engine::ExecutionInfo;
use ostler_render::REPLY_CHARS;
use serde_json::{Value, json};

use crate::tool_call::ToolCall;
use ostler_interface::error::ApiError;
use ostler_interface::pagination::{
    CursorKey, ListPage, ListPosition, NewestFirst, PageLimits, after_cursor, json_chars,
};
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// Reserved for the text around the entries.
const FRAME_CHARS: usize = 400;

pub(super) const CURSOR: Parameter =
    Parameter::optional("cursor", ParameterKind::Text, "The list before's next");

/// As many entries as fit into an answer.
pub(super) const WHOLE_ANSWER: PageLimits = PageLimits {
    entries: usize::MAX,
    chars: REPLY_CHARS - FRAME_CHARS,
};
/// As many as fit into an answer that has them twice, as text and as structured content.
pub(super) const HALF_ANSWER: PageLimits = PageLimits {
    entries: 20,
    chars: REPLY_CHARS / 2 - FRAME_CHARS,
};

/// The entries after the cursor of a call, in order.
///
/// # Errors
/// When the cursor is invalid.
pub(super) fn rest_after_cursor<T, K: CursorKey>(
    found: impl IntoIterator<Item = T>,
    position: impl Fn(&T) -> ListPosition<K>,
    arguments: &mut Arguments,
) -> Result<Vec<(ListPosition<K>, T)>, ApiError> {
    after_cursor(found, position, arguments.text("cursor").as_deref())
}

/// A page of the `all` entries from here on, each with its execution.
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

/// A page of executions, each converted by `entry`.
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

/// Adds a page to an answer under `name`, with the number of entries after it.
pub(super) fn put_page(page: ListPage<Value>, body: &mut Value, name: &str) {
    body[name] = page.entries.into();
    if page.remaining > 0 {
        body["omitted"] = page.remaining.into();
        body["next"] = json!(page.next);
        body["hint"] = "cursor: this next".into();
    }
}
