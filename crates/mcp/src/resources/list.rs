//! Discovery of resources: lists, templates, completion.

use ostler_engine::{ExecutionInfo, ListFilter};
use ostler_model::ExecutionId;
use ostler_render::{clean, truncated};
use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, CompleteRequestParams, CompleteResult, CompletionInfo, ListResourceTemplatesResult,
    ListResourcesResult, PaginatedRequestParams, Reference, Resource, ResourceTemplate,
};

use super::log_query::STREAMS;
use super::uri::{
    DETAIL_TEMPLATE, EVENTS_TEMPLATE, JSON, LOG_TEMPLATE, NEWS, SCHEME, SCREEN_TEMPLATE, TEXT,
    detail_uri, log_uri, screen_uri,
};
use crate::client::ConnectedClient;
use crate::mcp_app;
use crate::state::McpState;

/// Executions on one page of `resources/list`; each is two resources, or three.
const PAGE_EXECUTIONS: usize = 25;
/// The most characters of a command or description in a list.
pub(super) const SUMMARY_CHARS: usize = 120;

/// `resources/list`, newest first; before them what is always there, with the MCP App for a client
/// that is offered it. The cursor is the last execution of the page before.
pub(crate) fn list(
    mcp_state: &McpState,
    client: &ConnectedClient,
    page: Option<PaginatedRequestParams>,
    offers_app: bool,
) -> Result<ListResourcesResult, ErrorData> {
    let before = match page.and_then(|page| page.cursor) {
        Some(cursor) => Some(parse_position(&cursor)?),
        None => None,
    };
    let engine = mcp_state.engine();
    let mut executions = engine.list_page(&client.caller, before, PAGE_EXECUTIONS + 1);
    let more = executions.len() > PAGE_EXECUTIONS;
    executions.truncate(PAGE_EXECUTIONS);
    let mut resources = Vec::with_capacity(2 * executions.len() + 2);
    if before.is_none() {
        resources.extend(fixed_resources());
        resources.extend(offers_app.then(mcp_app::resource));
    }
    resources.extend(executions.iter().flat_map(execution_resources));
    let mut result = ListResourcesResult::with_all_items(resources)
        .with_ttl_ms(0)
        .with_cache_scope(CacheScope::Private);
    let last = executions.last().filter(|_| more);
    result.next_cursor = last.map(|info| info.id.to_string());
    Ok(result)
}

fn parse_position(cursor: &str) -> Result<ExecutionId, ErrorData> {
    cursor.parse().map_err(|_| {
        let message = "cursor is none that an earlier resources/list answered";
        ErrorData::invalid_params(message, None)
    })
}

/// The resources that always exist.
fn fixed_resources() -> [Resource; 2] {
    let executions = Resource::new(SCHEME, "processes")
        .with_title("Processes")
        .with_description("Every process of this session, newest first")
        .with_mime_type(JSON);
    let news = Resource::new(NEWS, "news")
        .with_title("News")
        .with_description("What ended, crashed or printed what was watched for")
        .with_mime_type(JSON);
    [executions, news]
}

/// One execution, its output, and the screen of one with a terminal.
fn execution_resources(info: &ExecutionInfo) -> Vec<Resource> {
    let id = info.id.short();
    let status = info.status().process.as_str();
    let description = format!("{status}: {}", summary(info));
    let detail = Resource::new(detail_uri(info), id.clone())
        .with_title(format!("Process {id}"))
        .with_description(description.clone())
        .with_mime_type(JSON);
    let log = Resource::new(log_uri(info), format!("{id}/log"))
        .with_title(format!("Output of {id}"))
        .with_description(description.clone())
        .with_mime_type(TEXT)
        .with_size(info.output_end.saturating_sub(info.state.trimmed_bytes));
    let screen = info.size().map(|_| {
        Resource::new(screen_uri(info), format!("{id}/screen"))
            .with_title(format!("Screen of {id}"))
            .with_description(description)
            .with_mime_type(TEXT)
    });
    [detail, log].into_iter().chain(screen).collect()
}

/// A description for people: the execution's own, else its command.
pub(super) fn summary(info: &ExecutionInfo) -> String {
    let text = if info.spec.description.is_empty() {
        info.spec.command.display()
    } else {
        info.spec.description.clone()
    };
    let text = clean(&text).replace(['\n', '\r', '\t'], " ");
    truncated(&text, SUMMARY_CHARS)
}

/// The response to `resources/templates/list`.
pub(crate) fn templates() -> ListResourceTemplatesResult {
    let detail = ResourceTemplate::new(DETAIL_TEMPLATE, "process")
        .with_title("Process")
        .with_description("Everything known of one process")
        .with_mime_type(JSON);
    let log = ResourceTemplate::new(LOG_TEMPLATE, "log")
        .with_title("Output")
        .with_description(
            "What it printed: the beginning and the end, or the last lines (tail), or at most \
             limit lines from a cursor on; stream is stdout, stderr or pty",
        )
        .with_mime_type(TEXT);
    let events = ResourceTemplate::new(EVENTS_TEMPLATE, "events")
        .with_title("Events")
        .with_description("What happened to it, in order")
        .with_mime_type(JSON);
    let screen = ResourceTemplate::new(SCREEN_TEMPLATE, "screen")
        .with_title("Screen")
        .with_description("What is on the screen of its terminal")
        .with_mime_type(TEXT);
    ListResourceTemplatesResult::with_all_items(vec![detail, log, events, screen])
}

/// `completion/complete` for the variables of the templates; empty for anything else.
pub(crate) fn complete(
    mcp_state: &McpState,
    client: &ConnectedClient,
    request: &CompleteRequestParams,
) -> CompleteResult {
    let Reference::Resource(reference) = &request.r#ref else {
        return CompleteResult::default();
    };
    let templates = [
        DETAIL_TEMPLATE,
        LOG_TEMPLATE,
        EVENTS_TEMPLATE,
        SCREEN_TEMPLATE,
    ];
    if !templates.contains(&reference.uri.as_str()) {
        return CompleteResult::default();
    }
    let prefix = request.argument.value.as_str();
    let candidates: Vec<String> = match request.argument.name.as_str() {
        "id" => {
            let prefix = prefix.to_ascii_lowercase();
            let executions = mcp_state
                .engine()
                .list(&client.caller, &ListFilter::default());
            let screens = reference.uri == SCREEN_TEMPLATE;
            let executions = executions
                .iter()
                .filter(|info| !screens || info.size().is_some());
            let ids = executions.map(|info| info.id.short());
            ids.filter(|id| id.starts_with(&prefix)).collect()
        }
        "stream" if reference.uri == LOG_TEMPLATE => {
            let words = STREAMS.iter().map(|word| (*word).to_owned());
            words.filter(|word| word.starts_with(prefix)).collect()
        }
        _ => Vec::new(),
    };
    CompleteResult::new(completion_page(candidates))
}

/// The first candidates, and how many there are.
fn completion_page(mut candidates: Vec<String>) -> CompletionInfo {
    let total = candidates.len();
    candidates.truncate(CompletionInfo::MAX_VALUES);
    let mut completion = CompletionInfo::default();
    completion.has_more = Some(candidates.len() < total);
    completion.total = u32::try_from(total).ok();
    completion.values = candidates;
    completion
}
