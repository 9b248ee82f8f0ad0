//! The MCP library's server trait: each method identifies the caller and delegates to the module
//! that implements it.
#![expect(
    deprecated,
    reason = "log messages are how clients of older revisions are told what happened"
)]

use std::sync::{Arc, OnceLock};

use http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam,
    ClientCapabilities, CompleteRequestParams, CompleteResult, CustomRequest, CustomResult,
    DiscoverResult, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
    Implementation, InitializeRequestParams, InitializeResult, JsonObject, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    PromptsCapability, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, SetLevelRequestMethod, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, TASKS_EXTENSION_ID, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::call_context::RequestScope;
use super::calls::{self, CallTransport, ToolCallRequest};
use super::client::ConnectedClient;
use super::json_rpc::{params_problem, refuse_cursor, unknown_method};
use super::pending_deliveries::{PendingDeliveries, StreamState};
use super::session_hooks::{MCP_SESSION_HEADER, SessionHooks, StandingRequests};
use super::state::McpState;
use super::subscriptions::SubscribedConnection;
use super::{instructions, mcp_app, prompts, resources, subscriptions, tasks, to_rmcp, tools};

/// The handler of one client stream, or of one HTTP endpoint.
#[derive(Debug, Clone)]
pub(super) struct McpHandler {
    state: McpState,
    source: ClientSource,
    /// Calls under way, awaited at shutdown.
    calls: TaskTracker,
    /// Set by the handshake, if there is one; each connection has its own handler.
    connection: OnceLock<Arc<SubscribedConnection>>,
    /// Cancelled when a subscription has to end: the client of the stream has closed its side, or over
    /// HTTP the daemon shuts down.
    input_closed: CancellationToken,
}

/// How the client of a request is identified.
#[derive(Debug, Clone)]
enum ClientSource {
    /// One client per stream; ids in its answers are published as they are sent.
    Stream {
        client: Arc<ConnectedClient>,
        pending: PendingDeliveries,
        shutdown: Option<CancellationToken>,
    },
    /// Each HTTP request carries its client as an extension.
    Request(HttpRequests),
}

/// What requests over HTTP have in common.
#[derive(Debug, Clone)]
pub(super) struct HttpRequests {
    /// Keeps the sessions of the handshake era.
    pub(super) hooks: Arc<dyn SessionHooks>,
    /// Cancelled when the daemon shuts down.
    pub(super) shutdown: CancellationToken,
}

impl McpHandler {
    /// A handler for the stream of this client.
    pub(super) fn of_stream(
        mcp_state: McpState,
        client: Arc<ConnectedClient>,
        stream: StreamState,
    ) -> Self {
        let StreamState {
            calls,
            pending,
            input_closed,
            shutdown,
        } = stream;
        let source = ClientSource::Stream {
            client,
            pending,
            shutdown,
        };
        Self {
            state: mcp_state,
            source,
            calls,
            connection: OnceLock::new(),
            input_closed,
        }
    }

    /// A handler for HTTP requests, each of which carries its [`ConnectedClient`].
    pub(super) fn of_requests(
        mcp_state: McpState,
        requests: HttpRequests,
        calls: TaskTracker,
    ) -> Self {
        let input_closed = requests.shutdown.clone();
        Self {
            state: mcp_state,
            source: ClientSource::Request(requests),
            calls,
            connection: OnceLock::new(),
            input_closed,
        }
    }

    /// Whether the client is offered the MCP App.
    fn offers_app(&self, context: &RequestContext<RoleServer>) -> bool {
        let declared = context.client_capabilities();
        mcp_app::is_offered(&self.state, declared.as_ref())
    }

    /// Declares the extension of MCP Apps to a client that declares it, too.
    fn declare_app(
        &self,
        capabilities: &mut ServerCapabilities,
        client: Option<&ClientCapabilities>,
    ) {
        if mcp_app::is_offered(&self.state, client) {
            let (extension, settings) = mcp_app::settings();
            let extensions = capabilities.extensions.get_or_insert_default();
            extensions.insert(extension, settings);
        }
    }

    /// The connection of the request, which must have had a handshake.
    fn require_connection(&self) -> Result<&SubscribedConnection, ErrorData> {
        self.connection.get().map(Arc::as_ref).ok_or_else(|| {
            let message = "nothing can be told on a connection without a handshake";
            ErrorData::invalid_request(message, None)
        })
    }

    /// The caller. On the first request of a connection with a handshake, its notifications start.
    fn client_and_connection(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<ConnectedClient>, ErrorData> {
        let client = self.client_of(context)?;
        let has_handshake =
            |info: Arc<InitializeRequestParams>| info.protocol_version.has_initialize();
        if self.connection.get().is_none() && context.peer.peer_info().is_some_and(has_handshake) {
            self.connection.get_or_init(|| {
                let connection =
                    SubscribedConnection::open(&self.state, &client.caller, context.peer.clone());
                if let Some((hooks, id)) = self.http_session(context) {
                    connection.restore(&hooks.standing_requests(id));
                }
                Arc::new(connection)
            });
        }
        Ok(client)
    }

    /// The session of the handshake era that a request over HTTP is in.
    fn http_session<'a>(
        &'a self,
        context: &'a RequestContext<RoleServer>,
    ) -> Option<(&'a dyn SessionHooks, &'a str)> {
        let ClientSource::Request(requests) = &self.source else {
            return None;
        };
        let parts = context.extensions.get::<Parts>()?;
        let id = parts.headers.get(MCP_SESSION_HEADER)?;
        Some((requests.hooks.as_ref(), id.to_str().ok()?))
    }

    /// Changes what the next daemon restores of the session that the request is in.
    fn record_standing(
        &self,
        context: &RequestContext<RoleServer>,
        change: &dyn Fn(&mut StandingRequests),
    ) {
        if let Some((hooks, id)) = self.http_session(context) {
            hooks.change_standing_requests(id, change);
        }
    }

    fn client_of(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<ConnectedClient>, ErrorData> {
        match &self.source {
            ClientSource::Stream { client, .. } => Ok(Arc::clone(client)),
            ClientSource::Request(_) => {
                let parts = context.extensions.get::<Parts>();
                let client = parts.and_then(|parts| parts.extensions.get::<Arc<ConnectedClient>>());
                client.cloned().ok_or_else(|| {
                    ErrorData::internal_error("the request came without an identity", None)
                })
            }
        }
    }
}

/// The capability of clients that are offered prompts.
fn offered_prompts(client: &ConnectedClient) -> Option<PromptsCapability> {
    prompts::are_offered(client).then(PromptsCapability::default)
}

impl ServerHandler for McpHandler {
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
        if self.state.options().task_after.is_some() {
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
        let client = self.client_and_connection(&context)?;
        let mut result = self.negotiate_initialize(&request)?;
        // Tasks require the revision without a handshake.
        if let Some(extensions) = &mut result.capabilities.extensions {
            extensions.remove(TASKS_EXTENSION_ID);
        }
        self.declare_app(&mut result.capabilities, Some(&request.capabilities));
        let extensions = result.capabilities.extensions.take();
        result.capabilities.extensions = extensions.filter(|it| !it.is_empty());
        result.capabilities.prompts = offered_prompts(&client);
        self.state
            .notifications()
            .enter_session(&client.caller)
            .await;
        result.instructions = Some(instructions::render_instructions(&self.state, &client));
        Ok(result)
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let client = self.client_and_connection(&context)?;
        let versions = self.supported_protocol_versions().into_owned();
        let mut info = self.get_info();
        // Log messages exist only with a handshake.
        info.capabilities.logging = None;
        let declared = context.client_capabilities();
        self.declare_app(&mut info.capabilities, declared.as_ref());
        info.capabilities.prompts = offered_prompts(&client);
        info.instructions = Some(instructions::render_instructions(&self.state, &client));
        Ok(DiscoverResult::from_server_info(versions, info))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        refuse_cursor(request, "tools/list")?;
        let client = self.client_and_connection(&context)?;
        let tools = tools::tools_in(client.context.tools).map(to_rmcp::to_wire_tool);
        let tools = if self.offers_app(&context) {
            tools.map(mcp_app::bound).collect()
        } else {
            tools.collect()
        };
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let client = self.client_and_connection(&context)?;
        let _token = self.calls.token();
        let transport = match &self.source {
            ClientSource::Stream {
                pending, shutdown, ..
            } => CallTransport::Stream {
                pending,
                shutdown: shutdown.as_ref(),
            },
            ClientSource::Request(requests) => CallTransport::Http {
                shutdown: &requests.shutdown,
            },
        };
        let call_request = ToolCallRequest {
            state: &self.state,
            client: &client,
            transport,
            context: &context,
            background: &self.calls,
        };
        // The library moves its futures between tasks, so large ones are boxed.
        Box::pin(calls::handle_call(call_request, request)).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        refuse_cursor(request, "prompts/list")?;
        let client = self.client_and_connection(&context)?;
        prompts::list(&self.state, &client).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let client = self.client_and_connection(&context)?;
        let result = prompts::get(&self.state, &client, request).await?;
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let client = self.client_and_connection(&context)?;
        let offers_app = self.offers_app(&context);
        resources::list(&self.state, &client, request, offers_app)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        refuse_cursor(request, "resources/templates/list")?;
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let client = self.client_and_connection(&context)?;
        Box::pin(resources::read(&self.state, &client, request)).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let client = self.client_and_connection(&context)?;
        Ok(resources::complete(&self.state, &client, &request))
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        subscriptions::accepted_filter(requested)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let client = self.client_and_connection(context.request_context())?;
        Box::pin(subscriptions::listen(
            &self.state,
            &client,
            context,
            &self.input_closed,
        ))
        .await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.client_and_connection(&context)?;
        self.require_connection()?.subscribe(&request.uri)?;
        self.record_standing(&context, &|standing| standing.subscribe(&request.uri));
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.client_and_connection(&context)?;
        self.require_connection()?.unsubscribe(&request.uri);
        self.record_standing(&context, &|standing| standing.unsubscribe(&request.uri));
        Ok(())
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.client_and_connection(&context)?;
        let Some(connection) = self.connection.get() else {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        };
        connection.set_level(request.level);
        self.record_standing(&context, &|standing| standing.level = Some(request.level));
        Ok(())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let client = self.client_and_connection(&context)?;
        Box::pin(tasks::get_task(
            &self.state,
            &client,
            request,
            RequestScope {
                context: &context,
                background: &self.calls,
            },
        ))
        .await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let client = self.client_and_connection(&context)?;
        Box::pin(tasks::update_task(&self.state, &client, request)).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let client = self.client_and_connection(&context)?;
        Box::pin(tasks::cancel_task(&self.state, &client, request)).await
    }

    /// The answer to a cancelled request is not read any more, even if it was just published.
    async fn on_cancelled(
        &self,
        notification: CancelledNotificationParam,
        _context: NotificationContext<RoleServer>,
    ) {
        if let (ClientSource::Stream { pending, .. }, Some(request)) =
            (&self.source, &notification.request_id)
        {
            pending.revoke(request);
        }
    }

    /// A request of this server's own that is too malformed for the library to recognise arrives
    /// here.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if let Some(problem) = params_problem(&request, &context.meta) {
            return Err(ErrorData::invalid_params(problem, None));
        }
        Err(unknown_method(&request.method))
    }
}
