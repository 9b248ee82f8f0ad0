//! Which measurements there are, in order.

use super::super::run::Measure;
use super::{dialogue, echo, late, many, parse, shell};

/// Every measurement by its name.
pub(in crate::bench) const ALL: &[(&str, Measure)] = &[
    ("echo", echo::in_process),
    ("echo-mcp", echo::over_mcp),
    ("dialogue", dialogue::to_the_answer),
    ("late", late::to_the_event),
    ("shell", shell::to_the_prompt),
    ("parse", parse::throughput),
    ("memory", many::fifty),
    ("thousand", many::thousand),
];
