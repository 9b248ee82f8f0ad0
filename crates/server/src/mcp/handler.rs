//! The library's server trait, answered from our rooms: every method finds out who asks and
//! hands over.
#![expect(
    deprecated,
    reason = "log messages are how clients of older revisions are told what happened"
)]

use std::sync::{Arc, OnceLock};

use http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam,
    CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, DiscoverResult,
    GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams, InitializeResult,
    JsonObject, ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, SetLevelRequestMethod,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, TASKS_EXTENSION_ID,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::calls::{self, Asked};
use super::context::Client;
use super::desk::Desk;
use super::leases::{Leases, Line};
use super::stdio::message::wrong_params;
use super::subscriptions::Connection;
use super::{convert, instructions, resources, subscriptions, tasks};

/// Answers one client, or one HTTP endpoint.
#[derive(Debug, Clone)]
pub(super) struct Handler {
    desk: Desk,
    source: Source,
    /// Calls under way, waited for at the end.
    calls: TaskTracker,
    /// Since its handshake, where there was one; each connection has a handler of its own.
    connection: OnceLock<Arc<Connection>>,
    /// The client has closed its side; only streams know.
    left: CancellationToken,
}

/// Where the client of a request is known from.
#[derive(Debug, Clone)]
enum Source {
    /// One stream, one client; what its answers name is given out as they are sent.
    Stream(Arc<Client>, Leases),
    /// Each HTTP request says who it is for, in its extensions.
    Request,
}

impl Handler {
    /// For a stream with this client at the other end.
    pub(super) fn of_stream(desk: Desk, client: Arc<Client>, line: Line) -> Self {
        let Line {
            calls,
            leases,
            left,
        } = line;
        let source = Source::Stream(client, leases);
        Self {
            desk,
            source,
            calls,
            connection: OnceLock::new(),
            left,
        }
    }

    /// For HTTP requests, each of which carries its [`Client`].
    pub(super) fn of_requests(desk: Desk, calls: TaskTracker) -> Self {
        Self {
            desk,
            source: Source::Request,
            calls,
            connection: OnceLock::new(),
            left: CancellationToken::new(),
        }
    }

    /// The connection, where the request came on one with a handshake.
    fn connection(&self) -> Result<&Connection, ErrorData> {
        self.connection.get().map(Arc::as_ref).ok_or_else(|| {
            let message = "nothing can be told on a connection without a handshake";
            ErrorData::invalid_request(message, None)
        })
    }

    /// Who asks. The first time on a connection with a handshake, it is told things from now
    /// on.
    fn client(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Client>, ErrorData> {
        let client = self.identity(context)?;
        let shaken = |info: Arc<InitializeRequestParams>| info.protocol_version.has_initialize();
        if self.connection.get().is_none() && context.peer.peer_info().is_some_and(shaken) {
            self.connection.get_or_init(|| {
                let connection = Connection::open(&self.desk, &client.caller, context.peer.clone());
                Arc::new(connection)
            });
        }
        Ok(client)
    }

    fn identity(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Client>, ErrorData> {
        match &self.source {
            Source::Stream(client, _) => Ok(Arc::clone(client)),
            Source::Request => {
                let parts = context.extensions.get::<Parts>();
                let client = parts.and_then(|parts| parts.extensions.get::<Arc<Client>>());
                client.cloned().ok_or_else(|| {
                    ErrorData::internal_error("the request came without an identity", None)
                })
            }
        }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .enable_completions()
            .enable_logging()
            .build();
        let mut capabilities = capabilities;
        if self.desk.options().task_after.is_some() {
            let extensions = capabilities.extensions.get_or_insert_default();
            extensions.insert(TASKS_EXTENSION_ID.to_owned(), JsonObject::new());
        }
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("ostler", env!("CARGO_PKG_VERSION"));
        info
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let client = self.client(&context)?;
        let mut result = self.negotiate_initialize(&request)?;
        // Tasks came with the revision that has no handshake.
        if let Some(extensions) = &mut result.capabilities.extensions {
            extensions.remove(TASKS_EXTENSION_ID);
        }
        let extensions = result.capabilities.extensions.take();
        result.capabilities.extensions = extensions.filter(|it| !it.is_empty());
        self.desk.news().enter(&client.caller).await;
        result.instructions = Some(instructions::text(&self.desk, &client));
        Ok(result)
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let client = self.client(&context)?;
        let versions = self.supported_protocol_versions().into_owned();
        let mut info = self.get_info();
        // Log messages belong to the handshake.
        info.capabilities.logging = None;
        info.instructions = Some(instructions::text(&self.desk, &client));
        Ok(DiscoverResult::from_server_info(versions, info))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let client = self.client(&context)?;
        let tools = client.front.tools.tools().map(convert::tool).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let client = self.client(&context)?;
        let _under_way = self.calls.token();
        let leases = match &self.source {
            Source::Stream(_, leases) => Some(leases),
            Source::Request => None,
        };
        let asked = Asked {
            desk: &self.desk,
            client: &client,
            leases,
            context: &context,
            errands: &self.calls,
        };
        // The library moves the futures of its methods about: what is large goes on the heap.
        Box::pin(calls::answer(asked, request)).await
    }

    /// There are no prompts, and none are declared; the library would answer an empty list.
    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let client = self.client(&context)?;
        resources::list(&self.desk, &client, request)
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let client = self.client(&context)?;
        Box::pin(resources::read(&self.desk, &client, request)).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let client = self.client(&context)?;
        Ok(resources::complete(&self.desk, &client, &request))
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        subscriptions::accepted(requested)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let client = self.client(context.request_context())?;
        Box::pin(subscriptions::listen(
            &self.desk, &client, context, &self.left,
        ))
        .await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.client(&context)?;
        self.connection()?.subscribe(&request.uri)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.client(&context)?;
        self.connection()?.unsubscribe(&request.uri);
        Ok(())
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.client(&context)?;
        let Some(connection) = self.connection.get() else {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        };
        connection.set_level(request.level);
        Ok(())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let client = self.client(&context)?;
        Box::pin(tasks::get(
            &self.desk,
            &client,
            request,
            (&context, &self.calls),
        ))
        .await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let client = self.client(&context)?;
        Box::pin(tasks::update(&self.desk, &client, request)).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let client = self.client(&context)?;
        Box::pin(tasks::cancel(&self.desk, &client, request)).await
    }

    /// A cancelled request's answer will not be read any more, even where it was just given.
    async fn on_cancelled(
        &self,
        notification: CancelledNotificationParam,
        _context: NotificationContext<RoleServer>,
    ) {
        if let (Source::Stream(_, leases), Some(request)) = (&self.source, &notification.request_id)
        {
            leases.revoke(request);
        }
    }

    /// A request of ours too malformed for the library to recognise arrives here.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if let Some(problem) = wrong_params(&request, &context.meta) {
            return Err(ErrorData::invalid_params(problem, None));
        }
        let code = rmcp::model::ErrorCode::METHOD_NOT_FOUND;
        Err(ErrorData::new(code, request.method, None))
    }
}
