//! Execution of the instructions.

use crate::code::{Affine, CHUNK, Code, Condition, Instr, Label, Linear, Slot, VIEW};
use crate::memory;
use crate::translate::grid_slot;
use crate::{Conflicts, Deadline, Violation};
use kernel_lang::dtype::Dtype;
use kernel_lang::location::{Loc, Name};

/// A run: the code, its memory, and the arguments of the call.
pub(super) struct Machine<'a> {
    pub(super) code: &'a Code,
    pub(super) scratch: *mut u8,
    pub(super) program: [u32; 3],
    pub(super) checked: bool,
    /// By access number: whether the access uses relaxed atomics. Empty if none does.
    pub(super) conflicts: &'a [bool],
}

/// Runs one program.
///
/// # Safety
/// `scratch` is memory that was prepared for the code and that nothing else uses; the rest is as in [`super::Program::run`].
#[expect(clippy::too_many_arguments, reason = "they are those of `Program::run_until`")]
pub(super) unsafe fn run(
    code: &Code,
    scratch: *mut u8,
    args: &[u64],
    grid: [u32; 3],
    program: [u32; 3],
    checked: bool,
    conflicts: &Conflicts,
    deadline: Option<&Deadline>,
) -> Result<(), Violation> {
    let machine = Machine { code, scratch, program, checked, conflicts: conflicts.as_slice() };
    // SAFETY: the front of the scratch has space for these words.
    unsafe {
        scratch.cast::<u64>().copy_from_nonoverlapping(args.as_ptr(), args.len());
        for axis in 0..3 {
            machine.at(grid_slot(args.len(), false, axis)).cast::<i64>().write(program[axis].into());
            machine.at(grid_slot(args.len(), true, axis)).cast::<i64>().write(grid[axis].into());
        }
        match deadline {
            None => machine.run(|| false),
            Some(deadline) => machine.run(|| deadline.has_passed()),
        }
    }
}

impl Machine<'_> {
    /// Runs the instructions until the kernel returns, or until `is_late` holds before one of them.
    ///
    /// # Safety
    /// See [`run`].
    unsafe fn run(&self, is_late: impl Fn() -> bool) -> Result<(), Violation> {
        let mut next: Label = 0;
        loop {
            if is_late() {
                return Ok(());
            }
            let instr = &self.code.instrs[next];
            next += 1;
            // SAFETY: the translator gave the instruction slots of the right sizes and loops of the right types.
            unsafe {
                match instr {
                    Instr::Lanes { lanes, count, result, operands, chunked: false, .. } => {
                        lanes(self.at(*result), operands.map(|slot| self.at(slot).cast_const()), *count);
                    }
                    Instr::Lanes { .. } => self.chunks(instr),
                    Instr::Fill { to, from, width, count } => memory::fill(self.at(*to), self.at(*from), *width, *count),
                    Instr::Copy { to, from, bytes } => self.at(*to).copy_from_nonoverlapping(self.at(*from), *bytes),
                    Instr::Rearrange { to, to_walk, from, from_walk, width, extents } => {
                        memory::rearrange((self.at(*to), to_walk), (self.at(*from), from_walk), *width, extents);
                    }
                    Instr::Index { to, affine, extents } => self.index(*to, affine, extents),
                    Instr::Conditions { to, conditions, extents } => self.conditions(*to, conditions, extents),
                    Instr::Load(access) => self.load(access)?,
                    Instr::Aim(access) => _ = self.aim(access),
                    Instr::Store(access) => self.store(access)?,
                    Instr::Assert { cond, message, loc } => {
                        if self.checked && self.at(*cond).read() == 0 {
                            return Err(self.failed(message, *loc));
                        }
                    }
                    Instr::Atomic(atomic) => self.atomic(atomic)?,
                    Instr::Lookup { to, from, lookup } => self.lookup(*to, *from, lookup),
                    Instr::Dot { to, a, b, extents, sums } => self.dot(*to, *a, *b, *extents, *sums),
                    Instr::Jump(to) => next = *to,
                    Instr::JumpUnless(condition, to) => {
                        if self.at(*condition).read() == 0 {
                            next = *to;
                        }
                    }
                    Instr::ForBegin { index, lower, upper, step, dtype, exit } => {
                        let first = self.int(*lower, *dtype);
                        if self.int(*step, *dtype) <= 0 || first >= self.int(*upper, *dtype) {
                            next = *exit;
                        }
                        self.at(*index).copy_from_nonoverlapping(self.at(*lower), dtype.bytes());
                    }
                    Instr::ForNext { index, upper, step, dtype, body } => {
                        let advanced = self.int(*index, *dtype) + self.int(*step, *dtype);
                        if advanced < self.int(*upper, *dtype) {
                            self.set_int(*index, *dtype, advanced);
                            next = *body;
                        }
                    }
                    Instr::Return => return Ok(()),
                }
            }
        }
    }

    #[cold]
    fn failed(&self, message: &Name, loc: Loc) -> Violation {
        Violation {
            assertion: Some(message.clone()),
            op: "device_assert!",
            file: self.code.file_names.get(usize::from(loc.file)).cloned().unwrap_or_else(|| "".into()),
            line: loc.line,
            column: loc.column,
            program_id: self.program,
            index: 0,
            length: 0,
            parameter: "".into(),
            lane: 0,
        }
    }

    /// The memory of a slot.
    pub(super) fn at(&self, slot: Slot) -> *mut u8 {
        // Inside the scratch: the translator counted its bytes.
        let at = self.scratch.wrapping_add((slot.0 & !VIEW) as usize);
        // SAFETY: the slot of a view holds an address once the access that sets it has run.
        if slot.0 & VIEW == 0 { at } else { unsafe { at.cast::<*mut u8>().read() } }
    }

    /// An elementwise op with an operand that is a uniform tile.
    ///
    /// # Safety
    /// `instr` is such an op.
    unsafe fn chunks(&self, instr: &Instr) {
        let Instr::Lanes { lanes, count, result, operands, strides, .. } = instr else { return };
        for lane in (0..*count).step_by(CHUNK) {
            let at = |slot: Slot, stride: u32| self.at(slot).wrapping_add(lane * stride as usize);
            let [a, b, c] = *operands;
            let operands = [at(a, strides[1]).cast_const(), at(b, strides[2]).cast_const(), at(c, strides[3]).cast_const()];
            // SAFETY: a uniform operand has a chunk of elements or the whole count, the others have all elements.
            unsafe { lanes(at(*result, strides[0]), operands, CHUNK.min(count - lane)) };
        }
    }

    /// An integer of this type.
    unsafe fn int(&self, slot: Slot, dtype: Dtype) -> i128 {
        let at = self.at(slot);
        // SAFETY: the slot holds a scalar of this type.
        unsafe {
            match dtype {
                Dtype::I8 => at.cast::<i8>().read().into(),
                Dtype::I16 => at.cast::<i16>().read().into(),
                Dtype::I32 => at.cast::<i32>().read().into(),
                Dtype::I64 => at.cast::<i64>().read().into(),
                Dtype::U16 => at.cast::<u16>().read().into(),
                Dtype::U32 => at.cast::<u32>().read().into(),
                Dtype::U64 => at.cast::<u64>().read().into(),
                _ => at.read().into(),
            }
        }
    }

    /// Writes an integer that fits its type.
    unsafe fn set_int(&self, slot: Slot, dtype: Dtype, value: i128) {
        // SAFETY: the slot holds a scalar of this type.
        memory::by_bytes!(dtype.bytes(), T => unsafe { self.at(slot).cast::<T>().write(value as T) });
    }

    /// An `i64` scalar.
    pub(super) unsafe fn linear(&self, linear: Linear) -> i64 {
        match linear {
            Linear::Const(value) => value,
            // SAFETY: the slot holds an `i64`.
            Linear::Slot(slot) => unsafe { self.at(slot).cast::<i64>().read() },
        }
    }

    /// The value of an affine tile at the first element of a row.
    pub(super) unsafe fn row_start(&self, affine: &Affine, extents: &[usize], row: usize) -> i64 {
        // SAFETY: as for `linear`, here and below.
        let mut start = unsafe { self.linear(affine.base) };
        let mut rest = row;
        for axis in (0..extents.len().saturating_sub(1)).rev() {
            let index = rest % extents[axis];
            rest /= extents[axis];
            // SAFETY: as above.
            let coefficient = unsafe { self.linear(affine.coefficients[axis]) };
            start = start.wrapping_add(coefficient.wrapping_mul(index as i64));
        }
        start
    }

    /// Writes the elements of an affine tile.
    unsafe fn index(&self, to: Slot, affine: &Affine, extents: &[usize]) {
        let lanes = extents.last().copied().unwrap_or(1);
        // SAFETY: the tile has these extents.
        unsafe {
            let step = self.linear(affine.innermost());
            for row in 0..rows(extents) {
                let start = self.row_start(affine, extents, row);
                let to = std::slice::from_raw_parts_mut(self.at(to).cast::<i64>().add(row * lanes), lanes);
                for (lane, to) in to.iter_mut().enumerate() {
                    *to = start.wrapping_add(step.wrapping_mul(lane as i64));
                }
            }
        }
    }

    /// Writes the elements of a mask.
    unsafe fn conditions(&self, to: Slot, conditions: &[Condition], extents: &[usize]) {
        let lanes = extents.last().copied().unwrap_or(1);
        for row in 0..rows(extents) {
            // SAFETY: the tile has these extents.
            let to = unsafe { std::slice::from_raw_parts_mut(self.at(to).add(row * lanes), lanes) };
            // SAFETY: the conditions are those of tiles with these extents.
            match unsafe { self.active(conditions, extents, row) } {
                Some(active) => {
                    to.fill(0);
                    to[active].fill(1);
                }
                None => to.iter_mut().enumerate().for_each(|(lane, to)| {
                    // SAFETY: as above.
                    *to = u8::from(unsafe { self.holds(conditions, extents, row, lane) });
                }),
            }
        }
    }
}

/// The number of rows of a tile.
pub(super) fn rows(extents: &[usize]) -> usize {
    extents.split_last().map_or(1, |(_, outer)| outer.iter().product())
}
