//! The input gate: whether typed keys go to the session. Only the response to a lease request
//! decides, and keys wait for it. Pure.

/// The most bytes of keys that are buffered until it is known whether they may be sent.
pub(super) const BUFFER_BYTES: usize = 16 * 1024;

/// The state of the writer lease as this client knows it.
#[derive(Debug, Default)]
pub(super) struct InputGate {
    /// Whether this client holds the lease.
    holds_lease: bool,
    /// Whether this client wants the lease.
    wants_lease: bool,
    /// The number of lease requests without a response.
    pending_requests: usize,
    buffered: Vec<u8>,
}

/// What happens to keys.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputAction {
    /// They are to be sent.
    Send(Vec<u8>),
    /// They are buffered, except for `dropped` bytes that exceed the buffer.
    Buffered { dropped: usize },
    /// They are ignored: the client only watches.
    ReadOnly,
}

/// The consequence of a change of the lease.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LeaseChange {
    /// This client acquired it; these keys were buffered.
    Acquired(Vec<u8>),
    /// The request of this client has no response yet.
    Pending,
    /// This client does not hold it.
    Lost,
}

impl InputGate {
    /// A gate of a client that wants to type, or does not.
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

    /// Whether buffered keys wait for a response.
    pub(super) const fn has_pending_input(&self) -> bool {
        self.pending_requests > 0 && !self.buffered.is_empty()
    }

    /// Records a lease request.
    pub(super) const fn request_lease(&mut self) {
        self.wants_lease = true;
        self.pending_requests += 1;
    }

    /// Records that this client no longer wants the lease.
    pub(super) const fn release(&mut self) {
        self.wants_lease = false;
    }

    /// Records a broken connection: no response will come, and buffered keys stay buffered.
    pub(super) const fn disconnected(&mut self) {
        (self.holds_lease, self.pending_requests) = (false, 0);
    }

    /// Handles typed keys.
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

    /// Buffers keys; returns the number of bytes that exceed the buffer.
    pub(super) fn buffer(&mut self, keys: &[u8]) -> usize {
        let room = BUFFER_BYTES.saturating_sub(self.buffered.len());
        let accepted = keys.len().min(room);
        self.buffered.extend_from_slice(&keys[..accepted]);
        keys.len() - accepted
    }

    /// Discards buffered keys; returns their number.
    pub(super) fn discard(&mut self) -> usize {
        std::mem::take(&mut self.buffered).len()
    }

    /// Handles a change of the lease's holder. This client acquires it by a response only.
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

    /// Handles a refusal; returns the number of buffered keys that will not be sent.
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
        // Other clients acquire and release it meanwhile.
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
        // Released and requested again before the first response.
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
