//! Copies of operands with odd row lengths into a workspace, and the rule for when they pay.

use galatea::prelude::*;

use crate::kernels;

/// When operands whose rows do not begin at multiples of 16 bytes are copied into a workspace.
///
/// Hopper GPUs copy operands by the tensor memory accelerator, which needs such rows. Without a copy, the product reads each element on its own. One launch copies both operands
/// into rows of a multiple of 16 bytes, if both need it. The result needs no copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Padding {
    /// On a Hopper GPU, if the product is expected to gain more than the copy takes: a launch, and the bytes at the speed of memory.
    #[default]
    WhenFaster,
    /// On every device.
    Always,
    /// On no device.
    Never,
}

/// Bytes at whose multiples rows begin.
const ALIGNMENT: usize = 16;
/// The elements of a block of the kernel, which is compiled with this crate.
const BLOCK: usize = 2048;
/// What the launch of a copy takes on its own, in microseconds.
const LAUNCH_US: f64 = 2.5;
/// The rate of memory, in bytes for each microsecond.
const MEMORY: f64 = 4e6;
/// Operations for each microsecond of a large product whose operands the accelerator copies, and of one whose operands are loaded element by element.
const FAST: f64 = 600e6;
const SLOW: f64 = 150e6;

/// An operand as the rule sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    /// The elements of a row in memory.
    row: usize,
    /// Rows of all matrices.
    rows: usize,
    element_bytes: usize,
    is_aligned: bool,
}

impl Operand {
    pub(super) fn of<T: Element>(tensor: &TensorView<'_, T>) -> Operand {
        let row = tensor.shape().last().copied().unwrap_or(1);
        let is_aligned = tensor.address().is_multiple_of(ALIGNMENT as u64) && (row * size_of::<T>()).is_multiple_of(ALIGNMENT);
        Operand { row, rows: tensor.len() / row.max(1), element_bytes: size_of::<T>(), is_aligned }
    }

    /// The elements of a row in a workspace.
    fn padded(&self) -> usize {
        self.row.next_multiple_of(ALIGNMENT / self.element_bytes)
    }
}

impl Padding {
    /// The number of elements that each operand takes in a workspace: 0 for one that is read where it is.
    pub(super) fn lens(self, device: Device, problem: &[usize; 3], operands: [Operand; 2]) -> [usize; 2] {
        let lens = operands.map(|operand| if operand.is_aligned { 0 } else { operand.rows.saturating_mul(operand.padded()) });
        let is_hopper = device.compute_capability().is_some_and(|(major, _)| major == 9);
        let pays = match self {
            Padding::Always => true,
            Padding::Never => false,
            Padding::WhenFaster => is_hopper && saved_us(problem, operands[0].element_bytes) > copy_us(lens, operands[0].element_bytes),
        };
        if pays { lens } else { [0; 2] }
    }
}

/// The time of a copy of so many elements, which are read and written.
fn copy_us(lens: [usize; 2], element_bytes: usize) -> f64 {
    (lens[0] as f64 + lens[1] as f64) * 2.0 * element_bytes as f64 / MEMORY + LAUNCH_US
}

/// What the product gains by rows that the accelerator copies: nothing if memory limits both.
fn saved_us([rows, columns, inner]: &[usize; 3], element_bytes: usize) -> f64 {
    let [rows, columns, inner, bytes] = [*rows, *columns, *inner, element_bytes].map(|number| number as f64);
    let memory = (rows * inner + inner * columns + rows * columns) * bytes / MEMORY;
    // The rates are those of 16-bit floats.
    let us = |rate: f64| (2.0 * rows * columns * inner / rate * (bytes / 2.0)).max(memory);
    us(SLOW) - us(FAST)
}

/// Copies those operands into the workspace that take elements of it, and calls `then` with the operands and the distances of their rows: `None` for an operand that is
/// read where it is.
pub(super) fn padded<T: Number>(
    operands: [TensorView<'_, T>; 2],
    workspace: TensorViewMut<'_, T>,
    lens: [usize; 2],
    then: impl FnOnce([TensorView<'_, T>; 2], [Option<usize>; 2]) -> Result<()>,
) -> Result<()> {
    let [a, b] = operands;
    let [of_a, of_b] = [&a, &b].map(Operand::of);
    let (mut a_out, rest) = workspace.split_at_mut(lens[0])?;
    let (mut b_out, _) = rest.split_at_mut(lens[1])?;
    kernels::padded_rows::<T, BLOCK>(a, b, &mut a_out, &mut b_out, of_a.row, of_a.padded(), lens[0], of_b.row, of_b.padded(), lens[1])
        .grid(cdiv(lens[0], BLOCK) + cdiv(lens[1], BLOCK))
        .launch()?;
    let copied = lens.map(|len| len > 0);
    let stride = |is_copied: bool, operand: Operand| is_copied.then(|| operand.padded());
    then(
        [if copied[0] { a_out.as_view() } else { a }, if copied[1] { b_out.as_view() } else { b }],
        [stride(copied[0], of_a), stride(copied[1], of_b)],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_pay_for_large_products() {
        let pays = |[rows, columns, inner]: [usize; 3]| saved_us(&[rows, columns, inner], 2) > copy_us([rows * inner, inner * columns], 2);
        for large in [[1000, 1003, 1017], [2047, 2049, 2051], [8191, 8191, 8191]] {
            assert!(pays(large), "{large:?}");
        }
        // A launch takes longer than the product, or memory limits both.
        for other in [[0, 0, 0], [129, 131, 133], [257, 511, 255], [16, 8191, 8191], [8191, 1, 8191]] {
            assert!(!pays(other), "{other:?}");
        }
    }

    #[test]
    fn aligned_operands_and_other_devices_have_no_copies() {
        let operand = |row: usize, is_aligned: bool| Operand { row, rows: 3, element_bytes: 2, is_aligned };
        let (problem, mixed) = ([4096; 3], [operand(9, false), operand(16, true)]);
        let cpu = Device::cpu();
        let [older, hopper] = [Target::SM_80, Target::SM_90A].map(|target| Device::sim(target).expect("a simulated GPU opens"));
        for device in [cpu, older] {
            assert_eq!(Padding::WhenFaster.lens(device, &problem, mixed), [0, 0], "{device}");
        }
        assert_eq!(Padding::WhenFaster.lens(hopper, &problem, mixed), [48, 0]);
        assert_eq!(Padding::WhenFaster.lens(hopper, &[8; 3], mixed), [0, 0]);
        for device in [cpu, older, hopper] {
            assert_eq!(Padding::Always.lens(device, &[8; 3], mixed), [48, 0]);
            assert_eq!(Padding::Never.lens(device, &problem, mixed), [0, 0]);
        }
    }
}
