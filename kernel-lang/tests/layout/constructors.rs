//! Constructors against the definitions they cite, and their errors.

use kernel_lang::layout::{Layout, LayoutError, Level, Matrix, conversion};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::strategies::{at, coordinates, power, some_layout};

/// Per axis sizes, and an order.
fn blocked_arguments() -> impl Strategy<Value = ([Vec<u32>; 4], Vec<usize>)> {
    (1..=3usize).prop_flat_map(|rank| {
        let sizes = |most| prop::collection::vec(power(most), rank).boxed();
        let threads = if rank == 3 { 1 } else { 2 };
        ([sizes(4), sizes(1), sizes(threads), sizes(1)], Just((0..rank).collect()).prop_shuffle())
    })
}

/// Splits `number` into digits, `order[0]` varying fastest.
fn digits(mut number: u32, sizes: &[u32], order: &[usize]) -> Vec<u32> {
    let mut digits = vec![0; sizes.len()];
    for &axis in order {
        digits[axis] = number % sizes[axis];
        number /= sizes[axis];
    }
    digits
}

proptest! {
    #[test]
    fn blocked_is_tritons_definition(([shape, size, threads, warps], order) in blocked_arguments()) {
        let layout = Layout::blocked(&shape, &size, &threads, &warps, &order).unwrap();
        let tile: Vec<u32> = (0..shape.len()).map(|axis| size[axis] * threads[axis] * warps[axis]).collect();
        let repeats: Vec<u32> = shape.iter().zip(&tile).map(|(extent, tile)| (extent / tile).max(1)).collect();
        let each: u32 = size.iter().product();
        prop_assert_eq!(layout.registers_per_thread(), each * repeats.iter().product::<u32>());
        for coordinate in coordinates(&layout) {
            let register = digits(coordinate.register % each, &size, &order);
            let repeat = digits(coordinate.register / each, &repeats, &order);
            let (lane, warp) = (digits(coordinate.lane, &threads, &order), digits(coordinate.warp, &warps, &order));
            let index: Vec<u32> = (0..shape.len()).map(|axis| {
                let warp = repeat[axis] * warps[axis] + warp[axis];
                let thread = warp * threads[axis] + lane[axis];
                (thread * size[axis] + register[axis]) % shape[axis]
            }).collect();
            prop_assert_eq!(at(&layout, coordinate), index);
        }
    }

    #[test]
    fn reshapes_commute_with_the_index(layout in some_layout(), axis in any::<Index>(), keys in any::<[u8; 3]>()) {
        let rank = layout.rank();
        let axis = axis.index(rank);
        let sliced = layout.slice(axis).unwrap();
        let expanded = layout.expand_dims(axis).unwrap();
        let mut order: Vec<usize> = (0..rank).collect();
        order.sort_by_key(|&axis| keys[axis]);
        let permuted = layout.permute(&order).unwrap();
        let mut small = layout.shape().to_vec();
        small[axis] = 1;
        let unbroadcast = layout.unbroadcast(&small).unwrap();
        prop_assert!(layout.unbroadcast(&small[1..]).is_err());
        let flat = layout.reshape(&[layout.elements() as u32]).unwrap();
        for coordinate in coordinates(&layout) {
            let index = at(&layout, coordinate);
            let mut without = index.clone();
            without[axis] = 0;
            prop_assert_eq!(at(&unbroadcast, coordinate), without);
            let mut without = index.clone();
            without.remove(axis);
            prop_assert_eq!(at(&sliced, coordinate), without);
            let mut with = index.clone();
            with.insert(axis, 0);
            prop_assert_eq!(at(&expanded, coordinate), with);
            prop_assert_eq!(at(&permuted, coordinate), order.iter().map(|&axis| index[axis]).collect::<Vec<_>>());
            prop_assert_eq!(at(&flat, coordinate), vec![layout.flat_index(coordinate) as u32]);
            if rank >= 2 {
                let mut swapped = index.clone();
                swapped.swap(rank - 1, rank - 2);
                prop_assert_eq!(at(&layout.transpose().unwrap(), coordinate), swapped);
            }
        }
        let reversed = Matrix::new((0..layout.index_bits()).rev().map(|bit| 1 << bit).collect());
        let composed = layout.compose(&reversed, layout.shape()).unwrap();
        for coordinate in coordinates(&layout) {
            prop_assert_eq!(composed.flat_index(coordinate), reversed.apply(layout.flat_index(coordinate)));
        }
    }
}

/// The PTX ISA's formulas for row and column, instruction by instruction.
#[test]
fn fragments_are_those_of_the_ptx_isa() {
    let accumulator = Layout::mma_accumulator(&[64, 32], [2, 2]).unwrap();
    for p in coordinates(&accumulator) {
        let (group, member, i) = (p.lane >> 2, p.lane % 4, p.register % 4);
        let (row, column) = (if i < 2 { group } else { group + 8 }, member * 2 + (i & 1));
        // 16 x 8 a warp, 2 x 2 warps, then 2 x 2 repetitions with n first.
        let (repeat_n, repeat_m) = (p.register / 4 % 2, p.register / 8);
        assert_eq!(at(&accumulator, p), [row + 16 * (p.warp / 2) + 32 * repeat_m, column + 8 * (p.warp % 2) + 16 * repeat_n]);
    }
    let a = Layout::mma_operand_a(&[16, 16], 16, [1, 2]).unwrap();
    for p in coordinates(&a) {
        let (group, member, i) = (p.lane >> 2, p.lane % 4, p.register);
        let row = if (0..2).contains(&i) || (4..6).contains(&i) { group } else { group + 8 };
        let column = if i < 4 { member * 2 + (i & 1) } else { member * 2 + (i & 1) + 8 };
        assert_eq!(at(&a, p), [row, column]);
    }
    let b = Layout::mma_operand_b(&[16, 8], 16, [2, 1]).unwrap();
    for p in coordinates(&b) {
        let (group, member, i) = (p.lane >> 2, p.lane % 4, p.register);
        let row = if i < 2 { member * 2 + (i & 1) } else { member * 2 + (i & 1) + 8 };
        assert_eq!(at(&b, p), [row, group]);
    }
    let bytes = Layout::mma_operand_a(&[16, 32], 8, [1, 1]).unwrap();
    for p in coordinates(&bytes) {
        let (group, member, i) = (p.lane >> 2, p.lane % 4, p.register);
        let row = if (0..4).contains(&i) || (8..12).contains(&i) { group } else { group + 8 };
        let column = if i < 8 { member * 4 + (i & 3) } else { member * 4 + (i & 3) + 16 };
        assert_eq!(at(&bytes, p), [row, column]);
    }
    let tf32 = Layout::mma_operand_a(&[16, 8], 32, [1, 1]).unwrap();
    for p in coordinates(&tf32) {
        let (group, member) = (p.lane >> 2, p.lane % 4);
        assert_eq!(at(&tf32, p), [group + 8 * (p.register % 2), member + 4 * (p.register / 2)]);
    }
    let tf32_b = Layout::mma_operand_b(&[8, 8], 32, [1, 1]).unwrap();
    for p in coordinates(&tf32_b) {
        assert_eq!(at(&tf32_b, p), [p.lane % 4 + 4 * p.register, p.lane >> 2]);
    }
    let wgmma = Layout::wgmma_accumulator(&[128, 64], 64, 8).unwrap();
    for p in coordinates(&wgmma) {
        let (group, member, i) = (p.lane >> 2, p.lane % 4, p.register);
        let row = 16 * (p.warp % 4) + group + 8 * (i / 2 % 2) + 64 * (p.warp / 4);
        assert_eq!(at(&wgmma, p), [row, 8 * (i / 4) + member * 2 + i % 2]);
    }
}

#[test]
fn wrong_arguments_are_errors() {
    let blocked = |shape: &[u32], order: &[usize]| Layout::blocked(shape, &[1, 4], &[4, 8], &[4, 1], order).unwrap_err();
    assert_eq!(blocked(&[48, 64], &[1, 0]), LayoutError::NotAPowerOfTwo { value: 48 });
    assert_eq!(blocked(&[0, 64], &[1, 0]), LayoutError::NotAPowerOfTwo { value: 0 });
    assert_eq!(blocked(&[64, 64], &[1, 1]), LayoutError::NotAPermutation);
    assert_eq!(blocked(&[64], &[0]), LayoutError::Rank { expected: 1, found: 2 });
    assert_eq!(blocked(&[1 << 16, 1 << 16], &[1, 0]), LayoutError::TileTooLarge);
    let many = Layout::vectorised_1d(1 << 30, 4, 4).unwrap_err();
    assert_eq!(many, LayoutError::TooManyBits { level: Level::Register, bits: 23, most: 16 });
    let outside = "layout<[4], register = [4], lane = [], warp = [], block = []>".parse::<Layout>().unwrap_err();
    assert_eq!(outside, LayoutError::OutsideTile { level: Level::Register, bit: 0 });
    let syntax = "layout<[4], register = [1], lanes = [], warp = [], block = []>".parse::<Layout>().unwrap_err();
    assert_eq!(syntax.to_string(), "expected `=` at byte 32 of the layout");
    let line = Layout::vectorised_1d(64, 1, 1).unwrap();
    assert_eq!(line.slice(1).unwrap_err(), LayoutError::Axis { axis: 1, rank: 1 });
    assert_eq!(line.reshape(&[32]).unwrap_err(), LayoutError::ElementCount { from: 64, to: 32 });
    assert_eq!(line.transpose().unwrap_err(), LayoutError::Rank { expected: 2, found: 1 });
    assert_eq!(line.invert_and_compose(&Layout::vectorised_1d(32, 1, 1).unwrap()).unwrap_err(), LayoutError::ShapesDiffer);

    let identity = |bits| Layout::identity(&[64], bits).unwrap();
    let error = |src: &Layout, dst: &Layout, bits| conversion(src, dst, bits).unwrap_err();
    assert_eq!(error(&line, &identity([0, 5, 1, 0]), 32), LayoutError::ThreadsDiffer { level: Level::Warp });
    assert_eq!(error(&identity([1, 4, 0, 1]), &identity([1, 4, 0, 1]), 12), LayoutError::ElementBits { bits: 12 });
    let swapped: Layout = "layout<[64], register = [32], lane = [2, 4, 8, 16], warp = [], block = [1]>".parse().unwrap();
    assert_eq!(error(&identity([1, 4, 0, 1]), &swapped, 32), LayoutError::CrossesBlocks);
    let half: Layout = "layout<[64], register = [0], lane = [2, 4, 8, 16], warp = [], block = [1]>".parse().unwrap();
    assert_eq!(error(&half, &identity([1, 4, 0, 1]), 32), LayoutError::NotSurjective);
}
