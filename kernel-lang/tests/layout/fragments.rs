//! The fragments of matrix products: instruction by instruction, both operands and the sums have the elements that belong together.

use kernel_lang::layout::{Fragments, Layout, LayoutError, Multiplier};
use proptest::prelude::*;

use crate::strategies::{at, coordinates, power};

/// Extents `[m, n, k]` or `[batch, m, n, k]`, for a multiplier.
fn extents(multiplier: Multiplier) -> impl Strategy<Value = Vec<u32>> {
    let [m, n, k] = multiplier.least();
    let batch = prop::option::of(power(2));
    (batch, power(2), power(2), power(2)).prop_map(move |(batch, rows, columns, terms)| {
        let extents = [m * rows, n * columns, k * terms];
        batch.into_iter().chain(extents).collect()
    })
}

fn mma() -> impl Strategy<Value = (u32, Vec<u32>)> {
    prop::sample::select(&[8, 16, 32, 64][..]).prop_flat_map(|element_bits| (Just(element_bits), extents(Multiplier::Mma { element_bits })))
}

/// The index in `[batch, row, column]`, where tiles without a batch are the first of one.
fn index(layout: &Layout, register: u32, lane: u32, warp: u32, block: u32) -> [u32; 3] {
    let index = layout.apply(register, lane, warp, block);
    if let [row, column] = index[..] { [0, row, column] } else { index.try_into().expect("tiles have two or three axes") }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The formulas of the figures of the PTX ISA, of `m16n8k*`: `group` is the lane divided by 4, `member` the remainder.
    #[test]
    fn instructions_multiply_what_belongs_together((element_bits, extents) in mma(), warps in power(3), ctas in power(2)) {
        let multiplier = Multiplier::Mma { element_bits };
        let Fragments { a, b, accumulator } = Fragments::new(&extents, multiplier, warps, ctas).unwrap();
        let (k, depth) = (*extents.last().unwrap(), multiplier.least()[2]);
        // The elements of a register; a run has `run` registers, of one instruction or of two.
        let (word, steps) = (depth / 8, k / depth);
        let run = multiplier.run(k) / word;
        let (of_a, of_b) = (a.registers_per_thread() / word, b.registers_per_thread() / word);
        let sums = accumulator.registers_per_thread() / 4;
        let (rows, columns) = (of_a / (4 * steps), of_b / (2 * steps));
        let batch = rows * columns / sums;
        let (rows, columns) = (rows / batch, columns / batch);
        for (block, warp, number) in (0..ctas).flat_map(|block| (0..warps).flat_map(move |warp| (0..sums).map(move |number| (block, warp, number)))) {
            let (matrix, row, column) = (number / (rows * columns), number / columns % rows, number % columns);
            let mut terms = Vec::new();
            for step in 0..steps {
                // Register `2 * half + lower` of `a` and register `half` of `b`.
                let element_a = |half: u32, lower: u32, element: u32, lane: u32| {
                    let begin = 2 * run * ((matrix * rows + row) * (2 * steps / run) + 2 * step / run);
                    index(&a, (begin + lower * run + 2 * step % run + half) * word + element, lane, warp, block)
                };
                let element_b = |half: u32, element: u32, lane: u32| index(&b, (2 * ((matrix * columns + column) * steps + step) + half) * word + element, lane, warp, block);
                for (member, half, element) in (0..4).flat_map(|member| (0..2).flat_map(move |half| (0..word).map(move |element| (member, half, element)))) {
                    let term = element_b(half, element, member)[1];
                    terms.push(term);
                    for group in 0..8 {
                        let lane = 4 * group + member;
                        prop_assert_eq!(element_b(half, element, lane)[1], term);
                        for lower in 0..2 {
                            let [of_batch, of_row, of_column] = index(&accumulator, 4 * number + 2 * lower, lane, warp, block);
                            prop_assert_eq!(element_a(half, lower, element, lane), [of_batch, of_row, term]);
                            // The column of a sum is the group of the lane that has it of `b`.
                            let other = element_b(half, element, 4 * (2 * member));
                            prop_assert_eq!([other[0], other[2]], [of_batch, of_column]);
                            let next = index(&accumulator, 4 * number + 2 * lower + 1, lane, warp, block);
                            prop_assert_eq!(next, [of_batch, of_row, element_b(half, element, 4 * (2 * member + 1))[2]]);
                        }
                    }
                }
            }
            terms.sort_unstable();
            prop_assert!(terms.into_iter().eq(0..k), "every term is added once");
        }
    }

    /// Each thread has neighbours of a row, and the CTAs that have sums have what these take.
    #[test]
    fn operands_of_fused_multiply_adds_are_in_the_cta_of_their_sums(extents in extents(Multiplier::Fma), warps in power(3), ctas in power(2)) {
        let Fragments { a, b, accumulator } = Fragments::new(&extents, Multiplier::Fma, warps, ctas).unwrap();
        let of_block = |layout: &Layout, block: u32| coordinates(layout).filter(|at| at.block == block).map(|p| at(layout, p)).collect::<std::collections::HashSet<_>>();
        for block in 0..ctas {
            let (left, right) = (of_block(&a, block), of_block(&b, block));
            let (rank, k) = (a.rank(), *extents.last().unwrap());
            for sum in of_block(&accumulator, block) {
                for term in 0..k {
                    let mut element = sum.clone();
                    element[rank - 1] = term;
                    prop_assert!(left.contains(&element));
                    let mut element = sum.clone();
                    element[rank - 2] = term;
                    prop_assert!(right.contains(&element));
                }
            }
        }
        for layout in [a, b, accumulator] {
            prop_assert!(layout.is_surjective());
            let column = |index: &[u32]| index[layout.rank() - 1];
            let width = of_block(&layout, 0).iter().map(|index| column(index) + 1).max().unwrap().min(4);
            prop_assert!((0..width).all(|register| column(&layout.apply(register, 0, 0, 0)) == register));
        }
    }
}

#[test]
fn extents_without_fragments_are_errors() {
    let error = |extents: &[u32], bits| Fragments::new(extents, Multiplier::Mma { element_bits: bits }, 4, 1).unwrap_err();
    assert_eq!(error(&[8, 8, 16], 16), LayoutError::ElementCount { from: 8, to: 16 });
    assert_eq!(error(&[16, 8, 16], 8), LayoutError::ElementCount { from: 16, to: 32 });
    assert_eq!(error(&[16, 8, 4], 64), LayoutError::ElementCount { from: 4, to: 8 });
    assert_eq!(error(&[3, 16, 8, 8], 32), LayoutError::NotAPowerOfTwo { value: 3 });
    assert_eq!(error(&[16, 8], 32), LayoutError::Rank { expected: 3, found: 2 });
}
