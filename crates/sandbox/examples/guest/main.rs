//! Tests that need another machine: the whole sandbox on a kernel with nothing but cgroups of
//! version 2, an older Landlock, and isolation features removed. `cargo xtask test --full` boots it
//! in an emulator (step `guest`), where `init.sh` starts it once in each of its roles; it prints a
//! line for each property that holds or does not.
//!
//! It deliberately uses no test framework: it runs statically linked, without a library or a
//! temporary directory beside it.

mod bare;
mod cells;
mod limits;
mod report;
mod restrictions;
mod subject;

use std::process::ExitCode;

use report::Report;

fn main() -> ExitCode {
    let role = std::env::args().nth(1).unwrap_or_default();
    let mut report = Report::new(&role);
    match role.as_str() {
        "root" => {
            limits::check(&mut report);
            restrictions::check(&mut report);
            cells::as_root(&mut report);
        }
        "user" => cells::as_user(&mut report),
        "no-landlock" => bare::without_landlock(&mut report),
        "no-namespaces" => bare::without_namespaces(&mut report),
        _ => report.that("the role is known", Err(format!("'{role}'"))),
    }
    report.close()
}
