//! The contents of an mbarrier object, and its phases (PTX ISA, "Phase of the mbarrier object", "Contents of the mbarrier object").
//!
//! The 64 bits of the object in shared memory are a copy of this state. A difference shows that a store has overwritten the object:
//!
//! | bits | contents |
//! |---|---|
//! | 0..20 | expected arrival count of a phase |
//! | 20..40 | pending arrival count of the current phase |
//! | 40..61 | pending transaction bytes of the current phase, signed |
//! | 61 | parity of the phase |
//! | 62..64 | both 1 |
//!
//! A state returned by `arrive` has the pending count in bits 0..20, the number of the phase in bits 20..60, and a magic number above.

use crate::instructions::async_access::Held;
use crate::memory::{Moment, Stamp};
use std::collections::HashMap;

/// The maximum number of arrivals or bytes of a phase.
pub(super) const MAX_COUNT: u32 = (1 << 20) - 1;

const STATE_MARK: u64 = 0xa << 60;

/// The mbarrier objects of a CTA, indexed by shared offset.
pub(crate) type Mbarriers = HashMap<u32, Object>;

/// An mbarrier object.
#[derive(Debug)]
pub(crate) struct Object {
    expected: u32,
    pending: u32,
    transactions: i64,
    phase: u64,
    /// The joined releases of the arrivals in this phase.
    arrived: Stamp,
    /// The joined releases of the arrivals in the last complete phase.
    completed: Stamp,
    /// Shared bytes written by copies that this phase counts.
    landed: Vec<Held>,
    /// The access that initialised the object, and its source line.
    pub(super) initialised: (Moment, u32),
    /// Whether a thread has waited for this phase without success.
    pub(super) is_waited_for: bool,
}

/// The result of checking a phase for completion.
#[derive(PartialEq, Debug)]
pub(super) enum Phase {
    /// The phase is incomplete.
    Goes,
    /// The phase is complete. Threads that wait for it may now access these bytes.
    Completes(Vec<Held>),
}

impl Object {
    /// A new object with this expected arrival count.
    pub(super) fn new(count: u32, initialised: (Moment, u32)) -> Result<Object, String> {
        if !(1..=MAX_COUNT).contains(&count) {
            return Err(format!("its count must be 1 to {MAX_COUNT}, not {count}"));
        }
        let nothing = Stamp::default;
        Ok(Object {
            expected: count,
            pending: count,
            transactions: 0,
            phase: 0,
            arrived: nothing(),
            completed: nothing(),
            landed: Vec::new(),
            initialised,
            is_waited_for: false,
        })
    }

    /// The bits of the object in shared memory.
    pub(super) fn bits(&self) -> u64 {
        let transactions = self.transactions as u64 & 0x1f_ffff;
        u64::from(self.expected) | u64::from(self.pending) << 20 | transactions << 40 | (self.phase & 1) << 61 | 3 << 62
    }

    /// The state that `arrive` returns: the state before the arrival.
    pub(super) fn state(&self) -> u64 {
        u64::from(self.pending) | (self.phase & 0xff_ffff_ffff) << 20 | STATE_MARK
    }

    /// Records arrivals, with the release of the arriving thread.
    pub(super) fn arrive(&mut self, count: u32, stamp: Option<&Stamp>) -> Result<(), String> {
        if !(1..=MAX_COUNT).contains(&count) {
            return Err(format!("the count of an arrival must be 1 to {MAX_COUNT}, not {count}"));
        }
        let Some(pending) = self.pending.checked_sub(count) else {
            let bytes = if self.transactions == 0 { String::new() } else { format!(" and {} bytes", self.transactions) };
            return Err(format!("{count} arrivals, and its phase {} waits for {} more{bytes}", self.phase, self.pending));
        };
        self.pending = pending;
        if let Some(stamp) = stamp {
            self.arrived.join(stamp);
        }
        Ok(())
    }

    /// Decrements the expected arrival count of later phases.
    pub(super) fn drop_expected(&mut self, count: u32) -> Result<(), String> {
        let expected = self.expected.checked_sub(count);
        self.expected = expected.ok_or_else(|| format!("{count} arrivals are dropped of {} that it expects", self.expected))?;
        Ok(())
    }

    /// Increments the pending count of this phase, as `cp.async.mbarrier.arrive` without `.noinc` does.
    pub(super) fn add_pending(&mut self) -> Result<(), String> {
        if self.pending == MAX_COUNT {
            return Err(format!("its phase waits for more than {MAX_COUNT} arrivals"));
        }
        self.pending += 1;
        Ok(())
    }

    /// Changes the pending transaction bytes of the phase.
    pub(super) fn change_transactions(&mut self, bytes: i64) -> Result<(), String> {
        let transactions = self.transactions + bytes;
        if transactions.unsigned_abs() > u64::from(MAX_COUNT) {
            return Err(format!("its phase would wait for {transactions} bytes, and can for {MAX_COUNT} at most"));
        }
        self.transactions = transactions;
        Ok(())
    }

    /// Records bytes that a copy of this phase has written.
    pub(super) fn land(&mut self, bytes: &[Held], stamp: &Stamp) {
        self.landed.extend_from_slice(bytes);
        self.arrived.join(stamp);
    }

    /// Starts the next phase if no arrivals and no bytes are pending.
    pub(super) fn advance(&mut self) -> Phase {
        if self.pending > 0 || self.transactions != 0 {
            return Phase::Goes;
        }
        self.phase += 1;
        self.is_waited_for = false;
        self.pending = self.expected;
        self.completed = std::mem::take(&mut self.arrived);
        Phase::Completes(std::mem::take(&mut self.landed))
    }

    /// Whether this number of arrivals would complete the phase.
    pub(super) fn would_complete(&self, count: u32) -> bool {
        self.pending == count && self.transactions == 0
    }

    /// Whether the phase of this parity is complete; the parity refers to the current phase or its predecessor.
    pub(super) fn is_complete_parity(&self, parity: u64) -> bool {
        self.phase & 1 != parity & 1
    }

    /// Whether the phase in which this state was returned is complete.
    pub(super) fn is_complete_state(&self, state: u64) -> Result<bool, String> {
        if state >> 60 != STATE_MARK >> 60 {
            return Err(format!("{state:#x} is no state of an mbarrier"));
        }
        let phase = state >> 20 & 0xff_ffff_ffff;
        match (self.phase & 0xff_ffff_ffff).wrapping_sub(phase) {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(format!(
                "the state is of phase {phase}, and only the current phase {} and the one before it can be waited for",
                self.phase
            )),
        }
    }

    /// The release that a wait for the last phase acquires.
    pub(super) fn completed(&self) -> &Stamp {
        &self.completed
    }

    /// A description of the pending arrivals and bytes.
    pub(crate) fn describe(&self) -> String {
        format!("phase {} waits for {} of {} arrivals and {} bytes", self.phase, self.pending, self.expected, self.transactions)
    }
}

/// The pending count in a state.
pub(super) fn pending_count(state: u64) -> Result<u64, String> {
    if state >> 60 == STATE_MARK >> 60 { Ok(state & u64::from(MAX_COUNT)) } else { Err(format!("{state:#x} is no state of an mbarrier")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Issuer;

    fn object(count: u32) -> Result<Object, String> {
        Object::new(count, (Moment::Tracked { number: 0, warp: 0, lane: 0 }, 0))
    }

    #[test]
    fn a_phase_ends_with_its_last_arrival() {
        let mut object = object(2).unwrap();
        let state = object.state();
        assert_eq!(pending_count(state), Ok(2));
        assert!(object.is_complete_parity(1) && !object.is_complete_parity(0));
        object.arrive(1, None).unwrap();
        assert_eq!(object.advance(), Phase::Goes);
        assert_eq!((pending_count(object.state()), object.is_complete_state(state)), (Ok(1), Ok(false)));
        object.arrive(1, None).unwrap();
        assert_eq!(object.advance(), Phase::Completes(Vec::new()));
        assert_eq!((pending_count(object.state()), object.is_complete_state(state)), (Ok(2), Ok(true)));
        assert!(object.is_complete_parity(0) && !object.is_complete_parity(1));
        object.arrive(2, None).unwrap();
        object.advance();
        let message = "the state is of phase 0, and only the current phase 2 and the one before it can be waited for";
        assert_eq!(object.is_complete_state(state), Err(message.to_owned()));
    }

    #[test]
    fn bytes_keep_a_phase_open_and_may_come_first() {
        let mut object = object(1).unwrap();
        object.change_transactions(-16).unwrap();
        let owner = Issuer { rank: 0, warp: 0, lane: 0, step: 0 };
        let held = Held { range: 64..80, owner };
        object.land(std::slice::from_ref(&held), &Stamp::default());
        assert_eq!(object.advance(), Phase::Goes);
        object.change_transactions(32).unwrap();
        object.arrive(1, None).unwrap();
        assert_eq!(object.advance(), Phase::Goes);
        assert_eq!(object.arrive(1, None), Err("1 arrivals, and its phase 0 waits for 0 more and 16 bytes".to_owned()));
        object.change_transactions(-16).unwrap();
        assert_eq!(object.advance(), Phase::Completes(vec![held]));
    }

    #[test]
    fn dropped_arrivals_are_not_expected_in_the_next_phase() {
        let mut object = object(3).unwrap();
        object.arrive(2, None).unwrap();
        object.drop_expected(1).unwrap();
        object.arrive(1, None).unwrap();
        assert_ne!(object.advance(), Phase::Goes);
        assert_eq!(pending_count(object.state()), Ok(2));
        assert_eq!(object.drop_expected(3), Err("3 arrivals are dropped of 2 that it expects".to_owned()));
    }

    #[test]
    fn counts_have_limits() {
        assert!(object(0).is_err() && object(1 << 20).is_err());
        let mut object = object(1).unwrap();
        assert!(object.arrive(0, None).is_err() && object.arrive(1 << 20, None).is_err());
        object.change_transactions(i64::from(MAX_COUNT)).unwrap();
        assert_eq!(object.change_transactions(1), Err("its phase would wait for 1048576 bytes, and can for 1048575 at most".to_owned()));
    }

    #[test]
    fn objects_with_different_counts_have_different_bits() {
        let mut object = object(5).unwrap();
        assert_eq!(object.bits(), 0xc000_0000_0050_0005);
        object.change_transactions(-1).unwrap();
        assert_eq!(object.bits(), 0xdfff_ff00_0050_0005);
    }
}
