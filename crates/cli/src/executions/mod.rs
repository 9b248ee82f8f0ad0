//! One execution as every verb has it: its id, its standard input, its end.
//!
//! * [`ids`]: paths below one execution, and verbs that take several; [`id_alias`]: `@last` and
//!   prefixes.
//! * [`stdin`]: sends standard input to it.
//! * [`end`]: what is reported at its end, and the exit code.
//! * [`refused_hosts`]: hosts that its allow list refused.

pub(crate) mod end;
pub(crate) mod id_alias;
pub(crate) mod ids;
pub(crate) mod refused_hosts;
pub(crate) mod stdin;
