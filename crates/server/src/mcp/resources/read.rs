//! `resources/read`.

use ostler_engine::{Info, ListFilter};
use ostler_model::EventRecord;
use ostler_terminal::View;
use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, MetaObject, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ResourceContents,
};
use serde_json::{Value, json};

use super::list::{JSON, TEXT, summary};
use super::log;
use super::uri::{BadUri, Target, detail_uri};
use crate::error::Failure;
use crate::mcp::context::Client;
use crate::mcp::convert::RESULT_KEY;
use crate::mcp::desk::Desk;
use crate::mcp::screen::{self, draw};
use crate::render::REPLY_CHARS;
use crate::window::{Position, Window, json_chars};
use crate::wire::InfoBody;
use crate::wire::info::millis_as_seconds;

/// How long what is known of an ended execution may be reused, in milliseconds.
const ENDED_TTL_MS: u64 = 60 * 60 * 1_000;
/// How much of a list one resource holds: all but what stands around the entries.
const WINDOW: Window = Window {
    entries: usize::MAX,
    chars: REPLY_CHARS - 200,
};
/// Kept free for what stands around a screen.
const SCREEN_FRAME_CHARS: usize = 600;
/// The most characters of one field of a detail that had to be cut.
const FIELD_CHARS: usize = 2_000;
/// Executions that are looked at for the list: more than fit.
const LISTED: usize = 500;

/// What was read, before it is spelled for the protocol.
struct Content {
    mime: &'static str,
    text: String,
    fields: Option<Value>,
    /// Whether it will read the same from now on.
    settled: bool,
}

/// `resources/read`. Unknown and foreign are told alike.
pub(in crate::mcp) async fn read(
    desk: &Desk,
    client: &Client,
    request: ReadResourceRequestParams,
) -> Result<ReadResourceResponse, ErrorData> {
    let uri = request.uri;
    let target = Target::parse(&uri)?;
    let content = content(desk, client, target).await;
    let content = content.map_err(|failure| BadUri::of(&uri, failure))?;
    let mut contents = ResourceContents::text(content.text, uri).with_mime_type(content.mime);
    if let Some(fields) = content.fields {
        let meta = crate::error::object(json!({RESULT_KEY: fields}));
        contents = contents.with_meta(MetaObject(meta));
    }
    let ttl_ms = if content.settled { ENDED_TTL_MS } else { 0 };
    let result = ReadResourceResult::new(vec![contents])
        .with_ttl_ms(ttl_ms)
        .with_cache_scope(CacheScope::Private);
    Ok(result.into())
}

async fn content(desk: &Desk, client: &Client, target: Target) -> Result<Content, Failure> {
    let (engine, caller) = (desk.engine(), &client.caller);
    match target {
        Target::List => {
            let found = engine.page(caller, None, LISTED);
            let total = if found.len() < LISTED {
                found.len()
            } else {
                engine.list(caller, &ListFilter::default()).len()
            };
            let rows = found.iter().map(listed);
            Ok(Content::json(bounded("processes", rows, total), false))
        }
        Target::News => {
            desk.news().enter(caller).await;
            let items = desk.news().read(caller);
            let rows = items.iter().map(|item| {
                let mut row = json!({"at": item.at, "pid": item.id.short(),
                                     "failed": item.failed, "text": item.text});
                if let Some(data) = &item.data {
                    row["service"] = data.clone();
                }
                row
            });
            let total = items.len();
            Ok(Content::json(bounded("news", rows, total), false))
        }
        Target::Detail(id) => {
            let info = engine.info(caller, &id)?;
            desk.news().told(caller, &info);
            Ok(Content::json(detail(&info), info.state.is_finished()))
        }
        Target::Log(id, query) => {
            let info = engine.info(caller, &id)?;
            let journal = engine.journal(caller, &id)?;
            let log = log::read(&journal, &info, query).await?;
            desk.news().told(caller, &info);
            Ok(Content {
                mime: TEXT,
                text: log.text,
                fields: Some(log.fields),
                settled: info.state.is_finished(),
            })
        }
        Target::Screen(id) => {
            let view = engine.screen(caller, &id).await?;
            let info = engine.info(caller, &id)?;
            desk.news().told(caller, &info);
            Ok(drawn(&info, &view))
        }
        Target::Events(id) => {
            engine.settled(caller, &id).await?;
            let info = engine.info(caller, &id)?;
            let events = engine.events(caller, &id)?;
            let settled = info.state.is_finished();
            Ok(Content::json(happened(&events), settled))
        }
    }
}

impl Content {
    fn json(value: Value, settled: bool) -> Self {
        Self {
            mime: JSON,
            text: value.to_string(),
            fields: None,
            settled,
        }
    }
}

/// A screen as text, what is known of it in its first line.
fn drawn(info: &Info, view: &View) -> Content {
    let drawn = draw(view, REPLY_CHARS - SCREEN_FRAME_CHARS);
    let mut text = format!("[{} | {}]\n", info.status().session, screen::facts(view));
    text.push_str(&drawn.text());
    if let Some(cut) = &drawn.cut {
        text.push_str(&format!("\n[note: {cut}]"));
    }
    Content {
        mime: TEXT,
        text,
        fields: Some(screen::fields(view, &drawn)),
        settled: info.state.is_finished(),
    }
}

/// One execution in the list.
fn listed(info: &Info) -> Value {
    let ending = info.state.ending.as_ref();
    let mut row = json!({
        "uri": detail_uri(info),
        "pid": info.id.short(),
        "status": info.status().process,
        "what": summary(info),
        "start_time": info.state.started_at.or(info.state.created_at),
        "duration": millis_as_seconds(info.duration()),
        "exit_code": ending.and_then(|ending| ending.code),
    });
    if let Some(plan) = info.spec.lifetime.plan() {
        let (status, url) = (info.status().service, &info.state.url);
        row["service"] = json!({"name": plan.name, "status": status, "url": url});
    }
    row
}

/// As many rows as fit, and how many were left out.
fn bounded(name: &str, rows: impl Iterator<Item = Value>, total: usize) -> Value {
    let rows = rows.enumerate();
    let rows = rows.map(|(place, row)| (Position::by(place), row));
    let page = WINDOW.fill(rows, total, json_chars);
    json!({name: page.entries, "omitted": page.left})
}

/// The newest events that fit, oldest first.
fn happened(events: &[EventRecord]) -> Value {
    let newest = events.iter().rev().map(|event| {
        let mut event = json!(event);
        shorten(&mut event, FIELD_CHARS);
        event
    });
    let mut body = bounded("events", newest, events.len());
    if let Some(kept) = body["events"].as_array_mut() {
        kept.reverse();
    }
    body
}

/// Everything known of one execution, and the prompt that waits for an answer; what a caller made huge is cut.
fn detail(info: &Info) -> Value {
    let mut body = json!(InfoBody::from(info));
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
