//! Unknown values: values read from uninitialised registers, shared memory or local memory, or from a lane that does not execute a shuffle.
//!
//! An unknown value is not a mistake; a dependence on the value is. Compilers hoist loads and computations that only one side of a branch
//! needs. Libraries read beyond their data and discard the result. Therefore instructions that compute each lane by itself, and `shfl`,
//! propagate unknown values. All other uses are faults: memory, addresses, branches and all other instructions. The fault names the
//! instruction that read the value, because the mistake is there.

use crate::fault::{FaultKind, Trap};
use crate::instructions::{Register, Value};
use crate::lanes::{Lanes, Row};
use crate::machine::{Cx, Warp};

/// The origin of an unknown value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Unknown {
    kind: FaultKind,
    /// The step that read the value.
    step: u32,
}

/// The lanes that read an unknown value.
pub(crate) type Unknowns = Vec<(usize, Unknown)>;

impl Unknown {
    /// The fault of a lane that depends on the value.
    pub(crate) fn trap(&self, lane: usize) -> Trap {
        Trap::new(lane, self.kind.clone()).at(self.step)
    }
}

impl Warp {
    /// The origin of the unknown value of a register that is not defined in a lane; `None` if the register was never written.
    pub(crate) fn unknown(&self, register: Register, lane: usize) -> Option<&Unknown> {
        self.unknown.get(&(register, lane))
    }
}

impl Cx<'_> {
    /// An unknown value that this instruction reads, with the fault that a dependence on it causes.
    pub(crate) fn unknown(&self, kind: FaultKind) -> Unknown {
        Unknown { kind, step: self.step }
    }

    /// Reads an operand. Lanes in which the value is unknown are added to `unknown`; their bits are arbitrary.
    pub(crate) fn read_through(&self, lanes: Lanes, value: Value, unknown: &mut Unknowns) -> Result<Row, Trap> {
        if let Some(register) = value.register() {
            self.check_pending(lanes, register)?;
            let undefined = lanes.without(self.warp.defined[register.0 as usize]);
            unknown.extend(undefined.into_iter().map(|lane| (lane, self.undefined(register, lane))));
        }
        Ok(self.bits(value))
    }

    /// Checks that a register is defined in these lanes, because the instruction depends on its value.
    pub(crate) fn check_defined(&self, lanes: Lanes, register: Register) -> Result<(), Trap> {
        self.check_pending(lanes, register)?;
        let undefined = lanes.without(self.warp.defined[register.0 as usize]);
        undefined.lowest().map_or(Ok(()), |lane| Err(self.undefined(register, lane).trap(lane)))
    }

    /// Whether a lane knows the value of an operand.
    pub(crate) fn knows(&self, lane: usize, value: Value) -> bool {
        value.register().is_none_or(|register| self.warp.defined[register.0 as usize].has(lane))
    }

    /// Marks the register as unknown in these lanes. To be called after a write.
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
