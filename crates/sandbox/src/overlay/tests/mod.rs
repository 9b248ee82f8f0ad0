//! Overlays of the kernel, written to by shells in a mount namespace of their own.

mod crash;
mod hostile;
mod property;
mod stage;
mod verbs;
