//! Layouts against brute force: every claim of the algebra is checked element by element.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kernel_lang::layout::{Access, Conversion, Layout, LayoutError, Level, Matrix, Memory, Place, SharedPlan, ShufflePlan, conversion};
use proptest::prelude::*;
use proptest::sample::{Index, select};

// ---- layouts to test ----

/// All places of a layout.
fn places(layout: &Layout) -> impl Iterator<Item = Place> + use<> {
    let [registers, lanes, warps, blocks] = Level::ALL.map(|level| 1u32 << layout.bits(level));
    (0..registers * lanes * warps * blocks).map(move |n| Place {
        register: n % registers,
        lane: n / registers % lanes,
        warp: n / registers / lanes % warps,
        block: n / registers / lanes / warps,
    })
}

fn at(layout: &Layout, place: Place) -> Vec<u32> {
    layout.apply(place.register, place.lane, place.warp, place.block)
}

fn power(most: u32) -> impl Strategy<Value = u32> {
    (0..=most).prop_map(|bits| 1 << bits)
}

/// A shape of up to three axes and 2^10 elements.
fn shapes() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![prop::collection::vec(power(10), 1..=1), prop::collection::vec(power(5), 2..=2), prop::collection::vec(power(3), 3..=3),]
}

/// Any linear map at all: bases are random elements, often not single bits, often dependent.
fn any_layout(shape: Vec<u32>, bits: [usize; 4]) -> impl Strategy<Value = Layout> {
    let total: usize = bits.iter().sum();
    prop::collection::vec(any::<u32>(), total).prop_map(move |values| {
        let mut values = values.into_iter();
        let elements: u32 = shape.iter().product();
        let flat: Vec<u32> = vec![elements];
        let bases = bits.map(|n| values.by_ref().take(n).map(|value| vec![value % elements]).collect());
        Layout::new(&flat, &bases).unwrap().reshape(&shape).unwrap()
    })
}

fn some_layout() -> impl Strategy<Value = Layout> {
    (shapes(), [0..5usize, 0..4usize, 0..3usize, 0..2usize]).prop_flat_map(|(shape, bits)| any_layout(shape, bits))
}

/// A random bijection: identity, then additions of one basis to another, then a shuffle. `mixing` 0 leaves single bits.
fn scrambled(bits: usize, mixing: usize) -> impl Strategy<Value = Vec<u32>> {
    let basis: Vec<u32> = (0..bits).map(|bit| 1 << bit).collect();
    let additions = prop::collection::vec((any::<Index>(), any::<Index>()), 0..=mixing);
    (Just(basis).prop_shuffle(), additions).prop_map(move |(mut basis, additions)| {
        for (a, b) in additions {
            let (a, b) = (a.index(bits.max(1)), b.index(bits.max(1)));
            if a != b {
                basis[a] ^= basis[b];
            }
        }
        basis
    })
}

/// Layouts that hold every element, with copies at random places. Threads: `lanes` and `warps` bits, one block bit for
/// `block`, which stands for the tile's last bit.
fn covering(shape: Vec<u32>, lanes: usize, warps: usize, block: bool, mixing: usize) -> impl Strategy<Value = Layout> {
    let elements: u32 = shape.iter().product();
    let tile_bits = elements.trailing_zeros() as usize - usize::from(block);
    let slots = lanes + warps;
    (scrambled(tile_bits, mixing), prop::collection::vec(0..4u32, slots), 0..2usize).prop_map(move |(basis, copy, copies)| {
        let mut basis = basis.into_iter();
        let mut threads: Vec<u32> = copy.iter().map(|&dice| if dice == 0 { 0 } else { basis.next().unwrap_or(0) }).collect();
        let mut registers: Vec<u32> = basis.collect();
        if copies == 1 {
            registers.push(threads.first().copied().unwrap_or(0)); // a copy that is not a zero basis
        }
        let warp = threads.split_off(lanes);
        let wrap = |values: Vec<u32>| values.into_iter().map(|value| vec![value]).collect::<Vec<_>>();
        let blocks = if block { vec![vec![elements / 2]] } else { vec![] };
        Layout::new(&[elements], &[wrap(registers), wrap(threads), wrap(warp), blocks]).unwrap().reshape(&shape).unwrap()
    })
}

/// Two layouts of one tile on the same threads; every other pair keeps the warps in place.
fn pairs() -> impl Strategy<Value = (Layout, Layout)> {
    (shapes(), 0..=5usize, 0..=2usize, any::<bool>(), select(vec![0usize, 0, 3, 20])).prop_flat_map(
        |(shape, lanes, warps, same_warps, mixing)| {
            let block = lanes == 3 && shape.iter().product::<u32>() > 1;
            let one = covering(shape.clone(), lanes, warps, block, mixing);
            let other = covering(shape, lanes, warps, block, mixing);
            (one, other).prop_map(move |(src, dst)| {
                if !same_warps {
                    return (src, dst);
                }
                // dst becomes a reshuffle of the registers and lanes of src, still with its warps.
                let bases = Level::ALL.map(|level| (0..src.bits(level)).map(|bit| src.basis(level, bit).unwrap()).collect::<Vec<_>>());
                let [mut registers, mut threads, warp, blocks] = bases;
                let turn = registers.len().min(1);
                registers.rotate_left(turn);
                for (register, lane) in registers.iter_mut().zip(&mut threads) {
                    if lane.iter().sum::<u32>() % 3 != 0 {
                        std::mem::swap(register, lane);
                    }
                }
                let dst = Layout::new(src.shape(), &[registers, threads, warp, blocks]).unwrap();
                (src, dst)
            })
        },
    )
}

// ---- the map ----

proptest! {
    #[test]
    fn apply_is_linear(layout in some_layout(), a in any::<Index>(), b in any::<Index>()) {
        let all: Vec<Place> = places(&layout).collect();
        let (a, b) = (all[a.index(all.len())], all[b.index(all.len())]);
        let sum = Place {
            register: a.register ^ b.register, lane: a.lane ^ b.lane, warp: a.warp ^ b.warp, block: a.block ^ b.block,
        };
        let xor: Vec<u32> = at(&layout, a).iter().zip(at(&layout, b)).map(|(a, b)| a ^ b).collect();
        prop_assert_eq!(at(&layout, sum), xor);
    }

    #[test]
    fn matrix_and_place_are_apply(layout in some_layout()) {
        for (number, place) in places(&layout).enumerate() {
            prop_assert_eq!(layout.place(number as u64), place);
            prop_assert_eq!(layout.matrix().apply(number as u64), layout.flat_index(place));
            let flat = at(&layout, place).iter().zip(layout.shape()).fold(0, |flat, (i, extent)| flat * extent + i);
            prop_assert_eq!(u64::from(flat), layout.flat_index(place));
        }
    }

    #[test]
    fn text_round_trips(layout in some_layout(), tail in "[ @a-z>]*") {
        let text = layout.to_string();
        prop_assert_eq!(&text.parse::<Layout>().unwrap(), &layout);
        let spaced = text.replace(',', " ,\n ").replace('[', " [ ");
        prop_assert_eq!(&spaced.parse::<Layout>().unwrap(), &layout);
        let (parsed, used) = Layout::parse_prefix(&format!("{text}{tail}")).unwrap();
        prop_assert_eq!((parsed, used), (layout, text.len()));
    }

    #[test]
    fn no_text_panics(layout in some_layout(), from in any::<Index>(), to in any::<Index>(), junk in "[\\[(,)>0-9é ]{0,3}") {
        let text = layout.to_string();
        let (a, b) = (from.index(text.len()), to.index(text.len()));
        let broken = format!("{}{junk}{}", &text[..a.min(b)], &text[a.max(b)..]);
        if let Ok(parsed) = broken.parse::<Layout>() {
            prop_assert_eq!(parsed.to_string().parse::<Layout>().unwrap(), parsed);
        }
    }

    #[test]
    fn held_once_or_more_is_counted(layout in some_layout()) {
        let all: Vec<Place> = places(&layout).collect();
        let mut holders: HashMap<u64, Vec<Place>> = HashMap::new();
        for &place in &all {
            holders.entry(layout.flat_index(place)).or_default().push(place);
        }
        prop_assert_eq!(layout.is_injective(), holders.len() == all.len());
        prop_assert_eq!(layout.is_surjective(), holders.len() as u64 == layout.elements());
        let free = layout.free_bits();
        for places in holders.values() {
            let bound = places.iter().filter(|p| {
                p.register & free.register | p.lane & free.lane | p.warp & free.warp | p.block & free.block == 0
            });
            prop_assert_eq!(bound.count(), 1);
        }
        let (short, kept) = layout.without_register_copies();
        prop_assert_eq!(short.free_bits().register, 0);
        for place in places(&short) {
            let register = kept.iter().enumerate().fold(0, |sum, (bit, &from)| sum | (place.register >> bit & 1) << from);
            prop_assert_eq!(at(&short, place), at(&layout, Place { register, ..place }));
        }
        let of = |layout: &Layout| places(layout).map(|p| (p.lane, p.warp, p.block, layout.flat_index(p))).collect::<BTreeSet<_>>();
        prop_assert_eq!(of(&short), of(&layout));
    }

    #[test]
    fn inverses_compose_to_the_identity(basis in scrambled(9, 20), layout in some_layout()) {
        let matrix = Matrix::new(basis.iter().map(|&b| b.into()).collect());
        let inverse = matrix.inverse(9).unwrap();
        prop_assert_eq!(matrix.compose(&inverse), Matrix::identity(9));
        prop_assert_eq!(inverse.compose(&matrix), Matrix::identity(9));
        for vector in layout.matrix().kernel() {
            prop_assert!(vector != 0 && layout.matrix().apply(vector) == 0);
        }
        prop_assert_eq!(layout.matrix().kernel().len() + layout.matrix().rank(), layout.matrix().columns().len());
        match layout.pseudo_inverse() {
            Err(error) => prop_assert!(error == LayoutError::NotSurjective && !layout.is_surjective()),
            Ok(found) => for element in 0..layout.elements() {
                prop_assert_eq!(layout.flat_index(layout.place(found.apply(element))), element);
            }
        }
        prop_assert_eq!(layout.inverse().is_some(), layout.is_injective() && layout.is_surjective());
    }

    #[test]
    fn invert_and_compose_finds_the_same_element((src, dst) in pairs()) {
        let map = src.invert_and_compose(&dst).unwrap();
        for (number, place) in places(&src).enumerate() {
            prop_assert_eq!(dst.flat_index(dst.place(map.apply(number as u64))), src.flat_index(place));
        }
    }

    #[test]
    fn runs_are_what_a_thread_holds(layout in some_layout(), axis in 0..3usize) {
        let run = layout.contiguous_per_thread(axis);
        prop_assert!(axis < layout.rank() || run.elements() == 1);
        let spread = |part: u32| run.bits.iter().enumerate().fold(0, |sum, (bit, &to)| sum | (part >> bit & 1) << to);
        let mut disjoint = true;
        for place in places(&layout).filter(|p| p.register & spread(u32::MAX) == 0) {
            let base = at(&layout, place);
            for part in 1..run.elements() {
                let mut expected = base.clone();
                expected[axis] ^= part;
                disjoint &= expected[axis] == base[axis] + part;
                prop_assert_eq!(at(&layout, Place { register: place.register | spread(part), ..place }), expected);
            }
        }
        prop_assert_eq!(run.disjoint, disjoint);
        // One element further is not a matter of one register bit.
        if axis < layout.rank() && run.elements() < layout.shape()[axis] {
            let mut next = vec![0; layout.rank()];
            next[axis] = run.elements();
            prop_assert!((0..layout.bits(Level::Register)).all(|bit| layout.basis(Level::Register, bit) != Some(next.clone())));
        }
        let adds = places(&layout).all(|p| {
            let (thread, register) = (at(&layout, Place { register: 0, ..p }), layout.apply(p.register, 0, 0, 0));
            at(&layout, p).iter().zip(thread.iter().zip(&register)).all(|(&sum, (a, b))| sum == a + b)
        });
        prop_assert_eq!(layout.registers_add(), adds);
    }
}

// ---- constructors ----

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
        for place in places(&layout) {
            let register = digits(place.register % each, &size, &order);
            let repeat = digits(place.register / each, &repeats, &order);
            let (lane, warp) = (digits(place.lane, &threads, &order), digits(place.warp, &warps, &order));
            let index: Vec<u32> = (0..shape.len()).map(|axis| {
                let warp = repeat[axis] * warps[axis] + warp[axis];
                let thread = warp * threads[axis] + lane[axis];
                (thread * size[axis] + register[axis]) % shape[axis]
            }).collect();
            prop_assert_eq!(at(&layout, place), index);
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
        let flat = layout.reshape(&[layout.elements() as u32]).unwrap();
        for place in places(&layout) {
            let index = at(&layout, place);
            let mut without = index.clone();
            without.remove(axis);
            prop_assert_eq!(at(&sliced, place), without);
            let mut with = index.clone();
            with.insert(axis, 0);
            prop_assert_eq!(at(&expanded, place), with);
            prop_assert_eq!(at(&permuted, place), order.iter().map(|&axis| index[axis]).collect::<Vec<_>>());
            prop_assert_eq!(at(&flat, place), vec![layout.flat_index(place) as u32]);
            if rank >= 2 {
                let mut swapped = index.clone();
                swapped.swap(rank - 1, rank - 2);
                prop_assert_eq!(at(&layout.transpose().unwrap(), place), swapped);
            }
        }
        let reversed = Matrix::new((0..layout.index_bits()).rev().map(|bit| 1 << bit).collect());
        let composed = layout.compose(&reversed, layout.shape()).unwrap();
        for place in places(&layout) {
            prop_assert_eq!(composed.flat_index(place), reversed.apply(layout.flat_index(place)));
        }
    }
}

/// The PTX ISA's formulas for row and column, instruction by instruction.
#[test]
fn fragments_are_those_of_the_ptx_isa() {
    let accumulator = Layout::mma_accumulator(&[64, 32], [2, 2]).unwrap();
    for p in places(&accumulator) {
        let (group, member, i) = (p.lane >> 2, p.lane % 4, p.register % 4);
        let (row, column) = (if i < 2 { group } else { group + 8 }, member * 2 + (i & 1));
        // 16 x 8 a warp, 2 x 2 warps, then 2 x 2 repetitions with n first.
        let (repeat_n, repeat_m) = (p.register / 4 % 2, p.register / 8);
        assert_eq!(at(&accumulator, p), [row + 16 * (p.warp / 2) + 32 * repeat_m, column + 8 * (p.warp % 2) + 16 * repeat_n]);
    }
    let a = Layout::mma_operand_a(&[16, 16], 16, [1, 2]).unwrap();
    for p in places(&a) {
        let (group, member, i) = (p.lane >> 2, p.lane % 4, p.register);
        let row = if (0..2).contains(&i) || (4..6).contains(&i) { group } else { group + 8 };
        let column = if i < 4 { member * 2 + (i & 1) } else { member * 2 + (i & 1) + 8 };
        assert_eq!(at(&a, p), [row, column]);
    }
    let b = Layout::mma_operand_b(&[16, 8], 16, [2, 1]).unwrap();
    for p in places(&b) {
        let (group, member, i) = (p.lane >> 2, p.lane % 4, p.register);
        let row = if i < 2 { member * 2 + (i & 1) } else { member * 2 + (i & 1) + 8 };
        assert_eq!(at(&b, p), [row, group]);
    }
    let bytes = Layout::mma_operand_a(&[16, 32], 8, [1, 1]).unwrap();
    for p in places(&bytes) {
        let (group, member, i) = (p.lane >> 2, p.lane % 4, p.register);
        let row = if (0..4).contains(&i) || (8..12).contains(&i) { group } else { group + 8 };
        let column = if i < 8 { member * 4 + (i & 3) } else { member * 4 + (i & 3) + 16 };
        assert_eq!(at(&bytes, p), [row, column]);
    }
    let tf32 = Layout::mma_operand_a(&[16, 8], 32, [1, 1]).unwrap();
    for p in places(&tf32) {
        let (group, member) = (p.lane >> 2, p.lane % 4);
        assert_eq!(at(&tf32, p), [group + 8 * (p.register % 2), member + 4 * (p.register / 2)]);
    }
    let tf32_b = Layout::mma_operand_b(&[8, 8], 32, [1, 1]).unwrap();
    for p in places(&tf32_b) {
        assert_eq!(at(&tf32_b, p), [p.lane % 4 + 4 * p.register, p.lane >> 2]);
    }
    let wgmma = Layout::wgmma_accumulator(&[128, 64], 64, 8).unwrap();
    for p in places(&wgmma) {
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

// ---- conversions ----

type Tile = HashMap<Place, u64>;

/// What every place holds: here the row-major index of its element, as a value that can be followed.
fn tile(layout: &Layout) -> Tile {
    places(layout).map(|place| (place, layout.flat_index(place))).collect()
}

fn with_copies(mut tile: Tile, copies: &[(u32, u32)]) -> Tile {
    let whole = tile.clone();
    for (place, value) in &whole {
        for &(register, _) in copies.iter().filter(|(_, from)| *from == place.register) {
            tile.insert(Place { register, ..*place }, *value);
        }
    }
    tile
}

fn run_shuffle(plan: &ShufflePlan, src: &Layout) -> Tile {
    let held = tile(src);
    let mut result = Tile::new();
    for round in &plan.rounds {
        let mut sent: HashMap<(u32, u32, u32), BTreeSet<u32>> = HashMap::new();
        for place in places(src).filter(|place| place.register == 0) {
            let Place { lane, warp, block, .. } = place;
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
                let value = held[&Place { register: register ^ send, lane: from, warp, block }];
                let twice = result.insert(Place { register: into ^ receive, lane, warp, block }, value);
                assert_eq!(twice, None, "a register is filled twice");
            }
        }
        assert!(sent.values().all(|registers| registers.len() == 1), "a lane sends two registers at once");
    }
    with_copies(result, &plan.copies)
}

/// Runs one side of a plan, giving `(place, offset)` of each element moved, and counts the wavefronts of each instruction
/// of each warp from the addresses: lanes in groups that move up to 128 bytes, each group as often as its fullest bank has
/// words.
fn run_access(access: &Access, layout: &Layout, element_bits: u32) -> Vec<(Place, u32)> {
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
                            moved.push((Place { register, lane, warp, block }, offset + i as u32));
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

fn run_shared(plan: &SharedPlan, src: &Layout, dst: &Layout) -> Tile {
    let held = tile(src);
    let mut memory: HashMap<(u32, u32), (u64, u32)> = HashMap::new();
    for (place, offset) in run_access(&plan.store, src, plan.element_bits) {
        assert!((offset + 1) * plan.element_bits / 8 <= plan.shared_bytes());
        let before = memory.insert((place.block, offset), (held[&place], place.warp));
        assert_eq!(before, None, "an offset is written twice");
    }
    let mut result = Tile::new();
    for (place, offset) in run_access(&plan.load, dst, plan.element_bits) {
        let (value, writer) = memory[&(place.block, offset)];
        assert!(!plan.within_warps || writer == place.warp, "a warp reads what another wrote");
        assert_eq!(result.insert(place, value), None, "a register is loaded twice");
    }
    with_copies(result, &plan.copies)
}

fn element_bits() -> impl Strategy<Value = u32> {
    select(vec![8u32, 16, 32, 64])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn conversions_bring_every_element_home((src, dst) in pairs(), element_bits in element_bits()) {
        let wanted = tile(&dst);
        let result = match conversion(&src, &dst, element_bits).unwrap() {
            Conversion::None => tile(&src),
            Conversion::Registers(from) => {
                let held = tile(&src);
                places(&dst).map(|p| (p, held[&Place { register: from[p.register as usize], ..p }])).collect()
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
            for p in places(layout) {
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
