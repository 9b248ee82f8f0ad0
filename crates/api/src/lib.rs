//! The bodies of the REST API and of its WebSocket, as JSON. Both sides use these types: requests
//! refuse unknown fields, responses may gain fields.
//!
//! * [`start`], [`task`], [`shell`], [`service_request`], [`sandbox`]: requests to run something.
//! * [`info`], [`environment`], [`service`], [`service_state`], [`process`], [`resources`], [`workspace`]: the data of
//!   executions.
//! * [`page`], [`numbered`], [`terminal`], [`websocket`], [`network`]: output, screens, keys, egress decisions.
//! * [`task_event`], [`history`], [`audit`]: what happens, executions as they are remembered, the audit log.
//! * [`template`]: command templates.
//! * [`context`]: directories with options that executions of a project share.
//! * [`doctor`]: what the machine can enforce.
//! * [`policy`]: rules about commands, and their verdicts.
//! * [`report`]: test results and diagnostics in output.
//! * [`token`], [`web`]: tokens for access over HTTP, signing in at the page.
//! * [`wait`], [`interaction`]: waits, signals, input, questions to people.
//! * [`problem`]: errors (RFC 9457).
//!
//! The types hold what they send and convert from and to the model's types only. This crate must
//! never know the engine, journals, MCP or an HTTP library: the server converts.
#![forbid(unsafe_code)]

pub mod audit;
pub mod context;
pub mod doctor;
pub mod environment;
mod event;
pub mod history;
pub mod info;
pub mod interaction;
pub mod network;
pub mod numbered;
mod objects_only;
pub mod page;
mod parts;
pub mod policy;
pub mod problem;
pub mod process;
pub mod report;
pub mod resources;
pub mod sandbox;
pub mod service;
pub mod service_request;
pub mod service_state;
pub mod shell;
pub mod start;
pub mod stdin;
mod strict;
pub mod task;
pub mod task_event;
pub mod template;
pub mod terminal;
pub mod token;
pub mod wait;
pub mod web;
pub mod websocket;
pub mod workspace;

pub use audit::{AuditEntryBody, AuditPageBody, DamagedEntriesBody};
pub use context::{ContextBody, ContextChoice, ContextRequestBody, ContextsBody};
pub use doctor::{DoctorBody, DoctorCheckBody, DoctorGroup};
pub use environment::{EnvironmentBody, VariableBody};
pub use event::{EventBody, EventsBody};
pub use history::{
    HistoryDetailBody, HistoryEntryBody, HistoryFreshnessBody, HistoryPageBody, RunStatisticsBody,
    RunTotalsBody,
};
pub use info::{
    ExecutionBody, ExecutionsBody, HealthBody, QueueWaitBody, QueuedStartBody, QuotaHolderBody,
    VersionBody,
};
pub use interaction::{
    AnswerBody, ApprovalBody, CancelBody, InteractionBody, InteractionClientMessage,
    InteractionEndBody, InteractionServerMessage, InteractionsBody, QUESTION_TIMEOUT_MS,
    QuestionBody,
};
pub use network::{EgressDecisionBody, EgressPageBody};
pub use numbered::{
    FailureLineBody, FailureLinesBody, LineMatchPartBody, LineSearchBody, NumberedLineBody,
    NumberedPageBody, OutputShapeBody, ShapeBucketBody,
};
pub use objects_only::ObjectsOnly;
pub use page::{GapBody, LineBody, OutputFrame, OutputPageBody};
pub use policy::{MatchedRuleBody, PolicyBody, PolicyRuleBody, PolicyVerdictBody};
pub use problem::{CodeName, Problem};
pub use process::{
    CleanAllResponse, CleanFailure, CleanResponse, CleanSelected, CleanSelectedResponse,
    OutputEntry, PidEntry, ProcessBody, ProcessOutputBody,
};
pub use resources::{
    ExecutionUsageBody, ResourceListBody, ResourcesBody, UsageHistoryBody, UsagePointBody,
};
pub use sandbox::{IsolationBody, NetworkBody, SandboxInfoBody};
pub use service::{
    DetectResponse, DetectedServiceBody, EnsureResponse, ReadinessWaitBody, ServiceBody,
    ServiceDiagnosisBody, ServiceQuestionBody, ServiceStopResponse, ServicesBody, StartFailureBody,
    UpResponse,
};
pub use service_request::{
    DependencyBody, DependencyConditionBody, HealthRuleBody, PortRequestBody, ProbeBody,
    ServiceOptionsBody, ServiceStartBody, UpBody,
};
pub use service_state::{PortInfoBody, ServiceHealthBody, ServiceStateBody};
pub use shell::{ShellRunBody, ShellRunOutcomeBody, ShellRunResponse, ShellStartBody};
pub use start::{RerunBody, ServiceModeBody, StartBody};
pub use stdin::StdinBody;
pub use task::{ExecuteBody, TaskCancelBody, TaskInputBody, TaskStartedBody};
pub use task_event::{TaskEvent, TaskEventBody};
pub use template::{CommandTemplateBody, CommandTemplateParameterBody, CommandTemplatesBody};
pub use terminal::{
    InputPieceBody, KeysBody, KeysResponse, ResizeBody, ScreenBody, ScreenCursorBody,
    ScreenModesBody, TerminalOutputBody,
};
pub use token::{NewTokenBody, TokenBody, TokenCreatedBody, TokensBody};
pub use wait::{
    ClearOutputResponse, InputResponse, LineMatchBody, PromptBody, SignalBody, StopBody, WaitBody,
    WaitEndKind, WaitErrorBody, WaitResponse, WaitUntil,
};
pub use web::{WebLinkBody, WebSessionBody, WebSignInBody};
pub use websocket::{TerminalClientMessage, TerminalHello, TerminalServerMessage};
pub use workspace::{ChangeTotalsBody, WorkspaceBody};
