//! The JSON shapes of REST. Both sides use these types: requests refuse unknown fields,
//! answers may gain fields.

mod event;
pub mod info;
pub mod interaction;
pub mod network;
pub mod page;
pub mod problem;
pub mod process;
pub mod resources;
pub mod sandbox;
pub mod service;
pub mod service_request;
pub mod shell;
pub mod start;
pub mod terminal;
pub mod wait;
pub mod websocket;
pub mod workspace;

pub use event::{EventBody, EventsBody};
pub use info::{
    ExecutionBody, ExecutionsBody, HealthBody, QueueWaitBody, QueuedStartBody, QuotaHolderBody,
};
pub use interaction::{AnswerBody, ApprovalBody, InteractionBody, InteractionsBody};
pub use network::{EgressDecisionBody, EgressPageBody};
pub use page::{GapBody, LineBody, OutputFrame, OutputPageBody};
pub use problem::{CodeName, Problem};
pub use process::{
    CleanAllResponse, CleanFailure, CleanResponse, CleanSelected, CleanSelectedResponse,
    OutputEntry, PidEntry, ProcessBody, ProcessOutputBody,
};
pub use resources::ResourcesBody;
pub use sandbox::{IsolationBody, NetworkBody, SandboxInfoBody, SandboxOptionsBody};
pub use service::{
    DetectResponse, DetectedServiceBody, EnsureResponse, PortInfoBody, ReadinessWaitBody,
    ServiceBody, ServiceDiagnosisBody, ServiceHealthBody, ServiceStateBody, ServiceStopResponse,
    ServicesBody, UpResponse,
};
pub use service_request::{
    DependencyBody, DependencyConditionBody, HealthRuleBody, PortRequestBody, ProbeBody,
    ServiceModeBody, ServiceOptionsBody, ServiceStartBody, UpBody,
};
pub use shell::{ShellRunBody, ShellRunOutcomeBody, ShellRunResponse, ShellStartBody};
pub use start::{RerunBody, RetentionBody, StartBody, StdinBody};
pub use terminal::{
    InputPieceBody, KeysBody, KeysResponse, ResizeBody, ScreenBody, TerminalOutputBody,
};
pub use wait::{
    ClearOutputResponse, InputResponse, LineMatchBody, PromptBody, SignalBody, StopBody, WaitBody,
    WaitEndKind, WaitResponse, WaitUntil,
};
pub use websocket::{TerminalClientMessage, TerminalHello, TerminalServerMessage};
pub use workspace::{ChangeTotalsBody, WorkspaceBody};
