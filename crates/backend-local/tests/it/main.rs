//! [`LocalBackend`](ostler_backend_local::LocalBackend) through its public interface. This binary
//! is also the zygote, and a daemon that can be killed: hence `harness = false`.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "cases look at the reports they are about"
)]

mod container;
mod detached;
mod ends;
mod freeze;
mod jails;
mod limits;
mod observe;
mod output;
mod pinned;
mod recovery;
mod runs;
mod shell;
mod slow_zygote;
mod sockets;
mod support;
mod terminals;
mod test_daemon;
mod user;

use libtest_mimic::{Arguments, Trial};

fn main() -> std::process::ExitCode {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some(ostler_backend_local::ZYGOTE_ARGUMENT) if slow_zygote::is_requested() => {
            return slow_zygote::run();
        }
        Some(ostler_backend_local::ZYGOTE_ARGUMENT) => ostler_backend_local::zygote_main(),
        Some(ostler_backend_local::EGRESS_ARGUMENT) => ostler_backend_local::egress_main(),
        Some(container::INIT_ARGUMENT) => {
            match ostler_container_init::init::run(&std::env::vars_os().collect::<Vec<_>>()) {
                Ok(()) => return std::process::ExitCode::SUCCESS,
                Err(error) => panic!("{error}"),
            }
        }
        Some(test_daemon::DAEMON_ARGUMENT) => return test_daemon::daemon_main(words.collect()),
        Some(terminals::THIRD_TERMINAL_ARGUMENT) => return terminals::third_terminal(),
        Some(_) | None => {}
    }
    let mut trials = Vec::new();
    for (module, cases) in [
        ("runs", runs::CASES),
        ("shell", shell::CASES),
        ("output", output::CASES),
        ("pinned", pinned::CASES),
        ("ends", ends::CASES),
        ("recovery", recovery::CASES),
        ("slow_zygote", slow_zygote::CASES),
        ("jails", jails::CASES),
        ("freeze", freeze::CASES),
        ("detached", detached::CASES),
        ("limits", limits::CASES),
        ("observe", observe::CASES),
        ("sockets", sockets::CASES),
        ("terminals", terminals::CASES),
        ("user", user::CASES),
    ] {
        for &(name, case) in cases {
            trials.push(Trial::test(format!("{module}::{name}"), move || {
                case();
                Ok(())
            }));
        }
    }
    for (module, cases) in [
        ("container", container::CASES),
        ("container::runs", runs::CASES),
        ("container::shell", shell::CASES),
        ("container::output", output::CASES),
        ("container::ends", ends::CASES),
        ("container::freeze", freeze::CASES),
        ("container::detached", detached::CASES),
        ("container::observe", observe::CASES),
        ("container::terminals", terminals::CASES),
    ] {
        for &(name, case) in cases
            .iter()
            .filter(|(name, _)| !container::is_left_out(name))
        {
            trials.push(Trial::test(format!("{module}::{name}"), move || {
                container::enter();
                case();
                Ok(())
            }));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
