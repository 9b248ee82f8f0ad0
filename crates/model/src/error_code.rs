//! Error codes: one closed list, and the table that maps each code to every interface.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A request that the engine could not carry out. A command that fails is not among these: that is
/// a successful response with a [`Termination`](crate::Termination).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "the table below says what each is called everywhere"
)]
pub enum ErrorCode {
    Initialization,
    Storage,
    OutputRetrieval,
    OutputClear,
    ProcessNotFound,
    SessionNotFound,
    CommandExecution,
    CommandTimeout,
    ProcessTimeout,
    ProcessControl,
    ProcessInfoRetrieval,
    ProcessListRetrieval,
    ProcessClean,
    Environment,
    WebInterface,
    Security,
    Permission,
    Value,
    QuotaExceeded,
    Interaction,
    Template,
    Service,
    Internal,
}

/// How every interface reports one error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCodeInfo {
    /// The code this row is for.
    pub code: ErrorCode,
    /// The stable code, for example `process_not_found`.
    pub name: &'static str,
    /// The class name reported beside the code, for example `ProcessNotFoundError`.
    pub class: &'static str,
    /// The JSON-RPC number shown in `_meta` of a tool error.
    pub rpc: i32,
    /// The HTTP status of the problem document (RFC 9457).
    pub http: u16,
    /// The exit code of the command line interface.
    pub exit: u8,
    /// Whether the same request may succeed later.
    pub retryable: bool,
}

const fn row(
    code: ErrorCode,
    name: &'static str,
    class: &'static str,
    rpc: i32,
    http: u16,
    exit: u8,
    retryable: bool,
) -> ErrorCodeInfo {
    ErrorCodeInfo {
        code,
        name,
        class,
        rpc,
        http,
        exit,
        retryable,
    }
}

const INVALID_PARAMS: i32 = -32602;
const INTERNAL: i32 = -32603;

/// The error table: code, name, class, JSON-RPC, HTTP, exit, retryable.
///
/// JSON-RPC numbers: -32602 for a parameter that is missing or wrong, -32603 for everything else,
/// `Process not found or access denied` included. Exit codes follow sysexits(3) where one fits:
/// 64 usage, 69 unavailable, 70 software, 74 I/O, 75 try again, 77 permission, 78 configuration.
pub const ERROR_CODES: [ErrorCodeInfo; 23] = [
    row(
        ErrorCode::Initialization,
        "initialization_error",
        "InitializationError",
        INTERNAL,
        503,
        69,
        true,
    ),
    row(
        ErrorCode::Storage,
        "storage_error",
        "StorageError",
        INTERNAL,
        507,
        74,
        true,
    ),
    row(
        ErrorCode::OutputRetrieval,
        "output_retrieval_error",
        "OutputRetrievalError",
        INTERNAL,
        500,
        74,
        true,
    ),
    row(
        ErrorCode::OutputClear,
        "output_clear_error",
        "OutputClearError",
        INTERNAL,
        500,
        74,
        true,
    ),
    row(
        ErrorCode::ProcessNotFound,
        "process_not_found",
        "ProcessNotFoundError",
        INTERNAL,
        404,
        66,
        false,
    ),
    row(
        ErrorCode::SessionNotFound,
        "session_not_found",
        "SessionNotFoundError",
        INVALID_PARAMS,
        404,
        66,
        false,
    ),
    row(
        ErrorCode::CommandExecution,
        "command_execution_error",
        "CommandExecutionError",
        INTERNAL,
        422,
        71,
        false,
    ),
    row(
        ErrorCode::CommandTimeout,
        "command_timeout",
        "CommandTimeoutError",
        INTERNAL,
        504,
        124,
        false,
    ),
    row(
        ErrorCode::ProcessTimeout,
        "process_timeout",
        "ProcessTimeoutError",
        INTERNAL,
        504,
        75,
        true,
    ),
    row(
        ErrorCode::ProcessControl,
        "process_control_error",
        "ProcessControlError",
        INTERNAL,
        409,
        71,
        true,
    ),
    row(
        ErrorCode::ProcessInfoRetrieval,
        "process_info_retrieval_error",
        "ProcessInfoRetrievalError",
        INTERNAL,
        500,
        74,
        true,
    ),
    row(
        ErrorCode::ProcessListRetrieval,
        "process_list_retrieval_error",
        "ProcessListRetrievalError",
        INTERNAL,
        500,
        74,
        true,
    ),
    row(
        ErrorCode::ProcessClean,
        "process_clean_error",
        "ProcessCleanError",
        INTERNAL,
        409,
        71,
        false,
    ),
    row(
        ErrorCode::Environment,
        "environment_error",
        "EnvironmentError",
        INTERNAL,
        500,
        78,
        false,
    ),
    row(
        ErrorCode::WebInterface,
        "web_interface_error",
        "WebInterfaceError",
        INTERNAL,
        500,
        69,
        true,
    ),
    row(
        ErrorCode::Security,
        "security_error",
        "SecurityError",
        INVALID_PARAMS,
        403,
        77,
        false,
    ),
    row(
        ErrorCode::Permission,
        "permission_error",
        "PermissionError",
        INVALID_PARAMS,
        403,
        77,
        false,
    ),
    row(
        ErrorCode::Value,
        "value_error",
        "ValueError",
        INVALID_PARAMS,
        422,
        64,
        false,
    ),
    row(
        ErrorCode::QuotaExceeded,
        "quota_exceeded",
        "QuotaExceeded",
        INVALID_PARAMS,
        429,
        75,
        true,
    ),
    row(
        ErrorCode::Interaction,
        "interaction_error",
        "InteractionError",
        INTERNAL,
        409,
        71,
        false,
    ),
    row(
        ErrorCode::Template,
        "template_error",
        "TemplateError",
        INVALID_PARAMS,
        422,
        64,
        false,
    ),
    row(
        ErrorCode::Service,
        "service_error",
        "ServiceError",
        INTERNAL,
        409,
        71,
        false,
    ),
    row(
        ErrorCode::Internal,
        "internal_error",
        "InternalError",
        INTERNAL,
        500,
        70,
        false,
    ),
];

impl ErrorCode {
    /// The table row of this code.
    #[must_use]
    pub const fn info(self) -> &'static ErrorCodeInfo {
        &ERROR_CODES[self as usize]
    }

    /// The stable code, for example `process_not_found`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.info().name
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for a name that the table does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no error code")]
pub struct UnknownErrorCode(String);

impl From<ErrorCode> for &'static str {
    fn from(code: ErrorCode) -> Self {
        code.name()
    }
}

impl TryFrom<String> for ErrorCode {
    type Error = UnknownErrorCode;

    fn try_from(name: String) -> Result<Self, UnknownErrorCode> {
        let row = ERROR_CODES.iter().find(|row| row.name == name);
        row.map(|row| row.code).ok_or(UnknownErrorCode(name))
    }
}
