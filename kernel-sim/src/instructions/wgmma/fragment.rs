//! The register layout of `wgmma` fragments: maps a lane and an element to a row and a column (PTX ISA, "Asynchronous Warpgroup Level
//! Matrix Instructions: Register Fragments"). Rows are those of one warp: 16 of the 64 rows.

/// The row and the column of an element of D, by the index of the element in its lane.
///
/// | lane | 0, 1 | 2, 3 | 4, 5 | .. |
/// |---|---|---|---|---|
/// | 0 | row 0, columns 0, 1 | row 8, columns 0, 1 | row 0, columns 8, 9 | |
/// | 5 | row 1, columns 2, 3 | row 9, columns 2, 3 | row 1, columns 10, 11 | |
pub(super) fn of_result(lane: usize, element: usize) -> (usize, usize) {
    (lane / 4 + element / 2 % 2 * 8, element / 4 * 8 + lane % 4 * 2 + element % 2)
}

/// The row and the column of an element of A. A register has `packed` elements: 4 of 8 bits, 2 of 16 bits or 1 of 32 bits.
pub(super) fn of_input(lane: usize, element: usize, packed: usize) -> (usize, usize) {
    let register = element / packed;
    (lane / 4 + register % 2 * 8, register / 2 * 4 * packed + lane % 4 * packed + element % packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_distributed_as_the_table_shows() {
        let row = |lane| (0..6).map(|element| of_result(lane, element)).collect::<Vec<_>>();
        assert_eq!(row(0), [(0, 0), (0, 1), (8, 0), (8, 1), (0, 8), (0, 9)]);
        assert_eq!(row(5), [(1, 2), (1, 3), (9, 2), (9, 3), (1, 10), (1, 11)]);
        assert_eq!(of_result(31, 127), (15, 255));
    }

    #[test]
    fn inputs_are_distributed_as_the_tables_show() {
        let halves = |lane| (0..8).map(|element| of_input(lane, element, 2)).collect::<Vec<_>>();
        assert_eq!(halves(6), [(1, 4), (1, 5), (9, 4), (9, 5), (1, 12), (1, 13), (9, 12), (9, 13)]);
        let bytes = |lane| (0..16).step_by(4).map(|element| of_input(lane, element, 4)).collect::<Vec<_>>();
        assert_eq!(bytes(1), [(0, 4), (8, 4), (0, 20), (8, 20)]);
        assert_eq!(of_input(1, 3, 4), (0, 7));
        let words = |lane| (0..4).map(|element| of_input(lane, element, 1)).collect::<Vec<_>>();
        assert_eq!(words(7), [(1, 3), (9, 3), (1, 7), (9, 7)]);
    }
}
