//! Matrix products by warpgroups, whose operands a producer copies ahead. Elements are multiples of 1/8, so that sums in any order are exact.
//!
//! Each launch says which version of the kernel it runs. The simulator tells: only the version with roles copies in bulk.

use std::sync::{Mutex, PoisonError};

use galatea::prelude::*;

use crate::lab::{Input, Lab};
use crate::products::{eighths, product_kernels};
use crate::tests;
use crate::tolerance::check_bits;
use crate::value::FloatValue;

tests![
    operands_in_any_order<f16, bf16>,
    tiles_of_many_shapes<bf16>,
    ragged_ends<f16>,
    trip_counts<bf16>,
    several_programs_of_a_worker<f16>,
    tensors_that_cannot_be_copied<bf16>,
    programs_behind_the_ends<bf16>,
    any_order_of_warps<bf16>,
    drawn_extents<f16>,
    largest_tiles<bf16>,
    programs_of_different_lengths,
];

/// The version of a kernel that a launch runs on a GPU with warpgroup products.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Version {
    Roles,
    Usual,
    /// The test does not say: one that runs no iteration copies nothing, so the simulator cannot tell.
    Any,
}

use Version::{Any, Roles, Usual};

impl Lab {
    /// Launches a kernel, and checks which version runs.
    #[track_caller]
    pub(crate) fn launch(&self, kernel: &str, version: Version, launch: impl FnOnce() -> Result<()>) {
        static ONE_LAUNCH_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _guard = ONE_LAUNCH_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let copied = || {
            let report = self.device.sim_report()?;
            Some(report.kernels.iter().filter(|report| report.kernel == kernel).map(|report| report.total().async_bytes).sum::<u64>())
        };
        let before = copied();
        launch().unwrap();
        let wanted = version == Roles && self.device.compute_capability() == Some((9, 0));
        if let (Some(before), Some(after)) = (before, copied())
            && version != Any
        {
            assert_eq!(after > before, wanted, "`{kernel}` runs the other version");
        }
    }
}

product_kernels! {
    schedules {
        four(num_warps = 4, num_stages = 3);
        eight(num_warps = 8, num_stages = 3);
        two_stages(num_warps = 4, num_stages = 2);
        many_stages(num_warps = 4, num_stages = 8);
    }
}

/// Operands of a product.
pub(crate) struct Matrices<T> {
    pub(crate) host: [Vec<T>; 2],
    pub(crate) a: Input<T>,
    pub(crate) b: Input<T>,
    extents: [usize; 3],
    /// Are they stored with rows and columns exchanged?
    transposed: [bool; 2],
}

impl<T: FloatValue> Matrices<T> {
    /// Operands that begin so many elements behind an aligned address.
    fn at(lab: &mut Lab, extents: [usize; 3], transposed: [bool; 2], shifts: [usize; 2]) -> Matrices<T> {
        let [m, n, k] = extents;
        let host = [m * k, k * n].map(|len| eighths::<T>(lab, len));
        let [a, b] = [0, 1].map(|number| lab.input_at(&host[number], shifts[number]));
        Matrices { a, b, host, extents, transposed }
    }

    pub(crate) fn new(lab: &mut Lab, extents: [usize; 3], transposed: [bool; 2]) -> Matrices<T> {
        Matrices::at(lab, extents, transposed, [0; 2])
    }

    /// Can tensor copies read them?
    fn version(&self) -> Version {
        let ([m, n, k], [a, b]) = (self.extents, self.transposed);
        let rows = [if a { m } else { k }, if b { k } else { n }];
        match rows.iter().all(|elements| elements % 8 == 0) {
            true if m * n * k > 0 => Roles,
            true => Any,
            false => Usual,
        }
    }

    /// The product, in `f64`.
    pub(crate) fn product(&self) -> Vec<f64> {
        let ([m, n, k], [a, b]) = (self.extents, self.transposed);
        let [left, right] = self.host.each_ref().map(|host| host.iter().map(|element| element.wide()).collect::<Vec<f64>>());
        let mut sums = vec![0.0; m * n];
        for row in 0..m {
            for at in 0..k {
                let element = left[if a { at * m + row } else { row * k + at }];
                for (column, sum) in sums[row * n..][..n].iter_mut().enumerate() {
                    *sum += element * right[if b { column * k + at } else { at * n + column }];
                }
            }
        }
        sums
    }
}

/// Launches the kernel with that schedule, and checks the result.
macro_rules! product {
    ($schedule:ident, $ty:ty, $a:literal, $b:literal, [$m:literal, $n:literal, $k:literal], $lab:ident, $extents:expr) => {
        product!($schedule, $ty, $a, $b, [$m, $n, $k], [0; 2], $lab, $extents, None)
    };
    ($schedule:ident, $ty:ty, $a:literal, $b:literal, [$m:literal, $n:literal, $k:literal], $shifts:expr, $lab:ident, $extents:expr, $version:expr) => {{
        let of = Matrices::<$ty>::at($lab, $extents, [$a, $b], $shifts);
        let [m, n, k] = of.extents;
        let mut out = $lab.output_at::<f32>(m * n, 0);
        $lab.launch("product_kernel", $version.unwrap_or(of.version()), || {
            schedules::$schedule::product_kernel::<$ty, $a, $b, $m, $n, $k>(of.a.slice(), of.b.slice(), &mut out.slice(), m, n, k)
                .grid((m.div_ceil($m), n.div_ceil($n)))
                .launch()
        });
        let product = of.product();
        check_bits(&out.read(), |i| product[i] as f32);
    }};
}

fn operands_in_any_order<T: FloatValue>(lab: &mut Lab) {
    for extents in [[64, 64, 64], [72, 136, 200]] {
        product!(four, T, false, false, [64, 64, 64], lab, extents);
        product!(four, T, true, false, [64, 64, 64], lab, extents);
        product!(four, T, false, true, [64, 64, 64], lab, extents);
        product!(four, T, true, true, [64, 64, 64], lab, extents);
    }
}

/// Atoms of 32, 64 and 128 bytes, one and several of them, several instructions for the rows of a warpgroup, and two warpgroups.
fn tiles_of_many_shapes<T: FloatValue>(lab: &mut Lab) {
    let extents = [136, 264, 136];
    product!(four, T, false, false, [64, 16, 16], lab, [72, 24, 40]);
    product!(four, T, false, true, [64, 8, 32], lab, [72, 24, 40]);
    product!(four, T, true, true, [128, 32, 32], lab, extents);
    product!(four, T, false, false, [64, 256, 64], lab, extents);
    product!(four, T, true, false, [64, 128, 128], lab, extents);
    product!(eight, T, false, false, [128, 256, 64], lab, extents);
    product!(eight, T, true, true, [256, 64, 64], lab, extents);
    product!(eight, T, false, true, [256, 128, 32], lab, extents);
    product!(eight, T, true, false, [128, 128, 64], lab, extents);
}

/// Each extent ends at, one behind, and seven behind a multiple of the tile and of 16 bytes. Where such a row cannot be copied, the usual version runs.
fn ragged_ends<T: FloatValue>(lab: &mut Lab) {
    let rests = [0, 1, 7];
    for (m, n) in rests.into_iter().flat_map(|m| rests.map(|n| (m, n))) {
        product!(four, T, false, true, [64, 32, 32], lab, [64 + m, 32 + n, 40]);
    }
    for rest in rests {
        product!(four, T, false, false, [64, 32, 32], lab, [64 + rest, 40, 40]);
        product!(four, T, true, false, [64, 32, 32], lab, [72, 40, 32 + rest]);
        product!(four, T, true, true, [64, 32, 32], lab, [72, 32 + rest, 40]);
    }
    product!(four, T, false, false, [64, 32, 32], lab, [1, 8, 8]);
    product!(four, T, true, true, [64, 32, 32], lab, [8, 1, 8]);
    product!(four, T, false, true, [64, 32, 32], lab, [0, 8, 8]);
}

/// No iteration, fewer than a ring has slots, as many, and more.
fn trip_counts<T: FloatValue>(lab: &mut Lab) {
    for steps in [0, 1, 2, 3, 5] {
        product!(two_stages, T, false, true, [64, 8, 16], lab, [64, 8, 16 * steps]);
    }
    for steps in [0, 1, 2, 3, 4, 7] {
        product!(four, T, false, true, [64, 8, 16], lab, [64, 8, 16 * steps]);
    }
    for steps in [7, 8, 9, 17] {
        product!(many_stages, T, false, true, [64, 8, 16], lab, [64, 8, 16 * steps]);
    }
}

/// More programs than a GPU has workers, with positions of the ring that differ from program to program.
fn several_programs_of_a_worker<T: FloatValue>(lab: &mut Lab) {
    product!(four, T, false, true, [64, 8, 16], lab, [64 * 19, 8 * 31, 48]);
    product!(two_stages, T, false, true, [64, 8, 16], lab, [64 * 3, 8 * 201, 48]);
    product!(eight, T, false, false, [128, 16, 16], lab, [128 * 18 - 1, 16 * 17 - 8, 16]);
    // Two programs of a worker multiply nothing between them.
    product!(four, T, false, true, [64, 8, 16], lab, [64 * 19, 8 * 31, 0]);
}

/// The tile with the most sums in a thread: numbers of rows of programs that are even and odd, and more programs than workers.
fn largest_tiles<T: FloatValue>(lab: &mut Lab) {
    product!(eight, T, false, false, [128, 256, 16], lab, [256, 264, 40]);
    product!(eight, T, false, true, [128, 256, 32], lab, [384, 256, 96]);
    product!(eight, T, true, false, [128, 256, 16], lab, [120, 520, 16]);
    product!(eight, T, false, false, [128, 256, 16], lab, [256, 256, 0]);
}

/// `z[row, column] = sum(a[row, k] * b[k, column])` for the `k` in front of the end of the program's rows.
#[kernel(num_warps = 8, num_stages = 3)]
fn triangle(x: Ptr<bf16>, y: Ptr<bf16>, z: PtrMut<f32>, rows: usize, columns: usize, inner: usize) {
    let row = (program_id(0) * 128 + arange(0, 128)).col();
    let column = (program_id(1) * 256 + arange(0, 256)).row();
    let mut total = zeros::<f32>([128, 256]);
    for first in range(0, min(inner, 16 * (program_id(0) + 1)), 16) {
        let k = first + arange(0, 16);
        let a = load(x + row * inner + k.row(), mask = (row < rows) & (k.row() < inner));
        let b = load(y + k.col() * columns + column, mask = (column < columns) & (k.col() < inner));
        total += dot(a, b);
    }
    store(z + row * columns + column, total, mask = (row < rows) & (column < columns));
}

/// Programs that read different numbers of blocks.
fn programs_of_different_lengths(lab: &mut Lab) {
    let extents @ [m, n, k] = [512, 256, 64];
    let of = Matrices::<bf16>::new(lab, extents, [false, false]);
    let mut out = lab.output_at::<f32>(m * n, 0);
    lab.launch("triangle", Roles, || triangle(of.a.slice(), of.b.slice(), &mut out.slice(), m, n, k).grid((4, 1)).launch());
    check_bits(&out.read(), |at| {
        let (row, column) = (at / n, at % n);
        (0..16 * (row / 128 + 1)).fold(0.0, |sum, inner| sum + of.host[0][row * k + inner].wide() * of.host[1][inner * n + column].wide())
            as f32
    });
}

/// Orders of warps, and of asynchronous copies, that the simulator draws: slots that are used again, and blocks that are stored while others are multiplied.
fn any_order_of_warps<T: FloatValue>(lab: &mut Lab) {
    for _ in 0..4 {
        let seed = lab.below(1 << 30) as u64 + 1;
        lab.device.set_sim_seed(seed);
        product!(two_stages, T, false, true, [64, 8, 16], lab, [64 * 3, 8 * 95, 16 * 3]);
        product!(two_stages, T, true, false, [64, 64, 16], lab, [64, 128, 16 * 5]);
        product!(eight, T, false, true, [128, 16, 16], lab, [256, 16, 16 * 9]);
    }
}

/// Extents of any rest, of which each launch has a part or several tiles.
fn drawn_extents<T: FloatValue>(lab: &mut Lab) {
    for _ in 0..4 {
        let extents = [0; 3].map(|_| 8 * lab.below(20) + if lab.below(4) == 0 { lab.below(8) } else { 0 });
        product!(four, T, false, false, [64, 32, 32], lab, extents);
        product!(four, T, false, true, [64, 32, 32], lab, extents);
        product!(four, T, true, false, [64, 32, 32], lab, extents);
        product!(four, T, true, true, [64, 32, 32], lab, extents);
    }
}

/// Rows that are no multiples of 16 bytes, and tensors at addresses that are none.
fn tensors_that_cannot_be_copied<T: FloatValue>(lab: &mut Lab) {
    product!(four, T, false, false, [64, 64, 64], lab, [70, 65, 130]);
    product!(four, T, false, true, [64, 64, 64], lab, [64, 64, 129]);
    product!(four, T, false, true, [64, 64, 64], [0, 1], lab, [64, 64, 64], Some(Usual));
    product!(four, T, false, true, [64, 64, 64], [4, 0], lab, [64, 64, 64], Some(Usual));
    product!(four, T, false, true, [64, 64, 64], [8, 16], lab, [64, 64, 64], Some(Roles));
}

/// A grid that is larger than the result.
fn programs_behind_the_ends<T: FloatValue>(lab: &mut Lab) {
    let of = Matrices::<T>::new(lab, [72, 24, 40], [false, true]);
    let mut out = lab.output::<f32>(72 * 24);
    lab.launch("product_kernel", Roles, || {
        schedules::four::product_kernel::<T, false, true, 64, 8, 16>(of.a.slice(), of.b.slice(), &mut out.slice(), 72, 24, 40)
            .grid((5, 7))
            .launch()
    });
    let product = of.product();
    check_bits(&out.read(), |i| product[i] as f32);
}
