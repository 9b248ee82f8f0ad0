//! Rules and verdicts over the public interface.

mod attempts;
mod continuations;
mod corpus;
mod fuzz;
mod judge;
mod rules;
