//! Memory accesses: translates loads, stores and atomics to instructions.
//!
//! If the elements of an access are contiguous, nothing is copied: the users of a loaded tile read the tensor, and the op that computes a
//! stored tile writes to the tensor. This is only known when the access runs, so a slot holds the address: a view.

use crate::code::{Access, Affine, Atomic, Condition, Instr, Linear, Mask, Offsets, Other, Slot, VIEW};
use crate::translate::{Storage, Symbol, Translator};
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{self, Handle, Inst, Op, Type, UNKNOWN_LENGTH, Value};
use kernel_lang::scalar::Scalar;

impl Translator<'_> {
    /// The words of the pointer are scalars: the address, then the length.
    pub(super) fn pointer(&mut self, address: Value, result: Value) {
        let (to, from) = (self.new_scalar(), self.storage(address).slot);
        self.front_constant(Scalar::from_bits(Dtype::I64, UNKNOWN_LENGTH as u64), 1);
        self.instrs.push(Instr::Copy { to, from, bytes: 8 });
        self.words[result] = to.0 as usize / 8;
    }

    pub(super) fn load(&mut self, inst: Inst) {
        let func = self.func;
        let Op::Load { base, offset, other, volatile, .. } = func.inst(inst).op else { return };
        let result = func.result(inst);
        let other = other.map_or(Other::Zero, |other| match self.storage(other) {
            Storage { slot, uniform } if uniform || func.ty(offset).is_scalar() => Other::Uniform(slot),
            Storage { slot, .. } => Other::Tile(slot),
        });
        let tile = self.allocate_for(result);
        let mut access = self.access(inst, tile, other);
        // A tile from memory that the kernel may store to is copied at once, because the load must not see later stores.
        let is_constant = matches!(func.ty(base), Type::Pointer { mutable: false, .. }) && !func.unchecked && !volatile;
        if is_constant && func.ty(base).dtype() != Dtype::Bool && may_view(&access) {
            let view = self.new_view(tile);
            access.view = Some(view);
            self.set_storage(result, view, false);
        }
        self.instrs.push(Instr::Load(Box::new(access)));
    }

    pub(super) fn store(&mut self, inst: Inst) {
        let Op::Store { value, .. } = self.func.inst(inst).op else { return };
        let slot = self.full(value);
        let mut access = self.access(inst, slot, Other::Zero);
        if self.uses[value.index()] == 1 && self.owns_slot(value) && may_view(&access) {
            self.aim(&mut access);
        }
        self.instrs.push(Instr::Store(Box::new(access)));
    }

    pub(super) fn atomic(&mut self, inst: Inst) {
        let func = self.func;
        let data = func.inst(inst);
        let Op::Atomic { values, op, sem, .. } = &data.op else { return };
        let operands: Vec<Slot> = values.iter().map(|value| self.full(*value)).collect();
        let result = data.results.first().map(|result| self.allocate_for(*result));
        let slot = result.or(operands.first().copied()).expect("what has no result has an operand");
        let access = self.access(inst, slot, Other::Zero);
        let operands = [0, 1].map(|index| operands.get(index).copied().unwrap_or(slot));
        self.instrs.push(Instr::Atomic(Box::new(Atomic { access, op: *op, sem: *sem, operands })));
    }

    fn access(&mut self, inst: Inst, data: Slot, other: Other) -> Access {
        let ir::Access { kind, base, offset, mask, .. } = self.func.inst(inst).op.access().expect("it is called for accesses");
        let loc = self.func.inst(inst).loc;
        let ty = self.func.ty(offset);
        let affine = self.forms.is_affine(self.func, offset);
        let offsets = match &self.symbols[offset] {
            Some(Symbol::Affine(form)) if affine => Offsets::Affine(form.clone()),
            _ if ty.is_scalar() => Offsets::Affine(Affine { base: self.linear(offset), coefficients: Vec::new() }),
            _ => Offsets::Tile(self.full(offset)),
        };
        let mask = match mask {
            None => Mask::Conditions(Vec::new()),
            Some(mask) if ty.is_scalar() => Mask::Conditions(vec![Condition::Uniform(self.storage(mask).slot)]),
            Some(mask) => match &self.symbols[mask] {
                Some(Symbol::Mask(conditions)) if affine => Mask::Conditions(conditions.clone()),
                _ if self.storage(mask).uniform => Mask::Conditions(vec![Condition::Uniform(self.storage(mask).slot)]),
                _ => Mask::Tile(self.full(mask)),
            },
        };
        let parameter = self.func.param_index(base).map_or("".into(), |param| self.func.params[param].name.clone());
        Access {
            kind,
            word: self.words[base],
            parameter,
            loc,
            extents: ty.extents(),
            dtype: self.func.ty(base).dtype(),
            offsets,
            mask,
            data,
            other,
            view: None,
            number: self.numbers[inst],
        }
    }

    /// A slot for an address, either of `tile` or of a tensor.
    fn new_view(&mut self, tile: Slot) -> Slot {
        let Slot(cell) = self.new_scalar();
        self.views.insert(cell | VIEW, tile);
        Slot(cell | VIEW)
    }

    /// Whether no other value shares the slot of this value.
    fn owns_slot(&self, value: Value) -> bool {
        let op = self.func.def_op(value);
        matches!(op, Some(Op::Unary { .. } | Op::Binary { .. } | Op::Compare { .. } | Op::Fma { .. } | Op::Select { .. } | Op::Cast { .. }))
    }

    /// If the last op computes the stored tile, lets this op write to the destination of the store. The op reads no tensor that the kernel
    /// may store to.
    fn aim(&mut self, access: &mut Access) {
        match self.instrs.last() {
            // If a jump led to the point after the op, the store would have to stay before that point.
            Some(Instr::Lanes { result, .. }) if *result == access.data && self.landed < self.instrs.len() => {}
            _ => return,
        }
        let view = self.new_view(access.data);
        access.view = Some(view);
        if let Some(Instr::Lanes { lanes, count, operands, strides, chunked, .. }) = self.instrs.pop() {
            self.instrs.push(Instr::Aim(Box::new(access.clone())));
            self.instrs.push(Instr::Lanes { lanes, count, result: view, operands, strides, chunked });
        }
    }
}

/// Whether the elements of an access may be contiguous at run time.
fn may_view(access: &Access) -> bool {
    let contiguous = matches!(&access.offsets, Offsets::Affine(affine) if affine.innermost() == Linear::Const(1));
    access.extents.len() == 1 && contiguous && matches!(access.mask, Mask::Conditions(_))
}
