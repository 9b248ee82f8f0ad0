//! The screen over the public interface.

mod fuzz;
