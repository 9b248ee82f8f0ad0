//! What only another machine can prove: the whole sandbox on a kernel with nothing but
//! cgroups of version 2, an older Landlock, and walls taken away. `cargo xtask test --full`
//! boots it in an emulator (step `guest`), where `init.sh` starts it once as each of its
//! roles; it says a line for each thing that holds or does not.
//!
//! On purpose it looks at no test framework: it runs statically linked, without a library or
//! a temporary directory beside it.

mod bare;
mod cells;
mod limits;
mod report;
mod subject;
mod walls;

use std::process::ExitCode;

use report::Report;

fn main() -> ExitCode {
    let role = std::env::args().nth(1).unwrap_or_default();
    let mut report = Report::new(&role);
    match role.as_str() {
        "root" => {
            limits::check(&mut report);
            walls::check(&mut report);
            cells::as_root(&mut report);
        }
        "user" => cells::as_user(&mut report),
        "no-landlock" => bare::without_landlock(&mut report),
        "no-namespaces" => bare::without_namespaces(&mut report),
        _ => report.that("the role is known", Err(format!("'{role}'"))),
    }
    report.close()
}
