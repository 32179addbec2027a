//! The decoder's view of an instruction: takes modifiers and operands one after the other.

use std::cell::RefCell;

use crate::instructions::Uses;
use crate::program::{Named, Scope};
use crate::ptx::{AddressBase, Instruction as Written, Operand, Space, Type};

/// The reason why an instruction cannot be decoded, in PTX terms.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Unsupported(pub(crate) String);

impl Unsupported {
    pub(crate) fn new(reason: impl Into<String>) -> Unsupported {
        Unsupported(reason.into())
    }
}

/// A register, by its index in the register file of a thread. A `.b128` register uses this index for its low half and the next one for its
/// high half.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Register(pub(crate) u32);

impl Register {
    /// The high half of a `.b128` register.
    pub(crate) fn high(self) -> Register {
        Register(self.0 + 1)
    }
}

/// A source operand with a value in each lane. A predicate is 0 or 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    /// A register.
    Register(Register),
    /// `!%p`
    Not(Register),
    /// The same bits in each lane: a constant, or the address of a variable.
    Bits(u64),
    /// A special register.
    Special(Special),
}

impl Value {
    /// The register of the operand, if it is one.
    pub(crate) fn register(self) -> Option<Register> {
        match self {
            Value::Register(register) | Value::Not(register) => Some(register),
            Value::Bits(_) | Value::Special(_) => None,
        }
    }
}

/// The special registers; the axes are 0 to 2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Special {
    Tid(usize),
    Ntid(usize),
    Ctaid(usize),
    Nctaid(usize),
    LaneId,
    WarpId,
    NumWarps,
    SmId,
    NumSms,
    GridId,
    LaneMaskEq,
    LaneMaskLt,
    LaneMaskLe,
    LaneMaskGt,
    LaneMaskGe,
    Clock,
    Clock64,
    GlobalTimer,
    DynamicSharedBytes,
    TotalSharedBytes,
    IsExplicitCluster,
    ClusterId(usize),
    NumClusters(usize),
    ClusterCtaId(usize),
    ClusterNumCtas(usize),
    ClusterCtaRank,
    ClusterNumCtaRank,
}

impl Special {
    /// The special register with this name, such as `%tid.x`.
    pub(crate) fn parse(name: &str) -> Option<Special> {
        if let Some((base, axis)) = name.split_once('.') {
            let axis = ["x", "y", "z"].iter().position(|&known| known == axis)?;
            return Some(match base {
                "%tid" => Special::Tid(axis),
                "%ntid" => Special::Ntid(axis),
                "%ctaid" => Special::Ctaid(axis),
                "%nctaid" => Special::Nctaid(axis),
                "%clusterid" => Special::ClusterId(axis),
                "%nclusterid" => Special::NumClusters(axis),
                "%cluster_ctaid" => Special::ClusterCtaId(axis),
                "%cluster_nctaid" => Special::ClusterNumCtas(axis),
                _ => return None,
            });
        }
        Some(match name {
            "%laneid" => Special::LaneId,
            "%warpid" => Special::WarpId,
            "%nwarpid" => Special::NumWarps,
            "%smid" => Special::SmId,
            "%nsmid" => Special::NumSms,
            "%gridid" => Special::GridId,
            "%lanemask_eq" => Special::LaneMaskEq,
            "%lanemask_lt" => Special::LaneMaskLt,
            "%lanemask_le" => Special::LaneMaskLe,
            "%lanemask_gt" => Special::LaneMaskGt,
            "%lanemask_ge" => Special::LaneMaskGe,
            "%clock" | "%clock_hi" => Special::Clock,
            "%clock64" => Special::Clock64,
            "%globaltimer" | "%globaltimer_lo" | "%globaltimer_hi" => Special::GlobalTimer,
            "%dynamic_smem_size" => Special::DynamicSharedBytes,
            "%total_smem_size" => Special::TotalSharedBytes,
            "%is_explicit_cluster" => Special::IsExplicitCluster,
            "%cluster_ctarank" => Special::ClusterCtaRank,
            "%cluster_nctarank" => Special::ClusterNumCtaRank,
            _ => return None,
        })
    }
}

/// An address operand: `[base+offset]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    /// The state space of the instruction; [`Space::Generic`] if it has none.
    pub(crate) space: Space,
    /// The address of a variable, a constant, or a register of 32 or 64 bits.
    pub(crate) base: Value,
    /// The offset in bytes; the sum wraps at the register's width.
    pub(crate) offset: i64,
    /// Whether the base is a 32-bit register.
    pub(crate) is_32_bit: bool,
}

/// An instruction during decoding.
pub(crate) struct Form<'a> {
    written: &'a Written,
    scope: &'a Scope,
    modifiers: Vec<&'a str>,
    operands: std::slice::Iter<'a, Operand>,
    uses: RefCell<Uses>,
}

impl<'a> Form<'a> {
    pub(crate) fn new(written: &'a Written, scope: &'a Scope) -> Form<'a> {
        let modifiers = written.modifiers.iter().map(String::as_str).collect();
        Form { written, scope, modifiers, operands: written.operands.iter(), uses: RefCell::default() }
    }

    /// The registers of the operands taken so far.
    pub(crate) fn into_uses(self) -> Uses {
        self.uses.into_inner()
    }

    /// The opcode, before the first dot.
    pub(crate) fn opcode(&self) -> &'a str {
        &self.written.opcode
    }

    /// Whether the instruction has one of these modifiers. Takes none.
    pub(crate) fn has(&self, names: &[&str]) -> bool {
        self.modifiers.iter().any(|modifier| names.contains(modifier))
    }

    /// Takes the modifier, if present.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let found = self.modifiers.iter().position(|&modifier| modifier == name);
        found.map(|index| self.modifiers.remove(index)).is_some()
    }

    /// Takes the first present modifier of these.
    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[(&str, T)]) -> Option<T> {
        choices.iter().find_map(|&(name, choice)| self.flag(name).then_some(choice))
    }

    /// The next modifier, without taking it.
    pub(crate) fn peek_modifier(&self) -> Option<&'a str> {
        self.modifiers.first().copied()
    }

    /// Takes the next modifier.
    pub(crate) fn next_modifier(&mut self) -> Option<&'a str> {
        (!self.modifiers.is_empty()).then(|| self.modifiers.remove(0))
    }

    /// Takes the first modifier that satisfies the test.
    pub(crate) fn modifier_where(&mut self, test: impl Fn(&str) -> bool) -> Option<&'a str> {
        let index = self.modifiers.iter().position(|modifier| test(modifier))?;
        Some(self.modifiers.remove(index))
    }

    /// Takes the first modifier that is a type; an error if there is none.
    pub(crate) fn ty(&mut self) -> Result<Type, Unsupported> {
        self.maybe_ty().ok_or_else(|| self.error("a type is missing"))
    }

    /// Takes the first modifier that is a type, if present.
    pub(crate) fn maybe_ty(&mut self) -> Option<Type> {
        let index = self.modifiers.iter().position(|modifier| Type::parse(modifier).is_some())?;
        Type::parse(self.modifiers.remove(index))
    }

    /// Takes the first state space; without one the address is generic.
    pub(crate) fn space(&mut self) -> Space {
        const SPACES: [(&str, Space); 9] = [
            ("global", Space::Global),
            ("shared::cluster", Space::SharedCluster),
            ("shared::cta", Space::Shared),
            ("shared", Space::Shared),
            ("local", Space::Local),
            ("param", Space::Param),
            ("param::entry", Space::Param),
            ("param::func", Space::Param),
            ("const", Space::Const),
        ];
        let known = |modifier: &str| SPACES.iter().find(|(name, _)| *name == modifier).map(|&(_, space)| space);
        self.modifier_where(|modifier| known(modifier).is_some()).and_then(known).unwrap_or(Space::Generic)
    }

    /// The number of operands left.
    pub(crate) fn operands_left(&self) -> usize {
        self.operands.len()
    }

    /// The next operand, without taking it.
    pub(crate) fn peek(&self) -> Option<&'a Operand> {
        self.operands.as_slice().first()
    }

    /// Takes the next operand.
    pub(crate) fn operand(&mut self) -> Result<&'a Operand, Unsupported> {
        self.operands.next().ok_or_else(|| self.error("an operand is missing"))
    }

    /// Takes a destination register of exactly the type's width; `None` for the sink `_`.
    pub(crate) fn destination(&mut self, ty: Type) -> Result<Option<Register>, Unsupported> {
        let operand = self.operand()?;
        self.as_destination(operand, ty, false)
    }

    /// Takes a destination register that may be wider than the type, as in `ld` and `cvt`.
    pub(crate) fn wider_destination(&mut self, ty: Type) -> Result<Option<Register>, Unsupported> {
        let operand = self.operand()?;
        self.as_destination(operand, ty, true)
    }

    /// Takes `p|q`, `p` or `_`: two destination registers of these types.
    pub(crate) fn destination_pair(&mut self, first: Type, second: Type) -> Result<[Option<Register>; 2], Unsupported> {
        match self.operand()? {
            Operand::Pair(p, q) => Ok([self.named_destination(p, first, false)?, self.named_destination(q, second, false)?]),
            operand => Ok([self.as_destination(operand, first, false)?, None]),
        }
    }

    /// Takes `{a, b, ..}` with `count` destination registers, or a single register if `count` is 1. They may be wider than the type.
    pub(crate) fn destinations(&mut self, count: usize, ty: Type) -> Result<Vec<Option<Register>>, Unsupported> {
        let parts = self.parts(count)?;
        parts.into_iter().map(|part| self.as_destination(part, ty, true)).collect()
    }

    /// Takes a source operand of exactly the type's width.
    pub(crate) fn source(&mut self, ty: Type) -> Result<Value, Unsupported> {
        let operand = self.operand()?;
        self.as_source(operand, ty, false)
    }

    /// Takes a source operand whose register may be wider than the type, as in `st` and `cvt`. The instruction must ignore the upper bits.
    pub(crate) fn wider_source(&mut self, ty: Type) -> Result<Value, Unsupported> {
        let operand = self.operand()?;
        self.as_source(operand, ty, true)
    }

    /// Takes `{a, b, ..}` with `count` source operands, or a single operand if `count` is 1. Registers may be wider than the type.
    pub(crate) fn sources(&mut self, count: usize, ty: Type) -> Result<Vec<Value>, Unsupported> {
        let parts = self.parts(count)?;
        parts.into_iter().map(|part| self.as_source(part, ty, true)).collect()
    }

    /// Takes a constant integer.
    pub(crate) fn immediate(&mut self) -> Result<u64, Unsupported> {
        match self.operand()? {
            Operand::Int(bits) => Ok(*bits),
            _ => Err(self.error("a number is wanted")),
        }
    }

    /// Takes `[base+offset]` in this state space.
    pub(crate) fn address(&mut self, space: Space) -> Result<Address, Unsupported> {
        match self.operand()? {
            Operand::Address { base, offset, coordinates } if coordinates.is_empty() => self.as_address(base, *offset, space),
            _ => Err(self.error("an address `[..]` is wanted")),
        }
    }

    /// Takes `[base+offset, {x, y, ..}]`: an address, and coordinates of this type.
    pub(crate) fn address_with_coordinates(&mut self, space: Space, ty: Type) -> Result<(Address, Vec<Value>), Unsupported> {
        match self.operand()? {
            Operand::Address { base, offset, coordinates } => {
                let coordinates = coordinates.iter().map(|operand| self.as_source(operand, ty, false)).collect::<Result<_, _>>()?;
                Ok((self.as_address(base, *offset, space)?, coordinates))
            }
            _ => Err(self.error("an address `[..]` is wanted")),
        }
    }

    /// An error in this instruction.
    pub(crate) fn error(&self, reason: impl Into<String>) -> Unsupported {
        Unsupported::new(reason)
    }

    /// Fails if a modifier or an operand is left.
    pub(crate) fn finish(&self) -> Result<(), Unsupported> {
        if let Some(modifier) = self.modifiers.first() {
            return Err(self.error(format!("the simulator does not know `.{modifier}` here")));
        }
        if !self.operands.as_slice().is_empty() {
            return Err(self.error("too many operands"));
        }
        Ok(())
    }

    /// The parts of `{a, b}`, or a single operand.
    pub(crate) fn parts(&mut self, count: usize) -> Result<Vec<&'a Operand>, Unsupported> {
        let parts: Vec<&Operand> = match self.operand()? {
            Operand::Vector(parts) => parts.iter().collect(),
            single => vec![single],
        };
        if parts.len() != count {
            return Err(self.error(format!("{count} registers are wanted, not {}", parts.len())));
        }
        Ok(parts)
    }

    /// Converts an operand to a destination register.
    pub(crate) fn as_destination(&self, operand: &Operand, ty: Type, or_wider: bool) -> Result<Option<Register>, Unsupported> {
        match operand {
            Operand::Name(name) => self.named_destination(name, ty, or_wider),
            _ => Err(self.error("a register is wanted")),
        }
    }

    fn named_destination(&self, name: &str, ty: Type, or_wider: bool) -> Result<Option<Register>, Unsupported> {
        if name == "_" {
            return Ok(None);
        }
        match self.scope.lookup(name) {
            Some(Named::Register { register, ty: own }) => {
                self.check_width(name, own, ty, or_wider)?;
                self.uses.borrow_mut().write(register, own);
                Ok(Some(register))
            }
            Some(_) => Err(self.error(format!("`{name}` is no register that can be written"))),
            None => Err(self.error(format!("`{name}` is not declared"))),
        }
    }

    /// The declared type of an operand, if it is a register.
    pub(crate) fn register_type(&self, operand: &Operand) -> Option<Type> {
        let Operand::Name(name) = operand else { return None };
        match self.scope.lookup(name) {
            Some(Named::Register { ty, .. }) => Some(ty),
            _ => None,
        }
    }

    /// Converts an operand to a source value.
    pub(crate) fn as_source(&self, operand: &Operand, ty: Type, or_wider: bool) -> Result<Value, Unsupported> {
        let mask = if ty.bits() >= 64 { u64::MAX } else { (1 << ty.bits()) - 1 };
        match operand {
            Operand::Int(bits) if !ty.is_float() || matches!(ty, Type::F16x2 | Type::Bf16x2) => Ok(Value::Bits(bits & mask)),
            Operand::Int(bits) if *bits == 0 => Ok(Value::Bits(0)),
            Operand::F32(bits) if ty.bits() == 32 => Ok(Value::Bits(u64::from(*bits))),
            Operand::F64(bits) if ty.bits() == 64 => Ok(Value::Bits(*bits)),
            Operand::F64(bits) if ty == Type::F32 => Ok(Value::Bits(u64::from((f64::from_bits(*bits) as f32).to_bits()))),
            Operand::Name(name) => match self.scope.lookup(name) {
                Some(Named::Register { register, ty: own }) => {
                    self.check_width(name, own, ty, or_wider)?;
                    self.uses.borrow_mut().read(register, own);
                    Ok(Value::Register(register))
                }
                Some(Named::Variable { address, .. }) => Ok(Value::Bits(address)),
                Some(Named::Special(special)) => {
                    self.uses.borrow_mut().special(special);
                    Ok(Value::Special(special))
                }
                None => Err(self.error(format!("`{name}` is not declared"))),
            },
            Operand::Not(name) => match self.scope.lookup(name) {
                Some(Named::Register { register, ty: Type::Pred }) => {
                    self.uses.borrow_mut().read(register, Type::Pred);
                    Ok(Value::Not(register))
                }
                _ => Err(self.error(format!("`{name}` is no predicate"))),
            },
            Operand::Sum(name, offset) => match self.scope.lookup(name) {
                Some(Named::Variable { address, .. }) => Ok(Value::Bits(address.wrapping_add_signed(*offset))),
                _ => Err(self.error(format!("`{name}` is no variable"))),
            },
            _ => Err(self.error(format!("an operand of type `{ty}` is wanted"))),
        }
    }

    fn as_address(&self, base: &AddressBase, offset: i64, space: Space) -> Result<Address, Unsupported> {
        let (base, space, is_32_bit) = match base {
            AddressBase::Absolute(address) => (Value::Bits(*address), space, false),
            AddressBase::Name(name) => match self.scope.lookup(name) {
                Some(Named::Register { register, ty }) if matches!(ty.bits(), 32 | 64) => {
                    self.uses.borrow_mut().read(register, ty);
                    (Value::Register(register), space, ty.bits() == 32)
                }
                // Parameters of device functions and of calls are in the thread's local memory.
                Some(Named::Variable { address, space: own }) if space == Space::Param => (Value::Bits(address), own, false),
                Some(Named::Variable { address, .. }) => (Value::Bits(address), space, false),
                Some(_) => return Err(self.error(format!("`{name}` is no address"))),
                None => return Err(self.error(format!("`{name}` is not declared"))),
            },
        };
        Ok(Address { space, base, offset, is_32_bit })
    }

    fn check_width(&self, name: &str, own: Type, wanted: Type, or_wider: bool) -> Result<(), Unsupported> {
        let fits =
            if or_wider && wanted != Type::Pred && own != Type::Pred { own.bits() >= wanted.bits() } else { own.bits() == wanted.bits() };
        if fits { Ok(()) } else { Err(self.error(format!("`{name}` is a `{own}` register, and a `{wanted}` one is wanted"))) }
    }
}
