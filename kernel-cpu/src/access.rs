//! Loads and stores of the CPU executor.
//!
//! If the offsets are affine and the mask consists of conditions, the elements of a row that are inside the tensor form a range, and so do
//! the active ones. Their intersection is copied at once. Otherwise, or if an offset wraps around, elements are processed in blocks with
//! one bit each.

use std::ops::Range;

use crate::Violation;
use crate::code::{Access, Condition, Mask, Offsets, Other, Slot, VIEW};
use crate::execute::{Machine, rows};
use crate::memory;
use crate::shared::{self, Bits};
use kernel_lang::dtype::Dtype;

/// The number of elements in a block, for elements that do not form a range.
pub(super) const BLOCK: usize = 64;

/// The range of `i` in `0..count` for which `start + i * step` is in `0..length`; `None` if an offset wraps around.
fn inside(start: i64, step: i64, count: usize, length: u64) -> Option<Range<usize>> {
    let span = step.checked_mul(i64::try_from(count).ok()? - 1)?;
    start.checked_add(span)?;
    let (start, step, length) = (i128::from(start), i128::from(step), i128::from(length));
    let clamp = |lane: i128| lane.clamp(0, count as i128) as usize;
    // The first element whose offset is at least `bound`, for a positive step.
    let reaches = |start: i128, step: i128, bound: i128| clamp((bound - start + step - 1).div_euclid(step));
    let range = match step {
        1 => clamp(-start)..clamp(length - start),
        0 if (0..length).contains(&start) => 0..count,
        0 => 0..0,
        _ if step > 0 => reaches(start, step, 0)..reaches(start, step, length),
        // For decreasing offsets, count down from the end of the tensor.
        _ => reaches(-start, -step, 1 - length)..reaches(-start, -step, 1),
    };
    Some(range.start..range.end.max(range.start))
}

fn intersection(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

impl Machine<'_> {
    /// The elements of a row for which every condition holds; `None` if they may not form a range.
    ///
    /// # Safety
    /// The conditions are those of tiles with these extents, in slots of this machine.
    pub(super) unsafe fn active(&self, conditions: &[Condition], extents: &[usize], row: usize) -> Option<Range<usize>> {
        let count = extents.last().copied().unwrap_or(1);
        let mut active = 0..count;
        for condition in conditions {
            let range = match condition {
                // SAFETY: the slot holds a `bool`.
                Condition::Uniform(slot) => 0..if unsafe { self.at(*slot).read() } != 0 { count } else { 0 },
                Condition::Less { lhs, rhs, or_equal } => {
                    // SAFETY: the slots hold `i64`s.
                    let [(left, left_step), (right, right_step)] =
                        [lhs, rhs].map(|affine| unsafe { (self.row_start(affine, extents, row), self.linear(affine.innermost())) });
                    left.checked_add(left_step.checked_mul(count as i64 - 1)?)?;
                    right.checked_add(right_step.checked_mul(count as i64 - 1)?)?;
                    // left + left_step * i < right + right_step * i
                    let room = i128::from(right) - i128::from(left) + i128::from(*or_equal);
                    let clamp = |lane: i128| lane.clamp(0, count as i128) as usize;
                    match left_step.checked_sub(right_step)? {
                        1 => 0..clamp(room),
                        0 => 0..if room > 0 { count } else { 0 },
                        -1 => clamp(1 - room)..count,
                        _ => return None,
                    }
                }
            };
            active = intersection(&active, &range);
        }
        Some(active)
    }

    /// Whether every condition holds for this element of a row.
    ///
    /// # Safety
    /// See [`Machine::active`].
    pub(super) unsafe fn holds(&self, conditions: &[Condition], extents: &[usize], row: usize, lane: usize) -> bool {
        conditions.iter().all(|condition| match condition {
            // SAFETY: the slot holds a `bool`.
            Condition::Uniform(slot) => unsafe { self.at(*slot).read() != 0 },
            Condition::Less { lhs, rhs, or_equal } => {
                let [left, right] = [lhs, rhs].map(|affine| {
                    // SAFETY: the slots hold `i64`s.
                    let (start, step) = unsafe { (self.row_start(affine, extents, row), self.linear(affine.innermost())) };
                    start.wrapping_add(step.wrapping_mul(lane as i64))
                });
                left < right || *or_equal && left == right
            }
        })
    }

    /// # Safety
    /// The slots of the access belong to this machine, and its tensor meets the requirements of [`super::Program::run`].
    pub(super) unsafe fn load(&self, access: &Access) -> Result<(), Violation> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.aim(access) {
                true => Ok(()),
                false if self.conflicts(access) => self.shared_access(access, true),
                false => self.access::<false>(access, true),
            }
        }
    }

    /// # Safety
    /// See [`Machine::load`].
    pub(super) unsafe fn store(&self, access: &Access) -> Result<(), Violation> {
        // The previous op has written to the tensor directly.
        if access.view.is_some_and(|view| self.at(view) != self.at(access.data)) {
            return Ok(());
        }
        // SAFETY: guaranteed by the caller.
        unsafe { if self.conflicts(access) { self.shared_access(access, false) } else { self.access::<false>(access, false) } }
    }

    /// Whether another program may access the same elements concurrently and one of the two stores. If so, each element is accessed by an
    /// atomic.
    #[inline(always)]
    fn conflicts(&self, access: &Access) -> bool {
        self.conflicts.get(access.number as usize) == Some(&true)
    }

    /// Not inlined, so that it does not affect the code of plain accesses.
    #[inline(never)]
    unsafe fn shared_access(&self, access: &Access, is_load: bool) -> Result<(), Violation> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.access::<true>(access, is_load) }
    }

    /// Sets the view of an access, if it has one: to the tensor, with the result true, or to its own tile.
    ///
    /// # Safety
    /// See [`Machine::load`].
    pub(super) unsafe fn aim(&self, access: &Access) -> bool {
        let Some(Slot(view)) = access.view else { return false };
        let (count, width) = (access.extents[0], access.dtype.bytes());
        // SAFETY: the slots hold the values that the access describes.
        let address = match unsafe { self.ranges(access, 0, count, self.length(access)) } {
            // A view accesses elements through slices, so no other program may access them concurrently.
            Some((start, 1, inside, active)) if inside.len() == count && active.len() == count && !self.conflicts(access) => {
                Some(tensor(self.address(access), start, width)).filter(|address| address.addr() % width == 0)
            }
            _ => None,
        };
        // SAFETY: the slot of the view has the size and alignment of an address.
        unsafe { self.at(Slot(view & !VIEW)).cast::<*mut u8>().write(address.unwrap_or(self.at(access.data))) };
        address.is_some()
    }

    /// A load or a store. If `SHARED`, other programs may access the same elements, and each element is accessed by an atomic.
    unsafe fn access<const SHARED: bool>(&self, access: &Access, is_load: bool) -> Result<(), Violation> {
        let count = access.extents.last().copied().unwrap_or(1);
        let length = self.length(access);
        for row in 0..rows(&access.extents) {
            // SAFETY: the slots hold the values that the access describes.
            let ranges = unsafe { self.ranges(access, row, count, length) };
            let Some((start, step, inside, active)) = ranges else {
                // SAFETY: as above.
                unsafe { self.blocks::<SHARED>(access, is_load, row, count)? };
                continue;
            };
            let lanes = intersection(&inside, &active);
            if self.checked && lanes != active && !active.is_empty() {
                let lane = if active.start < inside.start { active.start } else { inside.end.max(active.start) };
                return Err(self.violation(access, row * count + lane, start + step * lane as i64));
            }
            let width = access.dtype.bytes();
            let data = self.at(access.data).wrapping_add(row * count * width);
            let tensor = tensor(self.address(access), start, width);
            // SAFETY: `lanes` are inside the tensor; the tile has a row of `count` elements at `data`.
            unsafe {
                if is_load {
                    self.rest(access, data, row * count, 0..lanes.start);
                    self.rest(access, data, row * count, lanes.end..count);
                    match SHARED {
                        true => shared::load_row(data, tensor, step, width, lanes),
                        false => memory::copy_strided(data, 1, tensor, step, width, lanes),
                    }
                    if access.dtype == Dtype::Bool {
                        memory::normalise_bools(data, count);
                    }
                } else if SHARED {
                    shared::store_row(tensor, step, data, width, lanes);
                } else {
                    memory::copy_strided(tensor, step, data, 1, width, lanes);
                }
            }
        }
        Ok(())
    }

    pub(super) fn address(&self, access: &Access) -> u64 {
        // SAFETY: the front of the scratch holds the words of every pointer.
        unsafe { self.scratch.cast::<u64>().add(access.word).read() }
    }

    fn length(&self, access: &Access) -> u64 {
        // SAFETY: as above; the length is the next word.
        unsafe { self.scratch.cast::<u64>().add(access.word + 1).read() }
    }

    /// For a row: its first offset, the step, the range inside the tensor and the range of active elements; `None` if they are not ranges.
    unsafe fn ranges(&self, access: &Access, row: usize, count: usize, length: u64) -> Option<(i64, i64, Range<usize>, Range<usize>)> {
        let (Offsets::Affine(affine), Mask::Conditions(conditions)) = (&access.offsets, &access.mask) else { return None };
        // SAFETY: the slots hold `i64`s.
        let (start, step) = unsafe { (self.row_start(affine, &access.extents, row), self.linear(affine.innermost())) };
        // SAFETY: the conditions are those of tiles with these extents.
        Some((start, step, inside(start, step, count, length)?, unsafe { self.active(conditions, &access.extents, row)? }))
    }

    /// Writes `other` to elements of a row of a load. `data` is the row, `first` the tile index of its first element.
    unsafe fn rest(&self, access: &Access, data: *mut u8, first: usize, lanes: Range<usize>) {
        if lanes.is_empty() {
            return;
        }
        let width = access.dtype.bytes();
        let to = data.wrapping_add(lanes.start * width);
        // SAFETY: the tile and `other` have these elements.
        unsafe {
            match access.other {
                Other::Zero => to.write_bytes(0, lanes.len() * width),
                Other::Uniform(slot) => memory::fill(to, self.at(slot), width, lanes.len()),
                Other::Tile(slot) => {
                    to.copy_from_nonoverlapping(self.at(slot).add((first + lanes.start) * width), lanes.len() * width);
                }
            }
        }
    }

    /// Accesses a row element by element.
    unsafe fn blocks<const SHARED: bool>(&self, access: &Access, is_load: bool, row: usize, count: usize) -> Result<(), Violation> {
        let width = access.dtype.bytes();
        for first in (0..count).step_by(BLOCK) {
            let lanes = first..count.min(first + BLOCK);
            let mut offsets = [0i64; BLOCK];
            // SAFETY: the slots hold the values that the access describes.
            let chosen = unsafe { self.chosen(access, row, lanes.clone(), &mut offsets)? };
            let at = row * count + first;
            let data = self.at(access.data).wrapping_add(at * width);
            let tensor = |offset: i64| tensor(self.address(access), offset, width);
            let bits = || (0..lanes.len()).filter(|bit| chosen >> bit & 1 != 0);
            // SAFETY: a chosen element is inside the tensor, and the tile has these elements. If they are shared, all threads access them
            // by atomics.
            unsafe {
                if is_load {
                    self.rest(access, data, at, 0..lanes.len());
                }
                memory::by_bytes!(width, T => {
                    let at = |bit: usize| (data.cast::<T>().add(bit), tensor(offsets[bit]).cast::<T>());
                    match (is_load, SHARED) {
                        (true, false) => bits().map(at).for_each(|(element, tensor)| element.write(tensor.read_unaligned())),
                        (true, true) => bits().map(at).for_each(|(element, tensor)| element.write(T::load(tensor))),
                        (false, false) => bits().map(at).for_each(|(element, tensor)| tensor.write_unaligned(element.read())),
                        (false, true) => bits().map(at).for_each(|(element, tensor)| T::store(tensor, element.read())),
                    }
                });
                if is_load && access.dtype == Dtype::Bool {
                    memory::normalise_bools(data, lanes.len());
                }
            }
        }
        Ok(())
    }

    /// A bit for each of some elements of a row: whether it is active and inside the tensor; and the offsets of these elements.
    ///
    /// # Safety
    /// See [`Machine::load`].
    pub(super) unsafe fn chosen(
        &self,
        access: &Access,
        row: usize,
        lanes: Range<usize>,
        offsets: &mut [i64; BLOCK],
    ) -> Result<u64, Violation> {
        let (count, length) = (access.extents.last().copied().unwrap_or(1), self.length(access));
        let first = lanes.start;
        // SAFETY: the slots hold the values that the access describes.
        let active = unsafe {
            self.offsets(access, row, lanes.clone(), count, offsets);
            self.active_bits(access, row, lanes, count)
        };
        // As an unsigned number, a negative offset is beyond every length.
        let inside = offsets.iter().enumerate().fold(0, |bits, (bit, offset)| bits | u64::from((*offset as u64) < length) << bit);
        let chosen = inside & active;
        if self.checked && chosen != active {
            let bit = (active & !chosen).trailing_zeros() as usize;
            return Err(self.violation(access, row * count + first + bit, offsets[bit]));
        }
        Ok(chosen)
    }

    /// The offsets of some elements of a row.
    unsafe fn offsets(&self, access: &Access, row: usize, lanes: Range<usize>, count: usize, to: &mut [i64; BLOCK]) {
        match &access.offsets {
            // SAFETY: the tile has these elements.
            Offsets::Tile(slot) => unsafe {
                let from = self.at(*slot).cast::<i64>().add(row * count + lanes.start);
                to.as_mut_ptr().copy_from_nonoverlapping(from, lanes.len());
            },
            Offsets::Affine(affine) => {
                // SAFETY: the slots hold `i64`s.
                let (start, step) = unsafe { (self.row_start(affine, &access.extents, row), self.linear(affine.innermost())) };
                for (to, lane) in to.iter_mut().zip(lanes) {
                    *to = start.wrapping_add(step.wrapping_mul(lane as i64));
                }
            }
        }
    }

    /// A bit for each of some elements of a row: whether it is active.
    unsafe fn active_bits(&self, access: &Access, row: usize, lanes: Range<usize>, count: usize) -> u64 {
        let bits =
            |holds: &dyn Fn(usize) -> bool| lanes.clone().enumerate().fold(0, |bits, (bit, lane)| bits | u64::from(holds(lane)) << bit);
        match &access.mask {
            Mask::Conditions(conditions) if conditions.is_empty() => bits(&|_| true),
            // SAFETY: the conditions are those of tiles with these extents.
            Mask::Conditions(conditions) => bits(&|lane| unsafe { self.holds(conditions, &access.extents, row, lane) }),
            // SAFETY: the tile has these elements.
            Mask::Tile(slot) => bits(&|lane| unsafe { self.at(*slot).add(row * count + lane).read() != 0 }),
        }
    }

    #[cold]
    fn violation(&self, access: &Access, lane: usize, index: i64) -> Violation {
        let file = self.code.file_names.get(usize::from(access.loc.file)).cloned().unwrap_or_else(|| "".into());
        Violation {
            assertion: None,
            op: access.kind.builtin(),
            file,
            line: access.loc.line,
            column: access.loc.column,
            program_id: self.program,
            index,
            length: self.length(access),
            parameter: access.parameter.clone(),
            lane,
        }
    }
}

/// The address of an element. It may be invalid: an empty tensor has no address.
pub(super) fn tensor(address: u64, offset: i64, width: usize) -> *mut u8 {
    let address = address.wrapping_add((offset as u64).wrapping_mul(width as u64));
    std::ptr::with_exposed_provenance_mut(address as usize)
}
