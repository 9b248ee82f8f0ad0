//! The lifecycle of one execution, decided purely: what happens next, given what happened.
//!
//! [`supervisor`] is the state machine of an execution: inputs in, events and effects out.
//! [`readiness`] is the state machine of one attempt of a service: it decides when the service is
//! ready and healthy from sockets, output and probes that others observed. The supervisor owns it.
//! [`context`] is the state machine of a context, which executions of a project share.
//! [`alert`] decides when somebody is told of what an execution uses; [`sampling`] decides when the resource usage of each execution is sampled.
//!
//! Time arrives as data. This crate must never know of async runtimes, files, sockets, clocks or
//! backends: the driver performs the effects and reports their results.
#![forbid(unsafe_code)]

pub mod alert;
pub mod context;
pub mod readiness;
pub mod sampling;
pub mod supervisor;
