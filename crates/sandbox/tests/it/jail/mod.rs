//! Real commands in real jails: what must be denied, and what must work.

mod denied;
mod ordinary;
mod overlay;
mod support;
mod terminal;
mod works;
