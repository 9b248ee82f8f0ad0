//! Links the binary of debug builds to a fixed address: its 300,000 relocations cost 15 to 30 % of the
//! processor time of each start, and tests start it by the ten thousand. Builds of release stay
//! relocatable.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_debug = std::env::var("PROFILE").is_ok_and(|profile| profile == "debug");
    let is_linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    if is_debug && is_linux {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
