//! The library's server trait, answered from our tools.

use std::sync::LazyLock;

use ostler_engine::{Engine, ListFilter};
use ostler_model::Caller;
use ostler_model::status::ProcessStatus;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest, CustomResult,
    Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    Tool as WireTool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio_util::task::TaskTracker;

use super::context::{Call, FrontContext};
use super::tools::{TOOLS, Tool};
use super::{convert, tools};
use crate::error::Failure;
use ostler_model::ErrorCode;

/// The most characters of a working directory that the instructions repeat.
const DIRECTORY_CHARS: usize = 300;

const GUIDE: &str = "\
command_execute runs one program (argv, no shell) and answers when it has ended; after 45 s it \
answers with its pid and the command goes on. command_bg_start answers at once. Read output \
with command_ps_logs, wait there with follow_seconds, end with command_ps_stop. A pid is a \
string id, not an OS pid. An exit code other than 0 is a normal answer, not an error. A reply \
holds at most 20,000 characters; what is left out is counted: read on with the since=\"…\" it \
names, or narrow with tail or grep.";

static LISTED: LazyLock<Vec<WireTool>> = LazyLock::new(|| {
    let definitions = TOOLS.iter().map(|tool| tool.definition());
    definitions.map(convert::tool).collect()
});

/// One client's server.
#[derive(Debug, Clone)]
pub(super) struct Handler {
    pub(super) engine: Engine,
    pub(super) caller: Caller,
    pub(super) front: FrontContext,
    /// Calls under way, waited for at the end.
    pub(super) calls: TaskTracker,
}

impl Handler {
    /// D7's line, and how the tools go together.
    fn instructions(&self) -> String {
        let running = self.engine.list(
            &self.caller,
            &ListFilter {
                status: Some(ProcessStatus::Running),
                ..ListFilter::default()
            },
        );
        let directory = self.front.cwd.to_string_lossy();
        let directory: String = directory.chars().take(DIRECTORY_CHARS).collect();
        format!(
            "workspace: Active, {} tools, dir: {directory}, {} running processes\n{GUIDE}",
            TOOLS.len(),
            running.len()
        )
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("ostler", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(self.instructions());
        info
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(LISTED.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = Tool::named(&request.name) else {
            return Err(unknown_tool(&request.name));
        };
        let _under_way = self.calls.token();
        let call = Call {
            engine: &self.engine,
            caller: &self.caller,
            front: &self.front,
        };
        let given = request.arguments.unwrap_or_default();
        tokio::select! {
            biased;
            () = context.ct.cancelled() => Ok(cancelled().into()),
            reply = tools::call(tool, call, given) => Ok(convert::result(reply).into()),
        }
    }

    /// A `tools/call` too malformed for the library to recognise arrives here.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == "tools/call" {
            let message = "params must be an object with 'name', a string, and 'arguments', \
                           an object";
            return Err(ErrorData::invalid_params(message, None));
        }
        let code = rmcp::model::ErrorCode::METHOD_NOT_FOUND;
        Err(ErrorData::new(code, request.method, None))
    }
}

fn unknown_tool(name: &str) -> ErrorData {
    let known: Vec<&str> = TOOLS.iter().map(|tool| tool.definition().name).collect();
    let known = known.join(", ");
    ErrorData::invalid_params(format!("unknown tool '{name}'; allowed: {known}"), None)
}

/// What nobody will read: the library drops answers to cancelled requests.
fn cancelled() -> CallToolResult {
    convert::result(Failure::new(ErrorCode::ProcessTimeout, "the request was cancelled").into())
}
