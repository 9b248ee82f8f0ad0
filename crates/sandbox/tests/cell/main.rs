//! Real commands in real jails: what is denied is witnessed, and so is what must work.

mod denied;
mod ordinary;
mod overlay;
mod support;
mod terminal;
mod works;
