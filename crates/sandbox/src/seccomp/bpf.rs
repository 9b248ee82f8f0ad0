//! An assembler of classic BPF with forward labels, as far as a seccomp(2) filter needs it.

use libc::sock_filter;

use super::rules::SeccompAction;

/// A jump target, further down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BpfLabel(usize);

/// A comparison with the accumulator.
#[derive(Debug, Clone, Copy)]
pub(super) enum JumpTest {
    /// Equal to this.
    Equals(u32),
    /// At least this, unsigned.
    AtLeast(u32),
    /// Any of these bits set.
    HasAny(u32),
}

/// Offsets in `struct seccomp_data`; arguments are 64 bits, little-endian on every supported
/// architecture.
const OFFSET_NUMBER: u32 = 0;
const OFFSET_ARCHITECTURE: u32 = 4;
const OFFSET_ARGUMENTS: u32 = 16;
const ARGUMENT_BYTES: u32 = 8;

#[derive(Debug, Clone, Copy)]
enum BpfLine {
    Instruction(sock_filter),
    Jump {
        test: JumpTest,
        yes: BpfLabel,
        no: BpfLabel,
    },
}

/// A program under construction.
#[derive(Debug, Default)]
pub(super) struct BpfBuilder {
    lines: Vec<BpfLine>,
    /// Instruction numbers by label; none until the label is bound.
    label_positions: Vec<Option<usize>>,
}

impl BpfBuilder {
    /// A label, to be bound later.
    pub(super) fn label(&mut self) -> BpfLabel {
        self.label_positions.push(None);
        BpfLabel(self.label_positions.len() - 1)
    }

    /// Binds a label to the next instruction.
    pub(super) fn bind_label(&mut self, label: BpfLabel) {
        self.label_positions[label.0] = Some(self.lines.len());
    }

    /// Loads the system call number.
    pub(super) fn load_number(&mut self) {
        self.load(OFFSET_NUMBER);
    }

    /// Loads the architecture's audit number.
    pub(super) fn load_architecture(&mut self) {
        self.load(OFFSET_ARCHITECTURE);
    }

    /// Loads the low half of an argument: all that the kernel reads where the argument is an `int`,
    /// a mode or a set of flags, whatever the high half is.
    pub(super) fn load_argument(&mut self, index: u8) {
        self.load(OFFSET_ARGUMENTS + u32::from(index) * ARGUMENT_BYTES);
    }

    /// Masks the accumulator.
    pub(super) fn and(&mut self, bits: u32) {
        self.emit(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, bits);
    }

    /// Jumps to one of two labels.
    pub(super) fn jump(&mut self, test: JumpTest, yes: BpfLabel, no: BpfLabel) {
        self.lines.push(BpfLine::Jump { test, yes, no });
    }

    /// Jumps when the test holds, else falls through.
    pub(super) fn jump_if(&mut self, test: JumpTest, yes: BpfLabel) {
        let next = self.label();
        self.jump(test, yes, next);
        self.bind_label(next);
    }

    /// Jumps unless the test holds, else falls through.
    pub(super) fn jump_unless(&mut self, test: JumpTest, no: BpfLabel) {
        let next = self.label();
        self.jump(test, next, no);
        self.bind_label(next);
    }

    /// Returns an action.
    pub(super) fn ret(&mut self, action: SeccompAction) {
        self.emit(libc::BPF_RET | libc::BPF_K, action.return_value());
    }

    fn load(&mut self, offset: u32) {
        self.emit(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset);
    }

    fn emit(&mut self, code: u32, k: u32) {
        self.lines
            .push(BpfLine::Instruction(instruction(code, 0, 0, k)));
    }

    /// The program. Panics when a label was never bound or is more than 255 instructions away: both
    /// are mistakes of [`super::filter`], which a test builds in every variant.
    pub(super) fn assemble(self) -> Vec<sock_filter> {
        let Self {
            lines,
            label_positions: places,
        } = self;
        let distance = |from: usize, label: BpfLabel| {
            let to = places[label.0].expect("every label is placed");
            u8::try_from(to - from - 1).expect("jumps are short")
        };
        let write = |(at, line): (usize, &BpfLine)| match *line {
            BpfLine::Instruction(instruction) => instruction,
            BpfLine::Jump { test, yes, no } => {
                let (code, k) = test.opcode();
                let (if_true, if_false) = (distance(at, yes), distance(at, no));
                instruction(libc::BPF_JMP | code | libc::BPF_K, if_true, if_false, k)
            }
        };
        lines.iter().enumerate().map(write).collect()
    }
}

impl JumpTest {
    const fn opcode(self) -> (u32, u32) {
        match self {
            Self::Equals(k) => (libc::BPF_JEQ, k),
            Self::AtLeast(k) => (libc::BPF_JGE, k),
            Self::HasAny(k) => (libc::BPF_JSET, k),
        }
    }
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    let code = u16::try_from(code).expect("operation codes have 16 bits");
    sock_filter { code, jt, jf, k }
}
