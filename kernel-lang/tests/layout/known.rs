//! Conversions that kernels make, with the plan each should get.

use kernel_lang::layout::{Conversion, Layout, Memory, SharedPlan, ShufflePlan, conversion};

use crate::conversion::{run_shared, run_shuffle, tile};

fn blocked(shape: [u32; 2], size: [u32; 2], threads: [u32; 2], warps: [u32; 2], order: [usize; 2]) -> Layout {
    Layout::blocked(&shape, &size, &threads, &warps, &order).unwrap()
}

fn shuffle(src: &Layout, dst: &Layout, element_bits: u32) -> ShufflePlan {
    let Conversion::Shuffle(plan) = conversion(src, dst, element_bits).unwrap() else { panic!("not a shuffle") };
    assert_eq!(run_shuffle(&plan, src), tile(dst));
    plan
}

fn shared(src: &Layout, dst: &Layout, element_bits: u32) -> SharedPlan {
    let Conversion::Shared(plan) = conversion(src, dst, element_bits).unwrap() else { panic!("not through shared memory") };
    assert_eq!(run_shared(&plan, src, dst), tile(dst));
    plan
}

/// P of attention: the accumulator of one mma, rounded to 16 bits, is operand A of the next as it stands.
#[test]
fn accumulator_is_the_next_operand() {
    let accumulator = Layout::mma_accumulator(&[64, 64], [4, 1]).unwrap();
    let operand = Layout::mma_operand_a(&[64, 64], 16, [4, 1]).unwrap();
    assert_eq!(conversion(&accumulator, &operand, 16), Ok(Conversion::None));
    let wgmma = Layout::wgmma_accumulator(&[64, 64], 64, 4).unwrap();
    assert_eq!(conversion(&wgmma, &Layout::wgmma_operand_a(&[64, 64], 16, 4).unwrap(), 16), Ok(Conversion::None));
}

/// With 8-bit elements it is not, but its columns stay within the four lanes of a group: two elements a word.
#[test]
fn eight_bit_operands_take_shuffles() {
    let accumulator = Layout::mma_accumulator(&[64, 64], [4, 1]).unwrap();
    let plan = shuffle(&accumulator, &Layout::mma_operand_a(&[64, 64], 8, [4, 1]).unwrap(), 8);
    assert_eq!((plan.packed.len(), plan.rounds.len()), (2, 8));
}

#[test]
fn a_change_of_order_within_threads_renames_registers() {
    let rows = blocked([64, 32], [2, 2], [8, 4], [4, 1], [1, 0]);
    let columns: Layout =
        "layout<[64, 32], register = [(1, 0), (0, 1), (0, 8), (0, 16)], lane = [(0, 2), (0, 4), (2, 0), (4, 0), (8, 0)], \
                           warp = [(16, 0), (32, 0)], block = []>"
            .parse()
            .unwrap();
    let Conversion::Registers(from) = conversion(&rows, &columns, 32).unwrap() else { panic!("not a renaming") };
    assert_eq!(from, [0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15]);
}

/// A copy that every lane has is picked up without leaving the lane.
#[test]
fn dropping_copies_moves_nothing() {
    let all: Layout = "layout<[32], register = [1, 2, 4, 8, 16], lane = [0, 0, 0, 0, 0], warp = [], block = []>".parse().unwrap();
    let one: Layout = "layout<[32], register = [], lane = [1, 2, 4, 8, 16], warp = [], block = []>".parse().unwrap();
    let plan = shuffle(&all, &one, 32);
    assert!(plan.rounds.len() == 1 && plan.rounds.iter().all(|round| !plan.exchanges(round)));
    let gather = shuffle(&one, &all, 32);
    assert_eq!(gather.rounds.len(), 32);
}

#[test]
fn a_lane_transpose_takes_one_round_a_register() {
    let rows = blocked([8, 8], [1, 2], [8, 4], [1, 1], [1, 0]);
    let plan = shuffle(&rows, &rows.transpose().unwrap(), 32);
    assert_eq!(plan.rounds.len(), 2);
}

/// 128-bit accesses on one side, and none of the conflicts that row-major memory would have.
#[test]
fn transposes_go_through_swizzled_memory() {
    for (element_bits, vector, row_major_conflicts) in [(32, 4, 15), (16, 8, 7)] {
        let lanes = 64 / vector;
        let rows = blocked([64, 64], [1, vector], [32 / lanes, lanes], [4, 1], [1, 0]);
        let columns = rows.transpose().unwrap();
        let plan = shared(&rows, &columns, element_bits);
        assert_eq!((plan.store.bank_conflicts, plan.load.bank_conflicts), (0, 0));
        assert_eq!((plan.store.vector, plan.load.vector), (1, vector));
        assert_eq!(plan.shared_bytes(), 64 * 64 * element_bits / 8);
        let plain = SharedPlan::with_memory(&rows, &columns, element_bits, Memory::row_major(&rows)).unwrap();
        assert_eq!(plain.load.bank_conflicts, row_major_conflicts);
    }
}

/// The epilogue of a matrix product.
#[test]
fn accumulators_are_stored_in_rows() {
    let accumulator = Layout::wgmma_accumulator(&[64, 128], 128, 4).unwrap();
    let rows = blocked([64, 128], [1, 8], [2, 16], [4, 1], [1, 0]);
    let plan = shared(&accumulator, &rows, 16);
    assert_eq!((plan.store.vector, plan.load.vector, plan.load.instructions.len()), (4, 8, 8));
    assert_eq!((plan.store.bank_conflicts, plan.load.bank_conflicts), (0, 0));
}

/// Statistics of rows, one element a thread, to the layout that a row's operations want, and back.
#[test]
fn slices_are_stored_once() {
    let slice = blocked([64, 64], [1, 4], [2, 16], [4, 1], [1, 0]).slice(1).unwrap().without_register_copies().0;
    let line = Layout::vectorised_1d(64, 1, 4).unwrap();
    let plan = shared(&slice, &line, 32);
    assert_eq!((plan.store.idle.lane, plan.store.idle.warp, plan.shared_bytes()), (0b1111, 0, 256));
    assert_eq!(shared(&line, &slice, 32).store.idle.warp, 0b10);
}

fn lanes(text: &str) -> Layout {
    format!("layout<{text}, block = []>").parse().unwrap()
}

/// Registers 3 and 4 of one side and 7 and 8 of the other have a sum in common, and it makes a vector for both.
#[test]
fn vectors_are_found_among_sums() {
    let src = lanes("[16], register = [3, 4], lane = [1, 8], warp = []");
    let dst = lanes("[16], register = [7, 8], lane = [2, 1], warp = []");
    let plan = SharedPlan::new(&src, &dst, 32).unwrap();
    assert_eq!(run_shared(&plan, &src, &dst), tile(&dst));
    assert_eq!(plan.memory.columns()[0], 7);
    assert!(plan.store.vector >= 2 && plan.load.vector >= 2);
}

/// The source's warps hold copies and the destination's do not: each warp moves only what it wants, but a lane that has two
/// elements of it sends them one after the other.
#[test]
fn scattering_takes_more_rounds() {
    let src = lanes("[64], register = [1], lane = [2, 4, 8, 16, 32], warp = [0]");
    let dst = lanes("[64], register = [], lane = [1, 2, 4, 8, 16], warp = [32]");
    let plan = ShufflePlan::new(&src, &dst, 32).unwrap().unwrap();
    assert_eq!(run_shuffle(&plan, &src), tile(&dst));
    assert_eq!(plan.rounds.len(), 2);
}

/// Lanes that want the same read the same, to leave another lane with those elements to others.
#[test]
fn copies_take_fewer_rounds() {
    let src = lanes("[4], register = [1], lane = [0, 2], warp = []");
    let dst = lanes("[4], register = [], lane = [0, 1], warp = []");
    let plan = ShufflePlan::new(&src, &dst, 32).unwrap().unwrap();
    assert_eq!(run_shuffle(&plan, &src), tile(&dst));
    assert_eq!(plan.rounds.len(), 1);
}

/// A lane does not receive elements that it holds itself.
#[test]
fn own_elements_stay() {
    let exchanges = |src: &Layout, dst: &Layout| {
        let plan = ShufflePlan::new(src, dst, 32).unwrap().unwrap();
        assert_eq!(run_shuffle(&plan, src), tile(dst));
        plan.rounds.iter().filter(|round| plan.exchanges(round)).count()
    };
    let src = lanes("[4], register = [1, 2], lane = [0, 0], warp = []");
    assert_eq!(exchanges(&src, &lanes("[4], register = [2], lane = [0, 1], warp = []")), 0);
    let src = lanes("[8], register = [1, 2], lane = [0, 4], warp = []");
    assert_eq!(exchanges(&src, &lanes("[8], register = [4], lane = [1, 2], warp = []")), 1);
}
