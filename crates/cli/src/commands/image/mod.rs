//! `ostler image`: the images of containers. Works on the container engine itself, so it needs no
//! daemon.

mod build;
mod list;
mod pull;
mod verb;

pub(crate) use verb::{ImageVerb, run};
