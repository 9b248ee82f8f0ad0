//! The JSON shapes of REST. Both sides use these types: requests refuse unknown fields,
//! answers may gain fields.

pub mod info;
pub mod page;
pub mod problem;
pub mod process;
pub mod shell;
pub mod socket;
pub mod start;
pub mod terminal;
pub mod wait;

pub use info::{HealthBody, InfoBody, IsolationBody, ListBody};
pub use page::{Frame, GapBody, LineBody, PageBody};
pub use problem::{CodeName, Problem};
pub use process::{
    CleanAllBody, CleanBody, CleanSelected, CleanedBody, FailedEntry, OutputBody, OutputEntry,
    PidEntry, ProcessBody,
};
pub use shell::{ShellEndBody, ShellRanBody, ShellRunBody, ShellStartBody};
pub use socket::{ClientMessage, Hello, ServerMessage};
pub use start::{RetentionBody, StartBody, StdinBody};
pub use terminal::{KeysBody, PieceBody, ResizeBody, ScreenBody, TerminalOutputBody, TypedBody};
pub use wait::{
    DroppedBody, MatchedBody, PromptBody, SignalBody, StopBody, TakenBody, Until, WaitBody,
    WaitedBody, Why,
};
