//! Services over this machine's processes: names, ensure, order, ports, `ostler.toml`, owners.

mod ensure;
mod fixture;
mod order;
mod owners;
mod pending;
mod reload;
mod stop;
mod stored_request;
