//! Compiles the table of [`super::rules`] to a filter.

use libc::sock_filter;
use ostler_model::sandbox_spec::SandboxSpec;

use super::bpf::{BpfBuilder, BpfLabel, JumpTest};
use super::rules::{
    ARCHITECTURE, AllowedSockets, CREATE_FLAGS, INTERNET, NETLINK, PROTOCOLS, SET_ID, SKIPPED,
    SOCKET_TYPE_MASK, SOCKET_TYPES, SeccompAction, SyscallRule, UNIX, X32, table,
};

/// A filter, ready to be installed between clone and exec.
#[derive(Clone)]
pub struct SeccompFilter {
    instructions: Vec<sock_filter>,
}

impl std::fmt::Debug for SeccompFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Program({} instructions)", self.instructions.len())
    }
}

impl SeccompFilter {
    /// The instructions, as seccomp(2) takes them.
    #[must_use]
    pub fn instructions(&self) -> &[sock_filter] {
        &self.instructions
    }
}

/// The filter for commands of this specification.
#[must_use]
pub fn build_filter(spec: &SandboxSpec) -> SeccompFilter {
    SeccompFilter {
        instructions: assemble(AllowedSockets::of(spec)),
    }
}

/// The labels of a filter's return instructions.
#[derive(Clone, Copy)]
struct ReturnLabels {
    allow: BpfLabel,
    eperm: BpfLabel,
    enosys: BpfLabel,
    kill: BpfLabel,
}

pub(super) fn assemble(sockets: AllowedSockets) -> Vec<sock_filter> {
    let mut bpf = BpfBuilder::default();
    let labels = ReturnLabels {
        allow: bpf.label(),
        eperm: bpf.label(),
        enosys: bpf.label(),
        kill: bpf.label(),
    };
    bpf.load_architecture();
    bpf.jump_unless(JumpTest::Equals(ARCHITECTURE), labels.kill);
    bpf.load_number();
    if cfg!(target_arch = "x86_64") {
        bpf.jump_if(JumpTest::Equals(SKIPPED), labels.allow);
        bpf.jump_if(JumpTest::AtLeast(X32), labels.kill);
    }
    for (number, rule) in table() {
        write_rule(&mut bpf, labels, number, rule, sockets);
    }
    for (label, action) in [
        (labels.allow, SeccompAction::Allow),
        (labels.eperm, SeccompAction::Eperm),
        (labels.enosys, SeccompAction::Enosys),
        (labels.kill, SeccompAction::Kill),
    ] {
        bpf.bind_label(label);
        bpf.ret(action);
    }
    bpf.assemble()
}

/// Writes the rule of one call. The accumulator holds its number, and still does at the next rule.
fn write_rule(
    bpf: &mut BpfBuilder,
    labels: ReturnLabels,
    number: u32,
    rule: SyscallRule,
    sockets: AllowedSockets,
) {
    let is_this_call = JumpTest::Equals(number);
    let another = bpf.label();
    match rule {
        SyscallRule::Eperm => bpf.jump_if(is_this_call, labels.eperm),
        SyscallRule::Enosys => bpf.jump_if(is_this_call, labels.enosys),
        SyscallRule::ForbiddenBits {
            arg,
            forbidden: refused,
        } => {
            bpf.jump_unless(is_this_call, another);
            bpf.load_argument(arg);
            bpf.jump(JumpTest::HasAny(refused), labels.eperm, labels.allow);
        }
        SyscallRule::ForbiddenMode { flags, mode } => {
            bpf.jump_unless(is_this_call, another);
            bpf.load_argument(flags);
            bpf.jump_unless(JumpTest::HasAny(CREATE_FLAGS), labels.allow);
            bpf.load_argument(mode);
            bpf.jump(JumpTest::HasAny(SET_ID), labels.eperm, labels.allow);
        }
        SyscallRule::ForbiddenValues {
            arg,
            forbidden: refused,
        } => {
            bpf.jump_unless(is_this_call, another);
            bpf.load_argument(arg);
            jump_one_of(bpf, refused, labels.eperm, labels.allow);
        }
        SyscallRule::AllowedValues { arg, allowed } => {
            bpf.jump_unless(is_this_call, another);
            bpf.load_argument(arg);
            jump_one_of(bpf, allowed, labels.allow, labels.eperm);
        }
        SyscallRule::Socket => {
            bpf.jump_unless(is_this_call, another);
            write_socket_rule(bpf, labels, sockets);
        }
    }
    bpf.bind_label(another);
}

/// Jumps to `yes` with one of these values in the accumulator, else to `no`.
fn jump_one_of(bpf: &mut BpfBuilder, values: &[u32], yes: BpfLabel, no: BpfLabel) {
    let Some((last, before)) = values.split_last() else {
        return;
    };
    for value in before {
        bpf.jump_if(JumpTest::Equals(*value), yes);
    }
    bpf.jump(JumpTest::Equals(*last), yes, no);
}

fn write_socket_rule(bpf: &mut BpfBuilder, labels: ReturnLabels, sockets: AllowedSockets) {
    let (netlink, internet) = (bpf.label(), bpf.label());
    bpf.load_argument(0);
    bpf.jump_if(JumpTest::Equals(UNIX), labels.allow);
    bpf.jump_if(JumpTest::Equals(NETLINK.0), netlink);
    match sockets {
        AllowedSockets::Internet => jump_one_of(bpf, &INTERNET, internet, labels.eperm),
        // A jump that is never taken keeps the label in use.
        AllowedSockets::Local => bpf.jump(JumpTest::Equals(UNIX), internet, labels.eperm),
    }
    bpf.bind_label(internet);
    bpf.load_argument(1);
    bpf.and(SOCKET_TYPE_MASK);
    let protocol = bpf.label();
    jump_one_of(bpf, &SOCKET_TYPES, protocol, labels.eperm);
    bpf.bind_label(protocol);
    bpf.load_argument(2);
    jump_one_of(bpf, &PROTOCOLS, labels.allow, labels.eperm);
    bpf.bind_label(netlink);
    bpf.load_argument(2);
    bpf.jump(JumpTest::Equals(NETLINK.1), labels.allow, labels.eperm);
}
