//! The egress proxy through its public interface: real programs in real network namespaces. This
//! binary is also the egress proxy, with a resolver that knows names of this machine only, and each
//! run is in its own network namespace, whose loopback is the outside network: hence `harness =
//! false`.

mod hostile;
mod inbound;
mod names;
mod outbound;
mod programs;
mod support;
mod user;

use libtest_mimic::{Arguments, Trial};

fn main() -> std::process::ExitCode {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some(ostler_egress::EGRESS_ARGUMENT) {
        ostler_egress::egress_main_with(support::outside_network());
    }
    let arguments = Arguments::from_args();
    if !arguments.list {
        support::enter_netns();
    }
    let mut trials = Vec::new();
    for (module, cases) in [
        ("names", names::CASES),
        ("outbound", outbound::CASES),
        ("hostile", hostile::CASES),
        ("inbound", inbound::CASES),
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
