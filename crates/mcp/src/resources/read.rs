//! The response to `resources/read`.

use ostler_engine::{ExecutionInfo, ListFilter};
use ostler_model::EventRecord;
use ostler_model::duration;
use ostler_render::REPLY_CHARS;
use ostler_terminal::ScreenSnapshot;
use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, MetaObject, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ResourceContents,
};
use serde_json::{Value, json};

use super::list::summary;
use super::log;
use super::uri::{JSON, TEXT};
use super::uri::{ResourceTarget, UriError, detail_uri};
use crate::client::ConnectedClient;
use crate::mcp_app::{self, APP_URI};
use crate::reply::RESULT_KEY;
use crate::screen::{self, render_screen};
use crate::state::McpState;
use ostler_interface::convert::execution_body;
use ostler_interface::cursor_argument::{CURSOR_PARAMETER, check_cursor};
use ostler_interface::error::ApiError;
use ostler_interface::pagination::{ListPosition, PageLimits, json_chars};

/// How long the state of an ended execution may be cached, in milliseconds.
const ENDED_TTL_MS: u64 = 60 * 60 * 1_000;
/// How much of a list one resource holds: all but the text around the entries.
const WINDOW: PageLimits = PageLimits {
    entries: usize::MAX,
    chars: REPLY_CHARS - 200,
};
/// Reserved for the text around a screen.
const SCREEN_FRAME_CHARS: usize = 600;
/// The most characters of one field of a detail that had to be cut.
const FIELD_CHARS: usize = 2_000;
/// Executions examined for the list: more than fit.
const LIST_SCAN: usize = 500;

/// The content of a resource, independent of the protocol.
struct ResourceContent {
    mime: &'static str,
    text: String,
    fields: Option<Value>,
    /// Whether the content is final.
    is_final: bool,
}

/// `resources/read`. Unknown and foreign resources get the same error.
pub(crate) async fn read(
    state: &McpState,
    client: &ConnectedClient,
    request: ReadResourceRequestParams,
) -> Result<ReadResourceResponse, ErrorData> {
    let uri = request.uri;
    let content = if uri == APP_URI {
        app_content(state)
            .await
            .ok_or_else(|| UriError::unknown(&uri))?
    } else {
        let target = ResourceTarget::parse(&uri)?;
        let content = read_content(state, client, target).await;
        content.map_err(|failure| UriError::from_failure(&uri, failure))?
    };
    let mut contents = ResourceContents::text(content.text, uri).with_mime_type(content.mime);
    if let Some(fields) = content.fields {
        let meta = ostler_interface::error::object(json!({RESULT_KEY: fields}));
        contents = contents.with_meta(MetaObject(meta));
    }
    let ttl_ms = if content.is_final { ENDED_TTL_MS } else { 0 };
    let result = ReadResourceResult::new(vec![contents])
        .with_ttl_ms(ttl_ms)
        .with_cache_scope(CacheScope::Private);
    Ok(result.into())
}

/// The page of the MCP App.
async fn app_content(state: &McpState) -> Option<ResourceContent> {
    let text = mcp_app::html(state).await?;
    Some(ResourceContent {
        mime: mcp_app::MIME_TYPE,
        text,
        fields: None,
        is_final: false,
    })
}

async fn read_content(
    state: &McpState,
    client: &ConnectedClient,
    target: ResourceTarget,
) -> Result<ResourceContent, ApiError> {
    let (engine, caller) = (state.engine(), &client.caller);
    match target {
        ResourceTarget::List => {
            let executions = engine.list_page(caller, None, LIST_SCAN);
            let total = if executions.len() < LIST_SCAN {
                executions.len()
            } else {
                engine.list(caller, &ListFilter::default()).len()
            };
            let rows = executions.iter().map(list_row);
            Ok(ResourceContent::json(
                fit_rows("processes", rows, total),
                false,
            ))
        }
        ResourceTarget::News => {
            state.notifications().enter_session(caller).await;
            let items = state.notifications().read_all(caller);
            let rows = items.iter().map(|item| {
                let mut row = json!({"at": item.at, "pid": item.id.short(),
                                     "failed": item.failed, "text": item.text});
                if let Some(data) = &item.data {
                    row["service"] = data.clone();
                }
                row
            });
            let total = items.len();
            Ok(ResourceContent::json(fit_rows("news", rows, total), false))
        }
        ResourceTarget::Detail(id) => {
            let info = engine.info(caller, &id)?;
            state.notifications().mark_notified(caller, &info);
            Ok(ResourceContent::json(
                execution_detail(&info),
                info.state.is_finished(),
            ))
        }
        ResourceTarget::Log(id, query) => {
            let info = engine.info(caller, &id)?;
            check_cursor(&info, CURSOR_PARAMETER, query.cursor)?;
            let journal = engine.journal(caller, &id)?;
            let log = log::read_log(&journal, &info, query).await?;
            state.notifications().mark_notified(caller, &info);
            Ok(ResourceContent {
                mime: TEXT,
                text: log.text,
                fields: Some(log.fields),
                is_final: info.state.is_finished(),
            })
        }
        ResourceTarget::Screen(id) => {
            let view = engine.screen(caller, &id).await?;
            let info = engine.info(caller, &id)?;
            state.notifications().mark_notified(caller, &info);
            Ok(screen_content(&info, &view))
        }
        ResourceTarget::Events(id) => {
            engine.flushed(caller, &id).await?;
            let info = engine.info(caller, &id)?;
            let events = engine.events(caller, &id)?;
            let settled = info.state.is_finished();
            Ok(ResourceContent::json(render_events(&events), settled))
        }
    }
}

impl ResourceContent {
    fn json(value: Value, settled: bool) -> Self {
        Self {
            mime: JSON,
            text: value.to_string(),
            fields: None,
            is_final: settled,
        }
    }
}

/// A screen as text, with the session's status in its first line.
fn screen_content(info: &ExecutionInfo, view: &ScreenSnapshot) -> ResourceContent {
    let rendered = render_screen(view, REPLY_CHARS - SCREEN_FRAME_CHARS);
    let mut text = format!(
        "[{} | {}]\n",
        info.status().session,
        screen::describe_view(view)
    );
    text.push_str(&rendered.text());
    if let Some(cut) = &rendered.truncation {
        text.push_str(&format!("\n[note: {cut}]"));
    }
    ResourceContent {
        mime: TEXT,
        text,
        fields: Some(screen::fields(view, &rendered)),
        is_final: info.state.is_finished(),
    }
}

/// One execution in the list.
fn list_row(info: &ExecutionInfo) -> Value {
    let ending = info.state.ending.as_ref();
    let mut row = json!({
        "uri": detail_uri(info),
        "pid": info.id.short(),
        "status": info.status().process,
        "what": summary(info),
        "start_time": info.state.started_at.or(info.state.created_at),
        "duration": duration::as_seconds(info.duration()),
        "exit_code": ending.and_then(|ending| ending.code),
    });
    if let Some(plan) = info.spec.lifetime.plan() {
        let (status, url) = (info.status().service, &info.state.url);
        row["service"] = json!({"name": plan.name, "status": status, "url": url});
    }
    row
}

/// As many rows as fit, and how many were left out.
fn fit_rows(name: &str, rows: impl Iterator<Item = Value>, total: usize) -> Value {
    let rows = rows.enumerate();
    let rows = rows.map(|(index, row)| (ListPosition::by(index), row));
    let page = WINDOW.fill(rows, total, json_chars);
    json!({name: page.entries, "omitted": page.remaining})
}

/// The newest events that fit, oldest first.
fn render_events(events: &[EventRecord]) -> Value {
    let newest = events.iter().rev().map(|event| {
        let mut event = json!(event);
        shorten(&mut event, FIELD_CHARS);
        event
    });
    let mut body = fit_rows("events", newest, events.len());
    if let Some(entries) = body["events"].as_array_mut() {
        entries.reverse();
    }
    body
}

/// The data of one execution, and its pending prompt; oversized fields are truncated.
fn execution_detail(info: &ExecutionInfo) -> Value {
    let mut body = json!(execution_body(info));
    if let Some(fields) = body.as_object_mut() {
        let id = fields.remove("id").unwrap_or_default();
        fields.insert("pid".to_owned(), id);
        fields.insert("prompt".to_owned(), json!(info.state.prompt));
    }
    shorten(&mut body, FIELD_CHARS);
    body
}

/// Cuts long texts and lists among the fields of an object.
fn shorten(body: &mut Value, chars: usize) {
    for field in body
        .as_object_mut()
        .into_iter()
        .flat_map(|it| it.values_mut())
    {
        let text = match &*field {
            Value::String(text) => text.clone(),
            Value::Array(_) => field.to_string(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => continue,
        };
        if let Some((end, _)) = text.char_indices().nth(chars) {
            let cut = format!("{}… ({} characters)", &text[..end], text.chars().count());
            *field = if field.is_array() {
                json!([cut])
            } else {
                cut.into()
            };
        }
    }
}
