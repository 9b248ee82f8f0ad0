//! Installs what the tests need: system packages, Python packages, npm packages, servers to start,
//! the root of a container image, cargo tools. A second run is quick.

mod apt;
mod debian_root;
mod npm;
mod python;
mod servers;
mod steps;
mod tools;

pub(crate) use npm::{PEERS, node};
pub(crate) use python::peers as python_peers;
pub(crate) use servers::servers;
pub(crate) use steps::{SetupArgs, Tier, run};
