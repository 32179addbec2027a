//! Values that nobody knows: read from registers, shared or local memory that nobody wrote, or from a lane that takes no part in a
//! shuffle.
//!
//! To have such a value is no mistake, to depend on it is. Compilers load and compute before a branch what only one side of it needs,
//! and libraries read beyond their data and drop what they found. So instructions that compute each lane by itself pass it on, as `shfl`
//! does; it is a fault where it comes to memory, an address, a branch or any other instruction. The fault names the place where
//! the value was read, as that is where the mistake is.

use crate::fault::{FaultKind, Trap};
use crate::instructions::{Register, Value};
use crate::lanes::{Lanes, Row};
use crate::machine::{Cx, Warp};

/// Where a value that nobody knows came from.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Unknown {
    kind: FaultKind,
    /// The step that read it.
    step: u32,
}

/// Lanes that read such a value.
pub(crate) type Unknowns = Vec<(usize, Unknown)>;

impl Unknown {
    /// The fault of a lane that depends on it.
    pub(crate) fn trap(&self, lane: usize) -> Trap {
        Trap::new(lane, self.kind.clone()).at(self.step)
    }
}

impl Warp {
    /// Where the value of a register came from that is not defined in a lane; none if nobody wrote the register.
    pub(crate) fn unknown(&self, register: Register, lane: usize) -> Option<&Unknown> {
        self.unknown.get(&(register, lane))
    }
}

impl Cx<'_> {
    /// A value that this instruction reads and nobody knows, because of that.
    pub(crate) fn unknown(&self, kind: FaultKind) -> Unknown {
        Unknown { kind, step: self.step }
    }

    /// Reads an operand. Lanes in which nobody knows its value are added to `unknown`, and have any bits.
    pub(crate) fn read_through(&self, lanes: Lanes, value: Value, unknown: &mut Unknowns) -> Result<Row, Trap> {
        if let Some(register) = value.register() {
            self.check_pending(lanes, register)?;
            let undefined = lanes.without(self.warp.defined[register.0 as usize]);
            unknown.extend(undefined.into_iter().map(|lane| (lane, self.undefined(register, lane))));
        }
        Ok(self.bits(value))
    }

    /// Checks that the lanes know a register's value: the instruction depends on it.
    pub(crate) fn check_defined(&self, lanes: Lanes, register: Register) -> Result<(), Trap> {
        self.check_pending(lanes, register)?;
        let undefined = lanes.without(self.warp.defined[register.0 as usize]);
        undefined.lowest().map_or(Ok(()), |lane| Err(self.undefined(register, lane).trap(lane)))
    }

    /// Does a lane know the value of an operand?
    pub(crate) fn knows(&self, lane: usize, value: Value) -> bool {
        value.register().is_none_or(|register| self.warp.defined[register.0 as usize].has(lane))
    }

    /// After a write: the value of these lanes is nobody's.
    pub(crate) fn write_unknown<'a>(&mut self, register: Option<Register>, unknown: impl IntoIterator<Item = &'a (usize, Unknown)>) {
        let Some(register) = register else { return };
        for (lane, unknown) in unknown {
            let defined = &mut self.warp.defined[register.0 as usize];
            *defined = defined.without(Lanes::of(*lane));
            self.warp.unknown.insert((register, *lane), unknown.clone());
        }
    }

    fn undefined(&self, register: Register, lane: usize) -> Unknown {
        let nobody_wrote = || self.unknown(FaultKind::UninitialisedRegister { register: self.register_name(register) });
        self.warp.unknown(register, lane).cloned().unwrap_or_else(nobody_wrote)
    }

    fn check_pending(&self, lanes: Lanes, register: Register) -> Result<(), Trap> {
        if self.warp.pending.is_empty() {
            return Ok(());
        }
        let pending = self.warp.pending.get(&register).map_or(Lanes::NONE, |pending| lanes.and(*pending));
        let fault = || FaultKind::PendingRegister { register: self.register_name(register) };
        pending.lowest().map_or(Ok(()), |lane| Err(Trap::new(lane, fault())))
    }
}
