//! The map itself: linear, printed and parsed, inverted, and its bits counted.

use std::collections::{BTreeSet, HashMap};

use kernel_lang::layout::{Coordinate, Layout, LayoutError, Level, Matrix};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::strategies::{at, coordinates, pairs, scrambled, some_layout};

proptest! {
    #[test]
    fn apply_is_linear(layout in some_layout(), a in any::<Index>(), b in any::<Index>()) {
        let all: Vec<Coordinate> = coordinates(&layout).collect();
        let (a, b) = (all[a.index(all.len())], all[b.index(all.len())]);
        let sum = Coordinate {
            register: a.register ^ b.register, lane: a.lane ^ b.lane, warp: a.warp ^ b.warp, block: a.block ^ b.block,
        };
        let xor: Vec<u32> = at(&layout, a).iter().zip(at(&layout, b)).map(|(a, b)| a ^ b).collect();
        prop_assert_eq!(at(&layout, sum), xor);
    }

    #[test]
    fn matrix_and_coordinate_agree_with_apply(layout in some_layout()) {
        for (number, coordinate) in coordinates(&layout).enumerate() {
            prop_assert_eq!(layout.coordinate(number as u64), coordinate);
            prop_assert_eq!(layout.matrix().apply(number as u64), layout.flat_index(coordinate));
            let flat = at(&layout, coordinate).iter().zip(layout.shape()).fold(0, |flat, (i, extent)| flat * extent + i);
            prop_assert_eq!(u64::from(flat), layout.flat_index(coordinate));
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
        let all: Vec<Coordinate> = coordinates(&layout).collect();
        let mut holders: HashMap<u64, Vec<Coordinate>> = HashMap::new();
        for &coordinate in &all {
            holders.entry(layout.flat_index(coordinate)).or_default().push(coordinate);
        }
        prop_assert_eq!(layout.is_injective(), holders.len() == all.len());
        prop_assert_eq!(layout.is_surjective(), holders.len() as u64 == layout.elements());
        let free = layout.free_bits();
        for coordinates in holders.values() {
            let bound = coordinates.iter().filter(|p| {
                p.register & free.register | p.lane & free.lane | p.warp & free.warp | p.block & free.block == 0
            });
            prop_assert_eq!(bound.count(), 1);
        }
        let (short, kept) = layout.without_register_copies();
        prop_assert_eq!(short.free_bits().register, 0);
        for coordinate in coordinates(&short) {
            let register = kept.iter().enumerate().fold(0, |sum, (bit, &from)| sum | (coordinate.register >> bit & 1) << from);
            prop_assert_eq!(at(&short, coordinate), at(&layout, Coordinate { register, ..coordinate }));
        }
        let of = |layout: &Layout| coordinates(layout).map(|p| (p.lane, p.warp, p.block, layout.flat_index(p))).collect::<BTreeSet<_>>();
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
                prop_assert_eq!(layout.flat_index(layout.coordinate(found.apply(element))), element);
            }
        }
        prop_assert_eq!(layout.inverse().is_some(), layout.is_injective() && layout.is_surjective());
    }

    #[test]
    fn invert_and_compose_finds_the_same_element((src, dst) in pairs()) {
        let map = src.invert_and_compose(&dst).unwrap();
        for (number, coordinate) in coordinates(&src).enumerate() {
            prop_assert_eq!(dst.flat_index(dst.coordinate(map.apply(number as u64))), src.flat_index(coordinate));
        }
    }

    #[test]
    fn runs_are_what_a_thread_holds(layout in some_layout(), axis in 0..3usize) {
        let run = layout.contiguous_per_thread(axis);
        prop_assert!(axis < layout.rank() || run.elements() == 1);
        let spread = |part: u32| run.bits.iter().enumerate().fold(0, |sum, (bit, &to)| sum | (part >> bit & 1) << to);
        let mut disjoint = true;
        for coordinate in coordinates(&layout).filter(|p| p.register & spread(u32::MAX) == 0) {
            let base = at(&layout, coordinate);
            for part in 1..run.elements() {
                let mut expected = base.clone();
                expected[axis] ^= part;
                disjoint &= expected[axis] == base[axis] + part;
                prop_assert_eq!(at(&layout, Coordinate { register: coordinate.register | spread(part), ..coordinate }), expected);
            }
        }
        prop_assert_eq!(run.disjoint, disjoint);
        // One element further is not a matter of one register bit.
        if axis < layout.rank() && run.elements() < layout.shape()[axis] {
            let mut next = vec![0; layout.rank()];
            next[axis] = run.elements();
            prop_assert!((0..layout.bits(Level::Register)).all(|bit| layout.basis(Level::Register, bit) != Some(next.clone())));
        }
        let adds = coordinates(&layout).all(|p| {
            let (thread, register) = (at(&layout, Coordinate { register: 0, ..p }), layout.apply(p.register, 0, 0, 0));
            at(&layout, p).iter().zip(thread.iter().zip(&register)).all(|(&sum, (a, b))| sum == a + b)
        });
        prop_assert_eq!(layout.registers_add(), adds);
    }
}
