//! The JSON shapes of REST. Both sides use these types: requests refuse unknown fields,
//! answers may gain fields.

pub mod confine;
mod event;
pub mod info;
pub mod interaction;
pub mod network;
pub mod page;
pub mod problem;
pub mod process;
pub mod resources;
pub mod service;
pub mod shell;
pub mod socket;
pub mod start;
pub mod terminal;
pub mod wait;
pub mod wish;
pub mod workspace;

pub use confine::{ConfineBody, ConfinementBody, IsolationBody, NetworkBody};
pub use event::{EventBody, EventsBody};
pub use info::{HealthBody, HolderBody, InfoBody, ListBody, QueueWaitBody, QueuedStartBody};
pub use interaction::{AnswerBody, ApprovalBody, InteractionBody, InteractionsBody};
pub use network::{DecisionBody, NetworkPageBody};
pub use page::{Frame, GapBody, LineBody, PageBody};
pub use problem::{CodeName, Problem};
pub use process::{
    CleanAllBody, CleanBody, CleanSelected, CleanedBody, FailedEntry, OutputBody, OutputEntry,
    PidEntry, ProcessBody,
};
pub use resources::ResourcesBody;
pub use service::{
    DetectBody, DetectedBody, EnsuredBody, PortInfoBody, ReadyBody, ServiceBody, ServiceStateBody,
    ServiceStoppedBody, ServicesBody, UppedBody, WellBody, WhyBody,
};
pub use shell::{ShellEndBody, ShellRanBody, ShellRunBody, ShellStartBody};
pub use socket::{ClientMessage, Hello, ServerMessage};
pub use start::{AgainBody, RetentionBody, StartBody, StdinBody};
pub use terminal::{KeysBody, PieceBody, ResizeBody, ScreenBody, TerminalOutputBody, TypedBody};
pub use wait::{
    DroppedBody, MatchedBody, PromptBody, SignalBody, StopBody, TakenBody, Until, WaitBody,
    WaitedBody, Why,
};
pub use wish::{
    DependencyBody, HealthRuleBody, NeedBody, PortBody, ProbeBody, ServiceModeBody,
    ServiceStartBody, UpBody, WishBody,
};
pub use workspace::{TotalsBody, WorkspaceBody};
