//! Terminal sessions over this machine's processes: real programs, without a keeper.

mod answers;
mod events;
mod fixture;
mod leases;
mod pages;
mod screens;
mod typing;
