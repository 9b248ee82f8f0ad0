//! State shared by every route.

use std::sync::Arc;

use super::doctor::HostExaminer;
use super::metrics::HttpMetrics;
use super::response::RestResult;
use crate::tokens::TokenStore;
use crate::web::WebAccess;
use crate::webhook::WebhookCounts;
use ostler_api::ExecutionBody;
use ostler_engine::Engine;
use ostler_interface::convert::run_statistics_body;
use ostler_interface::history::History;
use ostler_interface::templates::TemplateFiles;
use ostler_model::Timestamp;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// State shared by every route; cheap to clone.
#[derive(Debug, Clone)]
pub struct RestState {
    pub(super) engine: Engine,
    pub(super) started_at: Timestamp,
    pub(super) shutdown: CancellationToken,
    pub(super) history: Option<History>,
    pub(super) templates: TemplateFiles,
    pub(super) tokens: Option<TokenStore>,
    pub(super) web: Option<WebAccess>,
    /// Why HTTP is not served although it is configured.
    pub(super) http_problem: Option<String>,
    pub(super) metrics: Arc<HttpMetrics>,
    pub(super) webhook: Option<Arc<WebhookCounts>>,
    pub(super) examiner: Option<Arc<dyn HostExaminer>>,
    /// Held by a verification of the audit log.
    pub(super) verification: Arc<Mutex<()>>,
}

impl RestState {
    /// Routes over `engine`. `shutdown` is cancelled by a client's shutdown request or by the
    /// embedder; waits and followers then answer at once that the daemon is shutting down, so that
    /// connections drain. Pass the same token to [`listen`](crate::listen::listen).
    #[must_use]
    pub fn new(engine: Engine, shutdown: CancellationToken) -> Self {
        Self {
            engine,
            started_at: Timestamp::now(),
            shutdown,
            history: None,
            templates: TemplateFiles::default(),
            tokens: None,
            web: None,
            http_problem: None,
            metrics: Arc::default(),
            webhook: None,
            examiner: None,
            verification: Arc::default(),
        }
    }

    /// The same with a history of executions, where one is kept.
    #[must_use]
    pub fn with_history(self, history: Option<History>) -> Self {
        Self { history, ..self }
    }

    /// The same with these definition files of command templates.
    #[must_use]
    pub fn with_templates(self, templates: TemplateFiles) -> Self {
        Self { templates, ..self }
    }

    /// The same with counts of a webhook, for the metrics.
    #[must_use]
    pub fn with_webhook(self, webhook: Option<Arc<WebhookCounts>>) -> Self {
        Self { webhook, ..self }
    }

    /// The same with somebody who examines the machine.
    #[must_use]
    pub fn with_examiner(self, examiner: Arc<dyn HostExaminer>) -> Self {
        let examiner = Some(examiner);
        Self { examiner, ..self }
    }

    /// The same with these tokens, for the routes that manage them.
    #[must_use]
    pub fn with_tokens(self, tokens: TokenStore) -> Self {
        let tokens = Some(tokens);
        Self { tokens, ..self }
    }

    /// The same with a page, for the routes that sign in; none where HTTP is not served.
    #[must_use]
    pub fn with_web(self, web: Option<WebAccess>) -> Self {
        Self { web, ..self }
    }

    /// The same with the reason why HTTP is not served although it is configured.
    #[must_use]
    pub fn with_http_problem(self, http_problem: Option<String>) -> Self {
        Self {
            http_problem,
            ..self
        }
    }

    /// Adds to those that run how their commands usually end; services end when they are told to.
    pub(super) async fn add_statistics(&self, bodies: &mut [ExecutionBody]) {
        let Some(history) = &self.history else {
            return;
        };
        let is_meant = |body: &&ExecutionBody| !body.is_finished() && body.service.is_none();
        let ids = bodies.iter().filter(is_meant).map(|body| body.uuid);
        let statistics = history.statistics_of(ids.collect()).await;
        for body in bodies {
            body.usual = statistics.get(&body.uuid).map(run_statistics_body);
        }
    }

    /// Awaits `future`, unless it would have to wait and the daemon is shutting down.
    pub(super) async fn unless_shutting_down<T>(
        &self,
        future: impl Future<Output = T>,
    ) -> RestResult<T> {
        tokio::select! {
            biased;
            output = future => Ok(output),
            () = self.shutdown.cancelled() => Err(ostler_engine::Error::Closing.into()),
        }
    }
}
