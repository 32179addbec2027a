//! Plans of conversions, run element by element on a model of the machine that shares no code with the planner.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kernel_lang::layout::{Access, Conversion, Coordinate, Layout, Level, Memory, SharedPlan, ShufflePlan, conversion};
use proptest::prelude::*;
use proptest::sample::select;

use crate::strategies::{coordinates, pairs, scrambled};

pub(crate) type Tile = HashMap<Coordinate, u64>;

/// The value at every coordinate: the row-major index of its element, which identifies the element after a conversion.
pub(crate) fn tile(layout: &Layout) -> Tile {
    coordinates(layout).map(|coordinate| (coordinate, layout.flat_index(coordinate))).collect()
}

fn with_copies(mut tile: Tile, copies: &[(u32, u32)]) -> Tile {
    let whole = tile.clone();
    for (coordinate, value) in &whole {
        for &(register, _) in copies.iter().filter(|(_, from)| *from == coordinate.register) {
            tile.insert(Coordinate { register, ..*coordinate }, *value);
        }
    }
    tile
}

pub(crate) fn run_shuffle(plan: &ShufflePlan, src: &Layout) -> Tile {
    let held = tile(src);
    let mut result = Tile::new();
    for round in &plan.rounds {
        let mut sent: HashMap<(u32, u32, u32), BTreeSet<u32>> = HashMap::new();
        for coordinate in coordinates(src).filter(|coordinate| coordinate.register == 0) {
            let Coordinate { lane, warp, block, .. } = coordinate;
            let from = round.lane ^ plan.source_lane.at(lane, warp, block);
            assert!(plan.exchanges(round) || from == lane, "a round without an exchange reads from another lane");
            let into = round.receive ^ plan.receive.at(lane, warp, block);
            // The register is computed by the sender, from the sender's id.
            let register = round.send ^ plan.send.at(from, warp, block);
            sent.entry((from, warp, block)).or_default().insert(register);
            if into >= plan.registers {
                continue;
            }
            for (send, receive) in plan.packed_registers() {
                let value = held[&Coordinate { register: register ^ send, lane: from, warp, block }];
                let twice = result.insert(Coordinate { register: into ^ receive, lane, warp, block }, value);
                assert_eq!(twice, None, "a register is filled twice");
            }
        }
        assert!(sent.values().all(|registers| registers.len() == 1), "a lane sends two registers at once");
    }
    with_copies(result, &plan.copies)
}

/// Runs one side of a plan, giving `(coordinate, offset)` of each element moved, and counts the wavefronts of each instruction
/// of each warp from the addresses: lanes in groups that move up to 128 bytes, each group as often as its fullest bank has
/// words.
fn run_access(access: &Access, layout: &Layout, element_bits: u32) -> Vec<(Coordinate, u32)> {
    let bytes = element_bits / 8;
    let group = 32.min(128 / (access.vector * bytes).max(4));
    let [_, lanes, warps, blocks] = Level::ALL.map(|level| 1u32 << layout.bits(level));
    let mut moved = Vec::new();
    for instruction in &access.instructions {
        let (xor, add) = access.split(instruction);
        for (warp, block) in (0..warps).flat_map(|warp| (0..blocks).map(move |block| (warp, block))) {
            let mut wavefronts = 0;
            for first in (0..lanes).step_by(group as usize) {
                let mut banks: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
                for lane in (first..(first + group).min(lanes)).filter(|lane| lane & access.idle.lane == 0) {
                    let thread = access.thread.at(lane, warp, block);
                    let offset = thread ^ instruction.offset;
                    assert_eq!((thread ^ xor) + add, offset);
                    assert_eq!(offset % access.vector, 0, "a vector is not aligned");
                    assert_eq!(instruction.registers.len() as u32, access.vector);
                    for (i, &register) in instruction.registers.iter().enumerate() {
                        if warp & access.idle.warp == 0 {
                            moved.push((Coordinate { register, lane, warp, block }, offset + i as u32));
                        }
                        let word = (offset + i as u32) * bytes / 4;
                        for word in word..word + bytes.div_ceil(4) {
                            banks.entry(word % 32).or_default().insert(word);
                        }
                    }
                }
                wavefronts += banks.values().map(BTreeSet::len).max().unwrap_or(0);
            }
            assert_eq!(wavefronts as u32, access.wavefronts, "wavefronts of {access:?}");
        }
    }
    moved
}

pub(crate) fn run_shared(plan: &SharedPlan, src: &Layout, dst: &Layout) -> Tile {
    let held = tile(src);
    let mut memory: HashMap<(u32, u32), (u64, u32)> = HashMap::new();
    for (coordinate, offset) in run_access(&plan.store, src, plan.element_bits) {
        assert!((offset + 1) * plan.element_bits / 8 <= plan.shared_bytes());
        let before = memory.insert((coordinate.block, offset), (held[&coordinate], coordinate.warp));
        assert_eq!(before, None, "an offset is written twice");
    }
    let mut result = Tile::new();
    for (coordinate, offset) in run_access(&plan.load, dst, plan.element_bits) {
        let (value, writer) = memory[&(coordinate.block, offset)];
        assert!(!plan.within_warps || writer == coordinate.warp, "a warp reads what another wrote");
        assert_eq!(result.insert(coordinate, value), None, "a register is loaded twice");
    }
    with_copies(result, &plan.copies)
}

fn element_bits() -> impl Strategy<Value = u32> {
    select(vec![8u32, 16, 32, 64])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

    #[test]
    fn conversions_bring_every_element_home((src, dst) in pairs(), element_bits in element_bits()) {
        let wanted = tile(&dst);
        let result = match conversion(&src, &dst, element_bits).unwrap() {
            Conversion::None => tile(&src),
            Conversion::Registers(from) => {
                let held = tile(&src);
                coordinates(&dst).map(|p| (p, held[&Coordinate { register: from[p.register as usize], ..p }])).collect()
            }
            Conversion::Shuffle(plan) => run_shuffle(&plan, &src),
            Conversion::Shared(plan) => run_shared(&plan, &src, &dst),
        };
        prop_assert_eq!(result, wanted);
    }

    #[test]
    fn shuffles_exist_whenever_warps_keep_their_elements((src, dst) in pairs(), element_bits in element_bits()) {
        let of_warp = |layout: &Layout| {
            let mut held: BTreeMap<(u32, u32), BTreeSet<u64>> = BTreeMap::new();
            for p in coordinates(layout) {
                held.entry((p.warp, p.block)).or_default().insert(layout.flat_index(p));
            }
            held
        };
        let (from, to) = (of_warp(&src), of_warp(&dst));
        let inside = to.iter().all(|(warp, wanted)| wanted.is_subset(&from[warp]));
        match ShufflePlan::new(&src, &dst, element_bits).unwrap() {
            Some(plan) => {
                prop_assert!(inside);
                prop_assert_eq!(run_shuffle(&plan, &src), tile(&dst));
                // No round is wasted when warps want all that they have.
                if from == to && plan.packed.is_empty() {
                    let (short, _) = dst.without_register_copies();
                    prop_assert_eq!(plan.rounds.len(), short.registers_per_thread() as usize);
                }
            }
            None => prop_assert!(!inside || from != to),
        }
    }

    #[test]
    fn swizzled_memory_has_no_conflicts((src, dst) in pairs(), element_bits in element_bits()) {
        let plan = SharedPlan::new(&src, &dst, element_bits).unwrap();
        prop_assert_eq!(run_shared(&plan, &src, &dst), tile(&dst));
        prop_assert_eq!((plan.store.bank_conflicts, plan.load.bank_conflicts), (0, 0));
    }

    /// Wavefronts are asserted in `run_access`; any memory will do, most of them conflict.
    #[test]
    fn any_memory_works_and_its_conflicts_are_counted((src, dst) in pairs(), element_bits in element_bits(), seed in scrambled(10, 20)) {
        let bits = src.index_bits();
        let columns: Vec<u64> = seed.iter().map(|&column| u64::from(column)).filter(|&column| column < 1 << bits).collect();
        let mut memories = vec![Memory::row_major(&src)];
        memories.extend((columns.len() == bits).then(|| Memory::new(columns)).flatten());
        for memory in memories {
            for offset in 0..memory.elements() {
                prop_assert_eq!(memory.offset(memory.element(offset)), Some(offset));
            }
            if src.bits(Level::Block) == 0 {
                let plan = SharedPlan::with_memory(&src, &dst, element_bits, memory).unwrap();
                prop_assert_eq!(run_shared(&plan, &src, &dst), tile(&dst));
            }
        }
    }
}
