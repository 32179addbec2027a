//! The layout of matrix fragments: maps a lane, a register and an element to a row and a column.
//!
//! The ISA has one figure for each shape and type (PTX ISA, 9.7.14.5.1 to 9.7.14.5.13). In units of registers instead of elements all
//! figures are the same. Four neighbouring lanes share a row, and eight such groups cover eight rows. The second register of a lane belongs
//! to the second half of the rows; the registers after it repeat this for the second half of k.
//!
//! ```text
//! A (16 rows)       k of register 0   k of register 2         B           column 0 .. 7
//! rows 0 to 7     { lane 0 .. lane 3  lane 0 .. lane 3 }      register 0  { lanes 0, 4 .. 28 }   k ascends
//!                 { ..    lane 31     ..     lane 31  }                   { lanes 3, 7 .. 31 }   downwards
//! rows 8 to 15      register 1        register 3              register 1  { lanes 0, 4 .. 28 }
//! ```
//!
//! A 32-bit register holds as many elements along k as fit, the lowest k in the low bits. An `.f64` register holds one element.

/// The row and the column (k) of an element of A with 16 rows. A register has `per_register` elements.
pub(crate) fn a16(lane: usize, register: usize, element: usize, per_register: usize) -> (usize, usize) {
    (lane / 4 + register % 2 * 8, (lane % 4 + register / 2 * 4) * per_register + element)
}

/// The row and the column (k) of an element of A with 8 rows.
pub(crate) fn a8(lane: usize, register: usize, element: usize, per_register: usize) -> (usize, usize) {
    (lane / 4, (lane % 4 + register * 4) * per_register + element)
}

/// The row (k) and the column of an element of B.
pub(crate) fn b(lane: usize, register: usize, element: usize, per_register: usize) -> (usize, usize) {
    ((lane % 4 + register * 4) * per_register + element, lane / 4)
}

/// The row and the column of element `index` of C or D: two adjacent elements of a row, then two in the lower half of the rows. Two `.f16`
/// share a register.
pub(crate) fn accumulator(lane: usize, index: usize) -> (usize, usize) {
    (lane / 4 + index / 2 * 8, lane % 4 * 2 + index % 2)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// The formulas below the figures of A, for each element. `a[i]` is element `i % per_register` of register `i / per_register`, `group`
    /// is `%laneid >> 2` and `thread` is `%laneid % 4`.
    #[test]
    fn a_as_the_figures_say() {
        for lane in 0..32 {
            let (group, thread) = (lane >> 2, lane % 4);
            let at = |i: usize, per_register: usize| a16(lane, i / per_register, i % per_register, per_register);
            // 9.7.14.5.8: m16n8k16, floating point.
            for i in 0..8 {
                let row = if i < 2 || (4..6).contains(&i) { group } else { group + 8 };
                let column = if i < 4 { thread * 2 + (i & 1) } else { thread * 2 + (i & 1) + 8 };
                assert_eq!(at(i, 2), (row, column));
            }
            // 9.7.14.5.7: m16n8k8 with .f16 and .bf16, with .tf32, with .f64.
            for i in 0..4 {
                assert_eq!(at(i, 2), (if i < 2 { group } else { group + 8 }, thread * 2 + (i & 1)));
                assert_eq!(at(i, 1), (if i % 2 == 0 { group } else { group + 8 }, if i < 2 { thread } else { thread + 4 }));
            }
            // 9.7.14.5.8: m16n8k16 with .f64.
            for i in 0..8 {
                let column = if i % 2 == 0 { i * 2 + thread } else { i * 2 - 2 + thread };
                assert_eq!(at(i, 1), (if i % 2 == 0 { group } else { group + 8 }, column));
            }
            // 9.7.14.5.10: m16n8k32; its first half is 9.7.14.5.9, m16n8k16 with 8-bit elements.
            for i in 0..16 {
                let row = if i < 4 || (8..12).contains(&i) { group } else { group + 8 };
                let column = if i < 8 { thread * 4 + (i & 3) } else { thread * 4 + (i & 3) + 16 };
                assert_eq!(at(i, 4), (row, column));
            }
            // 9.7.14.5.11: m16n8k64.
            for i in 0..32 {
                let row = if i < 8 || (16..24).contains(&i) { group } else { group + 8 };
                let column = if i < 16 { thread * 8 + (i & 7) } else { thread * 8 + (i & 7) + 32 };
                assert_eq!(at(i, 8), (row, column));
            }
            // 9.7.14.5.13: m16n8k256.
            for i in 0..128 {
                let row = if i < 32 || (64..96).contains(&i) { group } else { group + 8 };
                let column = if i < 64 { thread * 32 + (i & 31) } else { thread * 32 + (i & 31) + 128 };
                assert_eq!(at(i, 32), (row, column));
            }
            // 9.7.14.5.2 to 9.7.14.5.5: eight rows.
            assert_eq!(a8(lane, 0, 0, 1), (group, thread));
            assert_eq!(a8(lane, 0, 3, 4), (group, thread * 4 + 3));
        }
    }

    #[test]
    fn b_and_c_as_the_figures_say() {
        for lane in 0..32 {
            let (group, thread) = (lane >> 2, lane % 4);
            for i in 0..4 {
                let row = if i < 2 { thread * 2 + (i & 1) } else { thread * 2 + (i & 1) + 8 };
                assert_eq!(b(lane, i / 2, i % 2, 2), (row, group), "9.7.14.5.8");
                assert_eq!(b(lane, i, 0, 1), (thread + i * 4, group), "9.7.14.5.8, .f64");
                assert_eq!(accumulator(lane, i), (if i < 2 { group } else { group + 8 }, thread * 2 + (i & 1)));
            }
            for i in 0..8 {
                let row = if i < 4 { thread * 4 + (i & 3) } else { thread * 4 + (i & 3) + 16 };
                assert_eq!(b(lane, i / 4, i % 4, 4), (row, group), "9.7.14.5.10");
            }
        }
    }

    #[test]
    fn every_element_is_held_once() {
        for (registers, per_register) in [(4, 2), (2, 2), (4, 4), (8, 1), (4, 32)] {
            let coordinates = |at: &dyn Fn(usize, usize, usize) -> (usize, usize), registers: usize| {
                let all = (0..32).flat_map(|lane| (0..registers).map(move |register| (lane, register)));
                all.flat_map(|(lane, register)| (0..per_register).map(move |element| at(lane, register, element))).collect::<HashSet<_>>()
            };
            let k = registers * per_register * 2;
            let of_a = coordinates(&|lane, register, element| a16(lane, register, element, per_register), registers);
            assert_eq!(of_a.len(), 16 * k);
            assert!(of_a.iter().all(|&(row, column)| row < 16 && column < k));
            let of_b = coordinates(&|lane, register, element| b(lane, register, element, per_register), registers / 2);
            assert_eq!(of_b.len(), 8 * k);
            assert!(of_b.iter().all(|&(row, column)| row < k && column < 8));
        }
    }
}
