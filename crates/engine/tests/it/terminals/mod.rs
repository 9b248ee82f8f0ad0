//! Terminal sessions over this machine's processes: real programs, without a zygote.

mod answers;
mod events;
mod fixture;
mod leases;
mod pages;
mod screens;
mod typing;
