//! What the tests need from elsewhere: system packages, Python packages, cargo tools. Doing it
//! twice costs nothing.

mod apt;
mod python;
mod steps;
mod tools;

pub(crate) use steps::{Args, Tier, run};
