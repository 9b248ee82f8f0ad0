//! The table of [`super::rules`] as a filter.

use libc::sock_filter;
use ostler_model::confinement::Confinement;

use super::assembler::{Assembler, Label, Test};
use super::rules::{
    ARCHITECTURE, INTERNET, KIND, KINDS, MAKES, NETLINK, PROTOCOLS, Rule, SET_ID, SKIPPED, Sockets,
    UNIX, Verdict, X32, table,
};

/// A filter, ready to be installed between clone and exec.
#[derive(Clone)]
pub struct Program {
    instructions: Vec<sock_filter>,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Program({} instructions)", self.instructions.len())
    }
}

impl Program {
    /// As seccomp(2) takes them.
    #[must_use]
    pub fn instructions(&self) -> &[sock_filter] {
        &self.instructions
    }
}

/// The filter for commands of this confinement.
#[must_use]
pub fn program(confinement: &Confinement) -> Program {
    Program {
        instructions: assemble(Sockets::of(confinement)),
    }
}

/// Where a filter ends.
#[derive(Clone, Copy)]
struct Ends {
    allow: Label,
    refuse: Label,
    absent: Label,
    kill: Label,
}

pub(super) fn assemble(sockets: Sockets) -> Vec<sock_filter> {
    let mut it = Assembler::default();
    let ends = Ends {
        allow: it.label(),
        refuse: it.label(),
        absent: it.label(),
        kill: it.label(),
    };
    it.load_architecture();
    it.unless(Test::Equals(ARCHITECTURE), ends.kill);
    it.load_number();
    if cfg!(target_arch = "x86_64") {
        it.when(Test::Equals(SKIPPED), ends.allow);
        it.when(Test::AtLeast(X32), ends.kill);
    }
    for (number, rule) in table() {
        write(&mut it, ends, (number, rule), sockets);
    }
    for (label, verdict) in [
        (ends.allow, Verdict::Allow),
        (ends.refuse, Verdict::Refuse),
        (ends.absent, Verdict::Absent),
        (ends.kill, Verdict::Kill),
    ] {
        it.place(label);
        it.end(verdict);
    }
    it.finish()
}

/// One call: with its number in the accumulator, which stays there when it is another call.
fn write(it: &mut Assembler, ends: Ends, (number, rule): (u32, Rule), sockets: Sockets) {
    let this = Test::Equals(number);
    let another = it.label();
    match rule {
        Rule::Refuse => it.when(this, ends.refuse),
        Rule::Absent => it.when(this, ends.absent),
        Rule::Bits { arg, refused } => {
            it.unless(this, another);
            it.load_argument(arg);
            it.branch(Test::HasAny(refused), ends.refuse, ends.allow);
        }
        Rule::Making { flags, mode } => {
            it.unless(this, another);
            it.load_argument(flags);
            it.unless(Test::HasAny(MAKES), ends.allow);
            it.load_argument(mode);
            it.branch(Test::HasAny(SET_ID), ends.refuse, ends.allow);
        }
        Rule::Values { arg, refused } => {
            it.unless(this, another);
            it.load_argument(arg);
            one_of(it, refused, (ends.refuse, ends.allow));
        }
        Rule::Only { arg, allowed } => {
            it.unless(this, another);
            it.load_argument(arg);
            one_of(it, allowed, (ends.allow, ends.refuse));
        }
        Rule::Socket => {
            it.unless(this, another);
            socket(it, ends, sockets);
        }
    }
    it.place(another);
}

/// Goes to the first place with one of these values in the accumulator, else to the second.
fn one_of(it: &mut Assembler, values: &[u32], (yes, no): (Label, Label)) {
    let Some((last, before)) = values.split_last() else {
        return;
    };
    for value in before {
        it.when(Test::Equals(*value), yes);
    }
    it.branch(Test::Equals(*last), yes, no);
}

fn socket(it: &mut Assembler, ends: Ends, sockets: Sockets) {
    let (netlink, internet) = (it.label(), it.label());
    it.load_argument(0);
    it.when(Test::Equals(UNIX), ends.allow);
    it.when(Test::Equals(NETLINK.0), netlink);
    match sockets {
        Sockets::Internet => one_of(it, &INTERNET, (internet, ends.refuse)),
        // A jump that is never taken keeps the label in use.
        Sockets::Local => it.branch(Test::Equals(UNIX), internet, ends.refuse),
    }
    it.place(internet);
    it.load_argument(1);
    it.keep(KIND);
    let protocol = it.label();
    one_of(it, &KINDS, (protocol, ends.refuse));
    it.place(protocol);
    it.load_argument(2);
    one_of(it, &PROTOCOLS, (ends.allow, ends.refuse));
    it.place(netlink);
    it.load_argument(2);
    it.branch(Test::Equals(NETLINK.1), ends.allow, ends.refuse);
}
