//! The gate from outside: real programs in real network namespaces. This binary is also the
//! gate, with a resolver that knows names of this machine only, and each run of it is in a
//! network namespace of its own, whose loopback is the world: hence a harness of its own.

mod hostile;
mod inward;
mod names;
mod programs;
mod reach;
mod support;
mod user;

use libtest_mimic::{Arguments, Trial};

fn main() -> std::process::ExitCode {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some(ostler_process::GATE_ARGUMENT) {
        ostler_process::gate::gate_main_with(support::world());
    }
    let arguments = Arguments::from_args();
    if !arguments.list {
        support::enter_world();
    }
    let mut trials = Vec::new();
    for (module, cases) in [
        ("names", names::CASES),
        ("reach", reach::CASES),
        ("hostile", hostile::CASES),
        ("inward", inward::CASES),
        ("programs", programs::CASES),
        ("user", user::CASES),
    ] {
        for &(name, case) in cases {
            trials.push(Trial::test(format!("{module}::{name}"), move || {
                case();
                Ok(())
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
