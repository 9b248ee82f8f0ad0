//! The list of measurements, in order.

use super::super::context::Measure;
use super::{dialogue, echo, event_latency, parse, session_memory, shell};

/// Every measurement with its name.
pub(in crate::bench) const ALL: &[(&str, Measure)] = &[
    ("echo", echo::in_process),
    ("echo-mcp", echo::over_mcp),
    ("dialogue", dialogue::to_the_answer),
    ("late", event_latency::to_the_event),
    ("shell", shell::to_the_prompt),
    ("parse", parse::throughput),
    ("memory", session_memory::fifty),
    ("thousand", session_memory::thousand),
];
