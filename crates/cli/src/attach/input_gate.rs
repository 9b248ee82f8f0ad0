//! Whether what is typed here goes to the session: only the answer to a wish to type decides,
//! and keys wait for it. Pure.

/// Keys kept until it is known whether they may be typed.
pub(super) const BUFFER_BYTES: usize = 16 * 1024;

/// Whose turn it is to type.
#[derive(Debug, Default)]
pub(super) struct InputGate {
    /// Whether it is ours.
    holds_lease: bool,
    /// Whether it should be.
    wants_lease: bool,
    /// Wishes to type that are not answered yet.
    pending_requests: usize,
    /// Keys that wait.
    buffered: Vec<u8>,
}

/// What becomes of keys.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputAction {
    /// To be sent.
    Send(Vec<u8>),
    /// They wait, all but so many that there is no room for.
    Buffered { dropped: usize },
    /// We only watch.
    ReadOnly,
}

/// What somebody's having the lease means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LeaseChange {
    /// It is our turn; these keys waited for it.
    Acquired(Vec<u8>),
    /// Our wish is still to be answered.
    Pending,
    /// It is not our turn.
    Lost,
}

impl InputGate {
    /// Of somebody who wants to type, or does not.
    pub(super) fn new(wants_lease: bool) -> Self {
        Self {
            wants_lease,
            ..Self::default()
        }
    }

    pub(super) const fn holds_lease(&self) -> bool {
        self.holds_lease
    }

    pub(super) const fn wants_lease(&self) -> bool {
        self.wants_lease
    }

    /// Whether keys wait for an answer that is on its way.
    pub(super) const fn has_pending_input(&self) -> bool {
        self.pending_requests > 0 && !self.buffered.is_empty()
    }

    /// We asked for it.
    pub(super) const fn request_lease(&mut self) {
        self.wants_lease = true;
        self.pending_requests += 1;
    }

    /// We do not want it any more.
    pub(super) const fn release(&mut self) {
        self.wants_lease = false;
    }

    /// The connection broke: nothing is answered any more, and what waits goes on waiting.
    pub(super) const fn disconnected(&mut self) {
        (self.holds_lease, self.pending_requests) = (false, 0);
    }

    /// Something was typed.
    pub(super) fn input(&mut self, keys: Vec<u8>) -> InputAction {
        if self.pending_requests > 0 || (self.wants_lease && !self.holds_lease) {
            let left_out = self.buffer(&keys);
            InputAction::Buffered { dropped: left_out }
        } else if self.holds_lease {
            InputAction::Send(keys)
        } else {
            InputAction::ReadOnly
        }
    }

    /// Keys for later; how many there was no room for.
    pub(super) fn buffer(&mut self, keys: &[u8]) -> usize {
        let room = BUFFER_BYTES.saturating_sub(self.buffered.len());
        let accepted = keys.len().min(room);
        self.buffered.extend_from_slice(&keys[..accepted]);
        keys.len() - accepted
    }

    /// Keys that waited will never be sent; how many.
    pub(super) fn discard(&mut self) -> usize {
        std::mem::take(&mut self.buffered).len()
    }

    /// The lease has a holder, or none. Ours it is only as an answer.
    pub(super) fn lease_changed(&mut self, is_ours: bool) -> LeaseChange {
        self.holds_lease = is_ours;
        if is_ours {
            self.pending_requests = self.pending_requests.saturating_sub(1);
        }
        if self.pending_requests > 0 {
            return LeaseChange::Pending;
        }
        if !is_ours {
            self.wants_lease = false;
            return LeaseChange::Lost;
        }
        self.wants_lease = true;
        LeaseChange::Acquired(std::mem::take(&mut self.buffered))
    }

    /// Our wish was refused; how many keys that waited for it will never be sent.
    pub(super) fn lease_refused(&mut self) -> usize {
        self.pending_requests = self.pending_requests.saturating_sub(1);
        if self.pending_requests > 0 {
            return 0;
        }
        self.wants_lease = self.holds_lease;
        self.discard()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: InputAction = InputAction::Buffered { dropped: 0 };

    fn keys(text: &str) -> Vec<u8> {
        text.as_bytes().to_vec()
    }

    #[test]
    fn only_the_answer_decides() {
        let mut turn = InputGate::new(false);
        assert_eq!(turn.input(keys("x")), InputAction::ReadOnly);
        turn.request_lease();
        assert_eq!(turn.input(keys("a")), HELD);
        // Others take it and let it go meanwhile.
        assert_eq!(turn.lease_changed(false), LeaseChange::Pending);
        assert_eq!(turn.input(keys("b")), HELD);
        assert_eq!(turn.lease_changed(false), LeaseChange::Pending);
        assert_eq!(turn.input(keys("c")), HELD);
        assert!(turn.has_pending_input());
        assert_eq!(turn.lease_changed(true), LeaseChange::Acquired(keys("abc")));
        assert_eq!(turn.input(keys("d")), InputAction::Send(keys("d")));
        assert_eq!(turn.lease_changed(false), LeaseChange::Lost);
        assert_eq!(turn.input(keys("e")), InputAction::ReadOnly);
    }

    #[test]
    fn the_last_of_several_answers_decides() {
        let mut turn = InputGate::new(true);
        turn.request_lease();
        assert_eq!(turn.input(keys("a")), HELD);
        // Handed back and asked for again before the first answer came.
        turn.release();
        turn.request_lease();
        assert_eq!(turn.lease_changed(true), LeaseChange::Pending);
        assert_eq!(turn.input(keys("b")), HELD);
        assert_eq!(turn.lease_changed(false), LeaseChange::Pending);
        assert_eq!(turn.lease_changed(true), LeaseChange::Acquired(keys("ab")));
        turn.request_lease();
        turn.request_lease();
        assert_eq!(turn.input(keys("cd")), HELD);
        assert_eq!(turn.lease_refused(), 0);
        assert_eq!(turn.lease_changed(true), LeaseChange::Acquired(keys("cd")));
    }

    #[test]
    fn what_is_refused_is_counted() {
        let mut turn = InputGate::new(false);
        turn.request_lease();
        assert_eq!(turn.input(keys("abc")), HELD);
        assert_eq!(turn.lease_refused(), 3);
        assert_eq!(turn.input(keys("d")), InputAction::ReadOnly);
        turn.request_lease();
        assert_eq!(turn.input(vec![b'x'; BUFFER_BYTES]), HELD);
        assert_eq!(turn.input(keys("yz")), InputAction::Buffered { dropped: 2 });
        assert_eq!(turn.lease_refused(), BUFFER_BYTES);
    }

    #[test]
    fn keys_wait_for_the_next_connection() {
        let mut turn = InputGate::new(true);
        turn.request_lease();
        assert_eq!(turn.lease_changed(true), LeaseChange::Acquired(Vec::new()));
        assert_eq!(turn.buffer(b"not sent "), 0);
        turn.disconnected();
        assert_eq!(turn.input(keys("later")), HELD);
        assert!(!turn.has_pending_input());
        turn.request_lease();
        assert_eq!(
            turn.lease_changed(true),
            LeaseChange::Acquired(keys("not sent later"))
        );
    }
}
