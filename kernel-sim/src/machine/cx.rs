//! The context of an executing instruction: the registers of its lanes, memory, and the state of its cluster.

use crate::counters::Counters;
use crate::fault::{FaultKind, Trap};
use crate::instructions::{Address, Register, Value};
use crate::lanes::{Lanes, Row, WARP};
use crate::machine::{Cluster, Cta, Grid, Issuer, Warp};
use crate::memory::Scope;
use crate::ptx::{SourceLine, Space};

/// The context of an executing instruction.
pub(crate) struct Cx<'a> {
    /// The active lanes.
    pub(crate) lanes: Lanes,
    pub(crate) warp: &'a mut Warp,
    pub(crate) cluster: &'a mut Cluster,
    /// The rank of the warp's CTA in its cluster; 0 without clusters.
    pub(crate) rank: usize,
    pub(crate) grid: &'a Grid,
    /// The index of the instruction's step in the program.
    pub(crate) step: u32,
    /// The source line, for counters and the race check.
    pub(crate) line: SourceLine,
    /// The names of registers, for messages.
    pub(crate) names: &'a [String],
}

/// The properties of a memory access that are the same in all lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Access {
    pub(crate) space: Space,
    /// The size of each lane's access: 1, 2, 4, 8 or 16 bytes.
    pub(crate) bytes: u32,
    /// The required alignment of the address: mostly `bytes`.
    pub(crate) alignment: u32,
    /// The name of the access in messages: `load`, `store`, `atomic`.
    pub(crate) name: &'static str,
    /// The size of an element in bytes. A vector access has several elements.
    pub(crate) element: u32,
    /// The scope of a strong access (`.volatile`, `.relaxed`, `.acquire`, `.release`, an atomic); `None` if the access is weak.
    pub(crate) scope: Option<Scope>,
}

impl Access {
    /// A weak access, aligned to its size.
    pub(crate) fn plain(name: &'static str, space: Space, bytes: u32) -> Access {
        Access { space, bytes, alignment: bytes, name, element: bytes, scope: None }
    }
}

impl Cx<'_> {
    /// The CTA of the warp.
    pub(crate) fn cta(&mut self) -> &mut Cta {
        &mut self.cluster.ctas[self.rank]
    }

    pub(crate) fn counters(&mut self) -> &mut Counters {
        &mut self.cluster.counters
    }

    /// The issuer of an asynchronous operation of this lane.
    pub(crate) fn issuer(&self, lane: usize) -> Issuer {
        Issuer { rank: self.rank, warp: self.warp.index, lane, step: self.step }
    }

    /// Reads an operand. The values of inactive lanes are arbitrary.
    pub(crate) fn read(&self, value: Value) -> Result<Row, Trap> {
        self.read_lanes(self.lanes, value)
    }

    /// Reads an operand that only some of the active lanes need. The values of the other lanes are arbitrary.
    pub(crate) fn read_lanes(&self, lanes: Lanes, value: Value) -> Result<Row, Trap> {
        if let Some(register) = value.register() {
            self.check_defined(lanes, register)?;
        }
        Ok(self.bits(value))
    }

    /// The bits of an operand, without a check that they are defined.
    pub(crate) fn bits(&self, value: Value) -> Row {
        match value {
            Value::Register(register) => self.warp.registers[register.0 as usize],
            Value::Not(register) => self.warp.registers[register.0 as usize].map(|bit| bit ^ 1),
            Value::Bits(bits) => [bits; WARP],
            Value::Special(special) => self.grid.special(special, self.cluster, self.rank, self.warp),
        }
    }

    /// Reads an operand that must be the same in all active lanes; `what` names the operand in the message.
    pub(crate) fn read_uniform(&self, value: Value, what: &str) -> Result<u64, Trap> {
        let row = self.read(value)?;
        let first = self.lanes.lowest().unwrap_or(0);
        match self.lanes.into_iter().find(|&lane| row[lane] != row[first]) {
            None => Ok(row[first]),
            Some(lane) => {
                Err(self.illegal(lane, format!("{what} differs between the threads of the warp: {:#x} and {:#x}", row[first], row[lane])))
            }
        }
    }

    /// Writes a register in the active lanes. Bits above the register's width must be zero.
    pub(crate) fn write(&mut self, register: Option<Register>, row: &Row) {
        self.write_lanes(register, self.lanes, row);
    }

    /// Writes a register in the given lanes.
    pub(crate) fn write_lanes(&mut self, register: Option<Register>, lanes: Lanes, row: &Row) {
        let Some(register) = register else { return };
        let index = register.0 as usize;
        let target = &mut self.warp.registers[index];
        if lanes == Lanes::ALL {
            *target = *row;
        } else {
            lanes.into_iter().for_each(|lane| target[lane] = row[lane]);
        }
        self.warp.defined[index] = self.warp.defined[index].or(lanes);
        self.warp.matrices.wrote(register);
    }

    /// The address operand of each lane, in the operand's state space.
    pub(crate) fn addresses(&self, address: Address) -> Result<Row, Trap> {
        let mut row = self.read(address.base)?;
        for bits in &mut row {
            *bits = bits.wrapping_add_signed(address.offset);
            if address.is_32_bit {
                *bits &= 0xffff_ffff;
            }
        }
        Ok(row)
    }

    /// A [`FaultKind::Illegal`] of the given lane.
    pub(crate) fn illegal(&self, lane: usize, reason: impl Into<String>) -> Trap {
        Trap::new(lane, FaultKind::Illegal { reason: reason.into() })
    }

    /// The name of a register in messages.
    pub(crate) fn register_name(&self, register: Register) -> String {
        self.names.get(register.0 as usize).cloned().unwrap_or_default()
    }
}
