//! The table of routes.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::routing::{delete, get, post};

use super::extract::REQUEST_BODY_BYTES;
use super::state::RestState;
use super::{
    audit, contexts, docs_page, doctor, environment, events, executions, export, health, history,
    interactions, metrics, openapi, output, output_lines, policy, processes, project_execute, raw,
    report, response, services, shell, small_body, task_stream, tasks, templates, terminal, tokens,
    usage, web, workspace, ws,
};

/// The routes of `/api` and `/api/v1`. Requests need a [`Caller`](ostler_model::Caller) among their
/// extensions, added by the listener or by authentication.
pub fn router(state: RestState) -> Router {
    Router::new()
        .merge(process_routes())
        .merge(metrics_routes())
        .merge(document_routes())
        .nest(
            "/api/v1",
            v1_routes()
                .merge(web_routes())
                .merge(task_routes())
                .merge(context_routes())
                .merge(terminal_routes())
                .merge(workspace_routes())
                .merge(service_routes()),
        )
        .fallback(response::no_route)
        .method_not_allowed_fallback(response::no_method)
        .layer(middleware::from_fn(small_body::read_small_body))
        .layer(DefaultBodyLimit::max(REQUEST_BODY_BYTES))
        .with_state(state)
}

fn metrics_routes() -> Router<RestState> {
    Router::new().route("/metrics", get(metrics::metrics))
}

fn document_routes() -> Router<RestState> {
    Router::new()
        .route("/api/openapi.json", get(openapi::document))
        .route("/api/docs", get(docs_page::page))
}

fn process_routes() -> Router<RestState> {
    Router::new()
        .route("/api/processes", get(processes::list))
        .route("/api/process/clean_all", post(processes::clean_all))
        .route(
            "/api/process/clean_selected",
            post(processes::clean_selected),
        )
        .route("/api/process/{id}", get(processes::show))
        .route(
            "/api/process/{id}/output",
            get(processes::output).delete(output::clear),
        )
        .route("/api/process/{id}/stop", post(processes::stop))
        .route("/api/process/{id}/clean", post(processes::clean))
}

fn v1_routes() -> Router<RestState> {
    Router::new()
        .route("/health", get(health::health))
        .route("/version", get(health::version))
        .route("/shutdown", post(health::shutdown))
        .route("/doctor", get(doctor::doctor))
        .route("/audit", get(audit::entries))
        .route("/audit/verify", get(audit::verify))
        .route(
            "/interactions",
            get(interactions::list).post(interactions::open),
        )
        .route("/interactions/events", get(interactions::events))
        .route("/interactions/{id}", get(interactions::show))
        .route("/interactions/{id}/answer", post(interactions::answer))
        .route("/interactions/{id}/cancel", post(interactions::cancel))
        .route("/executions", get(executions::list).post(executions::start))
        .route(
            "/executions/{id}",
            get(executions::show).delete(executions::remove),
        )
        .route("/resources", get(usage::list))
        .route("/policy", get(policy::rules))
        .route("/policy/check", post(policy::check))
        .route("/tokens", get(tokens::list).post(tokens::create))
        .route("/tokens/{name}", delete(tokens::revoke))
        .route("/events", get(events::events))
        .route("/history", get(history::list))
        .route("/history/{id}", get(history::show))
        .route("/history/rebuild", post(history::rebuild))
        .route("/projects/{id}/executions", get(history::project))
        .route("/starts/{id}", get(executions::queued))
        .route("/executions/{id}/wait", post(executions::wait))
        .route("/executions/{id}/stop", post(executions::stop))
        .route("/executions/{id}/again", post(executions::rerun))
        .route("/executions/{id}/pause", post(executions::pause))
        .route("/executions/{id}/resume", post(executions::resume))
        .route(
            "/executions/{id}/environment",
            get(environment::environment),
        )
        .route("/executions/{id}/network", get(usage::network))
        .route("/executions/{id}/resources", get(usage::resources))
        .route("/executions/{id}/resources/history", get(usage::history))
        .route("/executions/{id}/signal", post(executions::signal))
        .route("/executions/{id}/input", post(executions::input))
        .route("/executions/{id}/output", get(output::lines))
        .route("/executions/{id}/output", delete(output::clear))
        .merge(output_line_routes())
        .route("/executions/{id}/raw", get(raw::raw))
        .route("/executions/{id}/export", get(export::export))
        .route("/executions/{id}/report", get(report::report))
}

fn web_routes() -> Router<RestState> {
    Router::new()
        .route(
            "/web/session",
            get(web::session).post(web::sign_in).delete(web::sign_out),
        )
        .route("/web/codes", post(web::open_link))
}

fn output_line_routes() -> Router<RestState> {
    Router::new()
        .route("/executions/{id}/output/lines", get(output_lines::lines))
        .route("/executions/{id}/output/find", get(output_lines::find))
        .route(
            "/executions/{id}/output/failures",
            get(output_lines::failures),
        )
        .route("/executions/{id}/output/shape", get(output_lines::shape))
}

fn task_routes() -> Router<RestState> {
    Router::new()
        .route("/projects/{id}/execute", post(project_execute::execute))
        .route("/command-templates", get(templates::list))
        .route("/command-templates/{template}", get(templates::show))
        .route("/tasks/{id}", get(executions::show))
        .route("/tasks/{id}/events", get(task_stream::events))
        .route("/tasks/{id}/input", post(tasks::input))
        .route("/tasks/{id}/cancel", post(tasks::cancel))
        .route("/tasks/{id}/pause", post(executions::pause))
        .route("/tasks/{id}/resume", post(executions::resume))
        .route("/tasks/{id}/resources", get(usage::resources))
        .route("/tasks/{id}/resources/history", get(usage::history))
}

fn context_routes() -> Router<RestState> {
    Router::new()
        .route("/contexts", get(contexts::list).post(contexts::open))
        .route(
            "/contexts/{id}",
            get(contexts::show).delete(contexts::remove),
        )
}

fn workspace_routes() -> Router<RestState> {
    Router::new()
        .route("/executions/{id}/workspace", get(workspace::changes))
        .route("/executions/{id}/workspace/diff", get(workspace::diff))
        .route("/executions/{id}/workspace/commit", post(workspace::commit))
        .route(
            "/executions/{id}/workspace/discard",
            post(workspace::discard),
        )
}

fn service_routes() -> Router<RestState> {
    let undocumented = services::action_name_routes();
    Router::new()
        .route("/detect", post(services::detect))
        .route("/services", get(services::list).post(services::start))
        .route("/services/ensure", post(services::ensure))
        .route("/services/up", post(services::up))
        .merge(undocumented)
        .route(
            "/services/{name}",
            get(services::show)
                .put(services::define)
                .delete(services::forget),
        )
        .route("/services/{name}/why", get(services::why))
        .route("/services/{name}/stop", post(services::stop))
        .route("/services/{name}/dismiss", post(services::dismiss))
        .route("/services/{name}/restart", post(services::restart))
}

fn terminal_routes() -> Router<RestState> {
    Router::new()
        .route("/executions/{id}/screen", get(terminal::screen))
        .route("/executions/{id}/terminal", get(ws::attach))
        .route("/executions/{id}/terminal/output", get(terminal::output))
        .route("/executions/{id}/keys", post(terminal::keys))
        .route("/executions/{id}/resize", post(terminal::resize))
        .route("/executions/{id}/shell/run", post(shell::run))
        .route("/shells", post(shell::start))
}
