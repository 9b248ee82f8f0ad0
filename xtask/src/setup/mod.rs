//! What the tests need from elsewhere: system packages, Python packages, npm packages, cargo
//! tools. Doing it twice costs nothing.

mod apt;
mod npm;
mod python;
mod steps;
mod tools;

pub(crate) use npm::{PEERS, node};
pub(crate) use steps::{Args, Tier, run};
