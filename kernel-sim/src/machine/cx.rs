//! What an instruction sees while it executes: registers of its lanes, memory, and the rest of its cluster.

use crate::counters::Counters;
use crate::fault::{FaultKind, Trap};
use crate::instructions::{Address, Register, Value};
use crate::lanes::{Lanes, Row, WARP};
use crate::machine::{Cluster, Cta, Grid, Issuer, Warp};
use crate::memory::Scope;
use crate::ptx::{SourceLine, Space};

/// What an instruction sees while it executes.
pub(crate) struct Cx<'a> {
    /// The lanes that execute.
    pub(crate) lanes: Lanes,
    pub(crate) warp: &'a mut Warp,
    pub(crate) cluster: &'a mut Cluster,
    /// Rank of the warp's CTA in its cluster: 0 without clusters.
    pub(crate) rank: usize,
    pub(crate) grid: &'a Grid,
    /// The instruction's place in the program.
    pub(crate) step: u32,
    /// The source line, for counters and races.
    pub(crate) line: SourceLine,
    /// Names of registers, for messages.
    pub(crate) names: &'a [String],
}

/// An access to memory: what is the same in all lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Access {
    pub(crate) space: Space,
    /// 1, 2, 4, 8 or 16 bytes for each lane.
    pub(crate) bytes: u32,
    /// What the address must be a multiple of: mostly `bytes`.
    pub(crate) alignment: u32,
    /// What a message calls it: `load`, `store`, `atomic`.
    pub(crate) name: &'static str,
    /// Bytes of an element: a vector access has several.
    pub(crate) element: u32,
    /// The scope of a strong access (`.volatile`, `.relaxed`, `.acquire`, `.release`, an atomic); none if it is weak.
    pub(crate) scope: Option<Scope>,
}

impl Access {
    /// A plain access, aligned to its size.
    pub(crate) fn plain(name: &'static str, space: Space, bytes: u32) -> Access {
        Access { space, bytes, alignment: bytes, name, element: bytes, scope: None }
    }
}

impl Cx<'_> {
    /// The CTA that executes.
    pub(crate) fn cta(&mut self) -> &mut Cta {
        &mut self.cluster.ctas[self.rank]
    }

    pub(crate) fn counters(&mut self) -> &mut Counters {
        &mut self.cluster.counters
    }

    /// Who a lane is, for an asynchronous operation.
    pub(crate) fn issuer(&self, lane: usize) -> Issuer {
        Issuer { rank: self.rank, warp: self.warp.index, lane, step: self.step }
    }

    /// Reads an operand. Lanes that do not execute have any bits.
    pub(crate) fn read(&self, value: Value) -> Result<Row, Trap> {
        self.read_lanes(self.lanes, value)
    }

    /// Reads an operand that only some of the executing lanes need. The others have any bits.
    pub(crate) fn read_lanes(&self, lanes: Lanes, value: Value) -> Result<Row, Trap> {
        if let Some(register) = value.register() {
            self.check_defined(lanes, register)?;
        }
        Ok(self.bits(value))
    }

    /// The bits of an operand, also where nobody knows them.
    pub(crate) fn bits(&self, value: Value) -> Row {
        match value {
            Value::Register(register) => self.warp.registers[register.0 as usize],
            Value::Not(register) => self.warp.registers[register.0 as usize].map(|bit| bit ^ 1),
            Value::Bits(bits) => [bits; WARP],
            Value::Special(special) => self.grid.special(special, self.cluster, self.rank, self.warp),
        }
    }

    /// Reads an operand whose value must be the same in all executing lanes; `what` names it in the message.
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

    /// Writes a register in the executing lanes. Bits above the register's width must be zero.
    pub(crate) fn write(&mut self, register: Option<Register>, row: &Row) {
        self.write_lanes(register, self.lanes, row);
    }

    /// Writes a register in some lanes.
    pub(crate) fn write_lanes(&mut self, register: Option<Register>, lanes: Lanes, row: &Row) {
        let Some(register) = register else { return };
        let place = register.0 as usize;
        let target = &mut self.warp.registers[place];
        if lanes == Lanes::ALL {
            *target = *row;
        } else {
            lanes.into_iter().for_each(|lane| target[lane] = row[lane]);
        }
        self.warp.defined[place] = self.warp.defined[place].or(lanes);
        self.warp.matrices.wrote(register);
    }

    /// The addresses of an operand, one for each lane, in the space that it names.
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

    /// An [`FaultKind::Illegal`] of that lane.
    pub(crate) fn illegal(&self, lane: usize, reason: impl Into<String>) -> Trap {
        Trap::new(lane, FaultKind::Illegal { reason: reason.into() })
    }

    /// What a message calls a register.
    pub(crate) fn register_name(&self, register: Register) -> String {
        self.names.get(register.0 as usize).cloned().unwrap_or_default()
    }
}
