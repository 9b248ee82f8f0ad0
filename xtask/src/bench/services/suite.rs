//! The list of measurements, in order.

use super::super::context::Measure;
use super::{detection, idle, ready, scan};

/// Every measurement with its name.
pub(in crate::bench) const ALL: &[(&str, Measure)] = &[
    ("ready", ready::from_the_socket),
    ("scan", scan::of_a_tree),
    ("idle", idle::a_hundred),
    ("detection", detection::of_commands),
];
