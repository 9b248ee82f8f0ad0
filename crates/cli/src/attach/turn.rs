//! Whether what is typed here goes to the session: only the answer to a wish to type decides,
//! and keys wait for it. Pure.

/// Keys kept until it is known whether they may be typed.
pub(super) const HELD_BYTES: usize = 16 * 1024;

/// Whose turn it is to type.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// Whether it is ours.
    yours: bool,
    /// Whether it should be.
    wanted: bool,
    /// Wishes to type that are not answered yet.
    asked: usize,
    /// Keys that wait.
    held: Vec<u8>,
}

/// What becomes of keys.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// To be sent.
    Send(Vec<u8>),
    /// They wait, all but so many that there is no room for.
    Held { left_out: usize },
    /// We only watch.
    Watching,
}

/// What somebody's having the lease means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Leased {
    /// It is our turn; these keys waited for it.
    Ours(Vec<u8>),
    /// Our wish is still to be answered.
    Unanswered,
    /// It is not our turn.
    Theirs,
}

impl Turn {
    /// Of somebody who wants to type, or does not.
    pub(super) fn new(wanted: bool) -> Self {
        Self {
            wanted,
            ..Self::default()
        }
    }

    pub(super) const fn is_ours(&self) -> bool {
        self.yours
    }

    pub(super) const fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Whether keys wait for an answer that is on its way.
    pub(super) const fn is_awaited(&self) -> bool {
        self.asked > 0 && !self.held.is_empty()
    }

    /// We asked for it.
    pub(super) const fn ask(&mut self) {
        self.wanted = true;
        self.asked += 1;
    }

    /// We do not want it any more.
    pub(super) const fn give_up(&mut self) {
        self.wanted = false;
    }

    /// The connection broke: nothing is answered any more, and what waits goes on waiting.
    pub(super) const fn broken(&mut self) {
        (self.yours, self.asked) = (false, 0);
    }

    /// Something was typed.
    pub(super) fn type_in(&mut self, keys: Vec<u8>) -> Typed {
        if self.asked > 0 || (self.wanted && !self.yours) {
            let left_out = self.hold(&keys);
            Typed::Held { left_out }
        } else if self.yours {
            Typed::Send(keys)
        } else {
            Typed::Watching
        }
    }

    /// Keys for later; how many there was no room for.
    pub(super) fn hold(&mut self, keys: &[u8]) -> usize {
        let room = HELD_BYTES.saturating_sub(self.held.len());
        let kept = keys.len().min(room);
        self.held.extend_from_slice(&keys[..kept]);
        keys.len() - kept
    }

    /// Keys that waited will never be sent; how many.
    pub(super) fn forget(&mut self) -> usize {
        std::mem::take(&mut self.held).len()
    }

    /// The lease has a holder, or none. Ours it is only as an answer.
    pub(super) fn leased(&mut self, yours: bool) -> Leased {
        self.yours = yours;
        if yours {
            self.asked = self.asked.saturating_sub(1);
        }
        if self.asked > 0 {
            return Leased::Unanswered;
        }
        if !yours {
            self.wanted = false;
            return Leased::Theirs;
        }
        self.wanted = true;
        Leased::Ours(std::mem::take(&mut self.held))
    }

    /// Our wish was refused; how many keys that waited for it will never be sent.
    pub(super) fn refused(&mut self) -> usize {
        self.asked = self.asked.saturating_sub(1);
        if self.asked > 0 {
            return 0;
        }
        self.wanted = self.yours;
        self.forget()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: Typed = Typed::Held { left_out: 0 };

    fn keys(text: &str) -> Vec<u8> {
        text.as_bytes().to_vec()
    }

    #[test]
    fn only_the_answer_decides() {
        let mut turn = Turn::new(false);
        assert_eq!(turn.type_in(keys("x")), Typed::Watching);
        turn.ask();
        assert_eq!(turn.type_in(keys("a")), HELD);
        // Others take it and let it go meanwhile.
        assert_eq!(turn.leased(false), Leased::Unanswered);
        assert_eq!(turn.type_in(keys("b")), HELD);
        assert_eq!(turn.leased(false), Leased::Unanswered);
        assert_eq!(turn.type_in(keys("c")), HELD);
        assert!(turn.is_awaited());
        assert_eq!(turn.leased(true), Leased::Ours(keys("abc")));
        assert_eq!(turn.type_in(keys("d")), Typed::Send(keys("d")));
        assert_eq!(turn.leased(false), Leased::Theirs);
        assert_eq!(turn.type_in(keys("e")), Typed::Watching);
    }

    #[test]
    fn the_last_of_several_answers_decides() {
        let mut turn = Turn::new(true);
        turn.ask();
        assert_eq!(turn.type_in(keys("a")), HELD);
        // Handed back and asked for again before the first answer came.
        turn.give_up();
        turn.ask();
        assert_eq!(turn.leased(true), Leased::Unanswered);
        assert_eq!(turn.type_in(keys("b")), HELD);
        assert_eq!(turn.leased(false), Leased::Unanswered);
        assert_eq!(turn.leased(true), Leased::Ours(keys("ab")));
        turn.ask();
        turn.ask();
        assert_eq!(turn.type_in(keys("cd")), HELD);
        assert_eq!(turn.refused(), 0);
        assert_eq!(turn.leased(true), Leased::Ours(keys("cd")));
    }

    #[test]
    fn what_is_refused_is_counted() {
        let mut turn = Turn::new(false);
        turn.ask();
        assert_eq!(turn.type_in(keys("abc")), HELD);
        assert_eq!(turn.refused(), 3);
        assert_eq!(turn.type_in(keys("d")), Typed::Watching);
        turn.ask();
        assert_eq!(turn.type_in(vec![b'x'; HELD_BYTES]), HELD);
        assert_eq!(turn.type_in(keys("yz")), Typed::Held { left_out: 2 });
        assert_eq!(turn.refused(), HELD_BYTES);
    }

    #[test]
    fn keys_wait_for_the_next_connection() {
        let mut turn = Turn::new(true);
        turn.ask();
        assert_eq!(turn.leased(true), Leased::Ours(Vec::new()));
        assert_eq!(turn.hold(b"not sent "), 0);
        turn.broken();
        assert_eq!(turn.type_in(keys("later")), HELD);
        assert!(!turn.is_awaited());
        turn.ask();
        assert_eq!(turn.leased(true), Leased::Ours(keys("not sent later")));
    }
}
