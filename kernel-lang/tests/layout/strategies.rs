//! Random layouts, and the coordinates of a layout one by one.

use kernel_lang::layout::{Coordinate, Layout, Level};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// All coordinates of a layout.
pub(crate) fn coordinates(layout: &Layout) -> impl Iterator<Item = Coordinate> + use<> {
    let [registers, lanes, warps, blocks] = Level::ALL.map(|level| 1u32 << layout.bits(level));
    (0..registers * lanes * warps * blocks).map(move |n| Coordinate {
        register: n % registers,
        lane: n / registers % lanes,
        warp: n / registers / lanes % warps,
        block: n / registers / lanes / warps,
    })
}

pub(crate) fn at(layout: &Layout, coordinate: Coordinate) -> Vec<u32> {
    layout.apply(coordinate.register, coordinate.lane, coordinate.warp, coordinate.block)
}

pub(crate) fn power(most: u32) -> impl Strategy<Value = u32> {
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

pub(crate) fn some_layout() -> impl Strategy<Value = Layout> {
    (shapes(), [0..5usize, 0..4usize, 0..3usize, 0..2usize]).prop_flat_map(|(shape, bits)| any_layout(shape, bits))
}

/// A random bijection: identity, then additions of one basis to another, then a shuffle. `mixing` 0 leaves single bits.
pub(crate) fn scrambled(bits: usize, mixing: usize) -> impl Strategy<Value = Vec<u32>> {
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

/// Layouts that hold every element, with copies at random coordinates. Threads: `lanes` and `warps` bits, one block bit for
/// `block`, which stands for the tile's last bit and something within the block.
fn covering(shape: Vec<u32>, lanes: usize, warps: usize, block: bool, mixing: usize) -> impl Strategy<Value = Layout> {
    let elements: u32 = shape.iter().product();
    let tile_bits = elements.trailing_zeros() as usize - usize::from(block);
    let slots = lanes + warps;
    (scrambled(tile_bits, mixing), prop::collection::vec(0..4u32, slots), 0..2usize, any::<u32>()).prop_map(
        move |(basis, copy, copies, low)| {
            let mut basis = basis.into_iter();
            let mut threads: Vec<u32> = copy.iter().map(|&dice| if dice == 0 { 0 } else { basis.next().unwrap_or(0) }).collect();
            let mut registers: Vec<u32> = basis.collect();
            if copies == 1 {
                registers.push(threads.first().copied().unwrap_or(0)); // a copy that is not a zero basis
            }
            let warp = threads.split_off(lanes);
            let wrap = |values: Vec<u32>| values.into_iter().map(|value| vec![value]).collect::<Vec<_>>();
            let blocks = if block { vec![vec![elements / 2 + low % (elements / 2)]] } else { vec![] };
            Layout::new(&[elements], &[wrap(registers), wrap(threads), wrap(warp), blocks]).unwrap().reshape(&shape).unwrap()
        },
    )
}

/// Two layouts of one tile on the same threads; every other pair keeps elements in their warps.
pub(crate) fn pairs() -> impl Strategy<Value = (Layout, Layout)> {
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
                let [mut registers, mut threads, mut warp, mut blocks] = bases;
                let turn = registers.len().min(1);
                registers.rotate_left(turn);
                for (register, lane) in registers.iter_mut().zip(&mut threads) {
                    if lane.iter().sum::<u32>() % 3 != 0 {
                        std::mem::swap(register, lane);
                    }
                }
                // The elements of a thread may depend on its warp and block, as long as each warp keeps its elements.
                for (outer, inner) in warp.iter_mut().chain(&mut blocks).zip(registers.iter().chain(&threads)) {
                    if inner.iter().sum::<u32>() % 5 < 2 {
                        outer.iter_mut().zip(inner).for_each(|(outer, inner)| *outer ^= inner);
                    }
                }
                let dst = Layout::new(src.shape(), &[registers, threads, warp, blocks]).unwrap();
                (src, dst)
            })
        },
    )
}
