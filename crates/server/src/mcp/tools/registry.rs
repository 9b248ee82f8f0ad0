//! What a tool is, and how it is called.

use std::future::Future;
use std::pin::Pin;

use serde_json::{Map, Value};

use crate::mcp::context::Call;
use crate::mcp::reply::{Interrupted, Reply};
use crate::params::{Arguments, Parameter};

/// What a call comes to.
pub(in crate::mcp) type Answer = Result<Reply, Interrupted>;

/// An answer under way.
pub(in crate::mcp) type Answering<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// What a tool is to clients, and the function behind it.
#[derive(Debug, Clone, Copy)]
pub(in crate::mcp) struct Definition {
    pub(in crate::mcp) name: &'static str,
    /// For people; empty where the name says the same.
    pub(in crate::mcp) title: &'static str,
    pub(in crate::mcp) about: &'static str,
    pub(in crate::mcp) parameters: &'static [Parameter],
    pub(in crate::mcp) hints: Hints,
    /// The schema of its structured answer; only status tools have one (F6).
    pub(in crate::mcp) output: Option<fn() -> Value>,
    /// Carries it out; arguments have been checked.
    pub(in crate::mcp) call: for<'a> fn(Call<'a>, Arguments) -> Answering<'a>,
}

/// What a client may conclude about a tool's effects.
#[derive(Debug, Clone, Copy)]
pub(in crate::mcp) struct Hints {
    pub(in crate::mcp) read_only: bool,
    pub(in crate::mcp) destructive: bool,
    pub(in crate::mcp) idempotent: bool,
}

impl Hints {
    /// Looks, and changes nothing.
    pub(super) const READS: Self = Self {
        read_only: true,
        destructive: false,
        idempotent: true,
    };
    /// Runs whatever it is given.
    pub(super) const RUNS: Self = Self {
        read_only: false,
        destructive: true,
        idempotent: false,
    };
    /// Ends or removes what is ours.
    pub(super) const ENDS: Self = Self {
        read_only: false,
        destructive: true,
        idempotent: true,
    };
}

/// Calls a tool with what was given.
pub(in crate::mcp) async fn call(
    tool: &'static Definition,
    call: Call<'_>,
    given: Map<String, Value>,
) -> Answer {
    let arguments = Arguments::check(tool.parameters, given)?;
    (tool.call)(call, arguments).await
}
