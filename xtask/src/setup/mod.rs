//! What the tests need from elsewhere: system packages, Python packages, npm packages, servers to
//! start, cargo tools. Doing it twice costs nothing.

mod apt;
mod npm;
mod python;
mod servers;
mod steps;
mod tools;

pub(crate) use npm::{PEERS, node};
pub(crate) use python::peers as python_peers;
pub(crate) use servers::servers;
pub(crate) use steps::{SetupArgs, Tier, run};
