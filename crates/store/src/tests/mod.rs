//! The store against a ledger that is written for it, in every database.
//!
//! * [`cases`]: what holds for all; [`every_database`] runs them.
//! * [`fixture`]: the ledger and its history; [`server`]: a server of PostgreSQL.

mod cases;
mod every_database;
mod fixture;
mod server;

pub(crate) use fixture::{DAY, Fixture, all, owner};
pub(crate) use server::TestDatabaseServer;
