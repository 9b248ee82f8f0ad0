//! What of level high works here: the whole recipe, once, in a cell that is thrown away. Asking
//! settings would not do: some kernels grant namespaces and then refuse what is done in them.

use std::ffi::CString;
use std::os::fd::AsFd;

use ostler_model::{Abilities, Ability, Confinement};
use rustix::fs::{Mode, OFlags, open};

use super::Note;
use crate::birth::{self, CArray, Failure, Launch, Pages, STACK_BYTES, Step};
use crate::cell::remedy;
use crate::{BuildAt, Cell, CellError, CellPlan, Host, Walls, landlock, seccomp};

/// Where nothing is: a birth that fails only at exec has raised everything.
const NOTHING: &std::ffi::CStr = c"/nothing-is-here";

/// Notes every wall, each missing one with the step at which it fails and a remedy.
pub(super) fn note(abilities: &mut Abilities) {
    abilities.root = rustix::process::geteuid().is_root();
    let mut without = Vec::new();
    let mut built = attempt(&without);
    // Without what is told apart, the rest may work.
    for _ in [Ability::NetworkNamespace, Ability::FreshProc] {
        let Err(error) = &built else { break };
        let Some(ability) = separable(error, &without) else {
            break;
        };
        let reason = told(error);
        without.push(ability);
        let next = attempt(&without);
        let helped = next.as_ref().is_ok_and(|_| true)
            || next.as_ref().is_err_and(|it| it.step != error.step);
        if helped {
            abilities.note(ability, false, &reason);
            built = next;
        } else {
            without.pop();
            break;
        }
    }
    note_cell(abilities, &built, &without);
    note_walls(abilities, built.ok(), &without);
}

/// What a failure may be about alone.
fn separable(error: &CellError, without: &[Ability]) -> Option<Ability> {
    let ability = match error.step {
        "namespaces" | "loopback" => Ability::NetworkNamespace,
        // Quotas are set through it.
        "fresh /proc" | "quota of the kernel" => Ability::FreshProc,
        _ => return None,
    };
    (!without.contains(&ability)).then_some(ability)
}

fn confinement(without: &[Ability]) -> Confinement {
    Confinement {
        without: without.to_vec(),
        ..Confinement::default()
    }
}

fn attempt(without: &[Ability]) -> Result<Cell, CellError> {
    let confinement = confinement(without);
    let plan = CellPlan::compile(&confinement, &Host::read(&confinement))?;
    Cell::build(&plan, BuildAt::default())
}

/// A failure for people: the step, the kernel's reason, what to do.
fn told(error: &CellError) -> String {
    match remedy() {
        Some(remedy) => format!("{error}; {remedy}"),
        None => error.to_string(),
    }
}

fn note_cell(abilities: &mut Abilities, built: &Result<Cell, CellError>, without: &[Ability]) {
    let (namespaces, root, spare) = match built {
        Ok(_) => (None, None, None),
        Err(error) => match error.step {
            "spare ids" | "id map" if abilities.root => {
                (Some(told(error)), Some(told(error)), Some(told(error)))
            }
            "namespaces" | "id map" | "socket" | "warden" => {
                (Some(told(error)), Some(told(error)), None)
            }
            _ => (None, Some(told(error)), None),
        },
    };
    let note = |abilities: &mut Abilities, ability, reason: &Option<String>| {
        if !without.contains(&ability) {
            let reason = reason.as_deref();
            abilities.note(ability, reason.is_none(), reason.unwrap_or_default());
        }
    };
    note(abilities, Ability::Namespaces, &namespaces);
    note(abilities, Ability::NetworkNamespace, &namespaces);
    note(abilities, Ability::OwnRoot, &root);
    note(abilities, Ability::FreshProc, &root);
    // Whether a file system can be shown so, or lie under an overlay, its survey tells.
    note(abilities, Ability::Overlay, &root);
    if abilities.root {
        note(abilities, Ability::SpareIds, &spare);
        note(abilities, Ability::MappedWorkspace, &root);
    }
}

/// Raises them on a command that then does not exist.
fn note_walls(abilities: &mut Abilities, cell: Option<Cell>, without: &[Ability]) {
    let landlock = landlock::missing();
    let seccomp = seccomp::missing();
    let mut confinement = confinement(without);
    if landlock.is_some() {
        confinement.without.push(Ability::Landlock);
    }
    if seccomp.is_some() {
        confinement.without.push(Ability::Seccomp);
    }
    let raised = raise(&Walls::new(&confinement), cell.as_ref());
    let failed = raised.err().map(|failure| {
        let reason = std::io::Error::from_raw_os_error(failure.errno.raw_os_error());
        format!("{}: {reason}", failure.step.name())
    });
    for (ability, missing) in [
        (Ability::NoNewPrivileges, None),
        (Ability::NoCapabilities, None),
        (Ability::Landlock, landlock),
        (Ability::Seccomp, seccomp),
    ] {
        let missing = missing.or_else(|| failed.clone());
        abilities.note(ability, missing.is_none(), &missing.unwrap_or_default());
    }
}

fn raise(walls: &Walls, cell: Option<&Cell>) -> Result<(), Failure> {
    let at = |step| move |errno| Failure { step, errno };
    let null = open(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    let null = null.map_err(at(Step::Stdio))?;
    let null = rustix::io::fcntl_dupfd_cloexec(&null, 3).map_err(at(Step::Stdio))?;
    let none = CArray::new(Vec::<CString>::new());
    let launch = Launch {
        program: NOTHING,
        pinned: None,
        argv: &none,
        env: &none,
        cwd: c"/",
        stdio: [null.as_fd(), null.as_fd(), null.as_fd()],
        terminal: false,
        joins: &[],
        cgroup: None,
        dies_with_parent: false,
        ignored: &[],
        soft_open_files: None,
        rlimits: &[],
        cell,
        walls: Some(walls),
    };
    let mut stack = Pages::map(STACK_BYTES).map_err(at(Step::Clone))?;
    match birth::spawn(&launch, &mut stack) {
        Ok(born) => {
            birth::wait::reap_blocking(born.pid);
            Ok(())
        }
        Err(failure) if failure.step == Step::Exec => Ok(()),
        Err(failure) => Err(failure),
    }
}
