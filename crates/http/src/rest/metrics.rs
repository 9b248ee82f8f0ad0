//! `GET /metrics` in Prometheus' text format, version 0.0.4.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use jiff::Timestamp;
use ostler_interface::http::HttpProblem;
use ostler_model::ErrorCode;
use ostler_sys::open_files;
use parking_lot::Mutex;

use super::caller::{RequestCaller, daemon_principal};
use super::query::QueryString;
use super::response::RestResult;
use super::state::RestState;

const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4");
/// Upper bounds of the time to a response, in seconds.
const BUCKETS: [f64; 6] = [0.001, 0.01, 0.1, 0.5, 2.5, 10.0];
/// The route of requests that match none.
const NO_ROUTE: &str = "unmatched";
/// The most routes that are counted one by one: there are fewer.
const ROUTES_MAX: usize = 1_000;

/// Counts of requests since the daemon started.
#[derive(Debug, Default)]
pub(crate) struct HttpMetrics(Mutex<BTreeMap<String, RouteCounts>>);

/// The counts of one route.
#[derive(Debug, Default)]
struct RouteCounts {
    /// By method and status.
    responses: BTreeMap<(String, u16), u64>,
    /// Responses whose time is at most that of the bucket, and no smaller one's.
    buckets: [u64; BUCKETS.len()],
    seconds: f64,
}

impl HttpMetrics {
    /// Counts a response; `took` is the time to its beginning.
    pub(super) fn count(
        &self,
        method: &Method,
        route: Option<&str>,
        status: StatusCode,
        took: Duration,
    ) {
        // Methods that nobody registered would be one name each.
        let is_standard = [
            Method::GET,
            Method::POST,
            Method::DELETE,
            Method::HEAD,
            Method::OPTIONS,
            Method::PUT,
            Method::PATCH,
        ]
        .contains(method);
        let method = if is_standard {
            method.as_str()
        } else {
            "other"
        };
        let mut routes = self.0.lock();
        let route = route.unwrap_or(NO_ROUTE);
        if !routes.contains_key(route) {
            if routes.len() >= ROUTES_MAX {
                return;
            }
            routes.insert(route.to_owned(), RouteCounts::default());
        }
        let Some(counts) = routes.get_mut(route) else {
            return;
        };
        let key = (method.to_owned(), status.as_u16());
        *counts.responses.entry(key).or_default() += 1;
        let seconds = took.as_secs_f64();
        counts.seconds += seconds;
        if let Some(bucket) = BUCKETS.iter().position(|bound| seconds <= *bound) {
            counts.buckets[bucket] += 1;
        }
    }

    fn render(&self, text: &mut MetricsText) {
        let routes = self.0.lock();
        text.family("ostler_http_responses_total", "counter", "Responses.");
        for (route, counts) in &*routes {
            for ((method, status), count) in &counts.responses {
                let status = status.to_string();
                text.sample(
                    &[("route", route), ("method", method), ("status", &status)],
                    count,
                );
            }
        }
        let help = "Time to the beginning of a response.";
        text.family("ostler_http_response_seconds", "histogram", help);
        for (route, counts) in &*routes {
            let mut sum = 0;
            for (bound, count) in BUCKETS.iter().zip(counts.buckets) {
                sum += count;
                let bound = bound.to_string();
                text.suffixed("_bucket", &[("route", route), ("le", &bound)], sum);
            }
            let all: u64 = counts.responses.values().sum();
            text.suffixed("_bucket", &[("route", route), ("le", "+Inf")], all);
            text.suffixed("_sum", &[("route", route)], counts.seconds);
            text.suffixed("_count", &[("route", route)], all);
        }
    }
}

/// A text in the format.
#[derive(Debug, Default)]
struct MetricsText {
    text: String,
    name: &'static str,
}

impl MetricsText {
    fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.name = name;
        self.write(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    fn sample(&mut self, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.suffixed("", labels, value);
    }

    fn suffixed(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let name = self.name;
        self.write(format_args!("{name}{suffix}"));
        for (index, (label, given)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            let given = given
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n");
            self.write(format_args!("{before}{label}=\"{given}\""));
        }
        let end = if labels.is_empty() { "" } else { "}" };
        self.write(format_args!("{end} {value}\n"));
    }

    fn gauge(&mut self, name: &'static str, help: &str, value: impl std::fmt::Display) {
        self.family(name, "gauge", help);
        self.sample(&[], value);
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        // A String takes everything.
        let _infallible = self.text.write_fmt(text);
    }
}

/// `GET /metrics`: metrics of the caller's executions and of the daemon's memory and descriptors, for
/// Prometheus; for the daemon's user also those of what all principals did: responses, alerts, and
/// entries of the audit log.
pub(super) async fn metrics(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    query_string: QueryString,
) -> RestResult<(HeaderMap, String)> {
    query_string.check(&[])?;
    if !caller.sees_all() {
        let message = "metrics are of all sessions and projects: a token needs the scope sessions:all, and \
                       none that names a project";
        return Err(HttpProblem::new(ErrorCode::Permission, message, None));
    }
    let mut text = MetricsText::default();
    text.family("ostler_build_info", "gauge", "The version.");
    text.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    let uptime = Timestamp::now().duration_since(state.started_at);
    text.gauge(
        "ostler_uptime_seconds",
        "Time since the daemon started.",
        uptime.as_secs_f64(),
    );
    text.gauge(
        "ostler_executions_running",
        "Running executions of the caller.",
        state.engine.running_count(&caller),
    );
    process_metrics(&mut text);
    // Of all principals.
    if caller.owner.principal == daemon_principal() {
        text.family(
            "ostler_audit_entries_total",
            "counter",
            "Entries of the audit log.",
        );
        text.sample(&[], *state.engine.ledger_end().borrow());
        if let Some(webhook) = &state.webhook {
            let help = "Alerts for the webhook, by how they ended.";
            text.family("ostler_webhook_alerts_total", "counter", help);
            for (outcome, count) in webhook.by_outcome() {
                text.sample(&[("outcome", outcome)], count);
            }
        }
        state.metrics.render(&mut text);
    }
    let kind: (HeaderName, HeaderValue) = (header::CONTENT_TYPE, CONTENT_TYPE);
    Ok((HeaderMap::from_iter([kind]), text.text))
}

/// The daemon's own memory and descriptors, under the names that Prometheus' clients use.
fn process_metrics(text: &mut MetricsText) {
    let page = rustix::param::page_size() as u64;
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let resident = statm.split_whitespace().nth(1);
    if let Some(pages) = resident.and_then(|pages| pages.parse::<u64>().ok()) {
        let help = "Resident memory of the daemon.";
        text.gauge("process_resident_memory_bytes", help, pages * page);
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        text.gauge(
            "process_open_fds",
            "Open descriptors of the daemon.",
            open.count(),
        );
    }
    text.gauge("process_max_fds", "The limit on them.", open_files::limit());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_buckets_accumulate() {
        let metrics = HttpMetrics::default();
        for (millis, status) in [(0, 200), (5, 200), (50, 404), (60_000, 200)] {
            let status = StatusCode::from_u16(status).expect("a status");
            let took = Duration::from_millis(millis);
            metrics.count(&Method::GET, Some("/a\"\\\n"), status, took);
        }
        metrics.count(
            &Method::from_bytes(b"BREW").expect("a method"),
            None,
            StatusCode::OK,
            Duration::ZERO,
        );
        let mut text = MetricsText::default();
        metrics.render(&mut text);
        let expected = [
            r#"ostler_http_responses_total{route="/a\"\\\n",method="GET",status="200"} 3"#,
            r#"ostler_http_responses_total{route="/a\"\\\n",method="GET",status="404"} 1"#,
            r#"ostler_http_responses_total{route="unmatched",method="other",status="200"} 1"#,
            r#"ostler_http_response_seconds_bucket{route="/a\"\\\n",le="0.001"} 1"#,
            r#"ostler_http_response_seconds_bucket{route="/a\"\\\n",le="0.01"} 2"#,
            r#"ostler_http_response_seconds_bucket{route="/a\"\\\n",le="10"} 3"#,
            r#"ostler_http_response_seconds_bucket{route="/a\"\\\n",le="+Inf"} 4"#,
            r#"ostler_http_response_seconds_count{route="/a\"\\\n"} 4"#,
        ];
        for line in expected {
            assert!(
                text.text.lines().any(|it| it == line),
                "{line} in {}",
                text.text
            );
        }
    }
}
