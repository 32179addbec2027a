//! The persistent entry of a variant, and its launches: the parameters and the tensor maps of each are made once.
//!
//! The address of a tensor is in its tensor map, so launches that differ only in an address have different maps. A model launches a kernel with a few hundred tensors,
//! over and over, and memory that was freed is used again. So the table of launches has a bounded number of rows, and a new launch takes the place of an old one.

use std::sync::{Arc, Mutex, PoisonError};

use kernel_lang::launch_value::persistent_entry::{MappedTensor, TensorMap};
use kernel_lang::launch_value::{LaunchValues, PersistentEntry};

use crate::kernel::launch_values::Asked;
use crate::kernel::tensor_map::EncodedMap;

/// The rows of the table, of which the hash of a launch selects one.
const ROWS: usize = 64;
/// The launches of a row.
const WAYS: usize = 4;

/// The persistent entry of a variant. `F` is the function of the device.
#[derive(Debug)]
pub(crate) struct Persistent<F> {
    pub(crate) function: F,
    /// The threads of a CTA.
    pub(crate) threads: u32,
    /// The bytes of shared memory of a CTA.
    pub(crate) shared_bytes: u32,
    /// The CTAs that the device holds at the same time.
    most_ctas: u64,
    values: LaunchValues,
    asked: Asked,
    maps: Box<[TensorMap]>,
    /// The latest launch of a row comes first.
    launches: Mutex<Box<[Row]>>,
}

type Row = [Option<Launch>; WAYS];

#[derive(Debug)]
struct Launch {
    grid: [u32; 3],
    /// The bits that are asked for, in the order of `Persistent::asked`.
    asked: Box<[u64]>,
    /// `None` if the usual entry runs the launch.
    prepared: Option<Arc<Prepared>>,
}

/// A launch of the persistent entry.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The number of CTAs, along the first axis.
    pub(crate) ctas: u32,
    /// The parameters after the kernel's own, one a word.
    pub(crate) parameters: Box<[u64]>,
    /// The tensor maps, which follow.
    pub(crate) maps: Box<[EncodedMap]>,
}

impl<F> Persistent<F> {
    pub(crate) fn new(function: F, entry: PersistentEntry, values: LaunchValues, multiprocessors: u64) -> Persistent<F> {
        let PersistentEntry { threads, shared_bytes, ctas_per_multiprocessor, maps, .. } = entry;
        Persistent {
            function,
            threads,
            shared_bytes,
            most_ctas: multiprocessors * u64::from(ctas_per_multiprocessor),
            asked: Asked::of(&values),
            values,
            maps: maps.into(),
            launches: Mutex::new((0..ROWS).map(|_| Row::default()).collect()),
        }
    }

    /// The launch of this entry for a launch with these words and this number of programs along each axis. `None` if the usual entry runs it: the first
    /// launch value is not true in all programs, or a tensor map cannot be made.
    pub(crate) fn prepare(
        &self,
        words: &[&u64],
        grid: [u32; 3],
        encode: impl Fn(&TensorMap, &MappedTensor) -> Option<EncodedMap>,
    ) -> Option<Arc<Prepared>> {
        if words.len() < self.values.asked().len() {
            // The text is not about this kernel.
            return None;
        }
        let mut rows = self.launches.lock().unwrap_or_else(PoisonError::into_inner);
        let row = &mut rows[self.asked.hash(words, grid) as usize % ROWS];
        let is_alike = |launch: &&Launch| launch.grid == grid && self.asked.is_alike(&launch.asked, words);
        if let Some(launch) = row.iter().flatten().find(is_alike) {
            return launch.prepared.clone();
        }
        let prepared = self.make(words, grid, encode).map(Arc::new);
        row.rotate_right(1);
        row[0] = Some(Launch { grid, asked: self.asked.of_words(words), prepared: prepared.clone() });
        prepared
    }

    #[cold]
    fn make(&self, words: &[&u64], grid: [u32; 3], encode: impl Fn(&TensorMap, &MappedTensor) -> Option<EncodedMap>) -> Option<Prepared> {
        let words: Vec<u64> = words.iter().map(|word| **word).collect();
        let parameters = self.values.parameters(&words, grid);
        if !self.values.is_first_true(&parameters, grid) {
            return None;
        }
        let maps = self.maps.iter().map(|map| encode(map, &map.tensor(&parameters)?)).collect::<Option<_>>()?;
        let programs = grid.iter().map(|programs| u64::from(*programs)).fold(1, u64::saturating_mul);
        let ctas = u32::try_from(programs.min(self.most_ctas)).ok()?;
        Some(Prepared { ctas, parameters: parameters.into(), maps })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const PTX: &str = "
// persistent entry: blocks
// 128 threads and 1024 bytes of shared memory a CTA, 2 CTAs a multiprocessor
// map_0: f32, box [8], swizzle 0, address launch_1, extents [launch_2], strides []
// launch values:
// kernel @launch_values(%x: ptr<f32>, %n: i64) {
//     %10, %11, %12 = launch_value () {
//         %0 = address %x : i64
//         %1 = const {value = 15} : i64
//         %2 = and %0, %1 : i64
//         %3 = const {value = 0} : i64
//         %4 = eq %2, %3 : bool
//         %5 = const {value = 1000} : i64
//         %6 = lt %n, %5 : bool
//         %7 = and %4, %6 : bool
//         yield %7, %0, %n
//     } : bool, i64, i64
//     return
// }
";

    fn persistent() -> Persistent<()> {
        let (entry, values) = PersistentEntry::of_ptx(PTX).unwrap().unwrap();
        Persistent::new((), entry, values, 132)
    }

    /// A map whose first bytes are the address and the extent.
    fn encode(_: &TensorMap, tensor: &MappedTensor) -> Option<EncodedMap> {
        let mut map = EncodedMap([0; 128]);
        map.0[..8].copy_from_slice(&tensor.address.to_le_bytes());
        map.0[8..16].copy_from_slice(&tensor.extents[0].to_le_bytes());
        Some(map)
    }

    #[test]
    fn a_launch_has_the_maps_of_its_tensors() {
        let persistent = persistent();
        let launch = persistent.prepare(&[&0x1000, &77, &40], [3, 2, 1], encode).unwrap();
        assert_eq!((launch.ctas, &*launch.parameters), (6, &[1, 0x1000, 40][..]));
        assert_eq!(launch.maps[0].0[..16], [[0, 0x10, 0, 0, 0, 0, 0, 0], [40, 0, 0, 0, 0, 0, 0, 0]].concat());
        assert_eq!(persistent.prepare(&[&0x1000, &77, &40], [3, 200, 1], encode).unwrap().ctas, 264);
        assert_eq!(persistent.prepare(&[&0x1000, &77, &40], [u32::MAX; 3], encode).unwrap().ctas, 264);
        assert!(persistent.prepare(&[&0x1000, &77, &1000], [3, 2, 1], encode).is_none(), "the first launch value is 0");
        assert!(persistent.prepare(&[&0x1004, &77, &40], [3, 2, 1], encode).is_none(), "an address that no tensor map has");
        assert!(persistent.prepare(&[&0x1000, &77, &0], [3, 2, 1], encode).is_none(), "no tensor map has no elements");
        assert!(persistent.prepare(&[&0x2000, &77, &40], [3, 2, 1], |_, _| None).is_none(), "the map is refused");
        assert!(persistent.prepare(&[&0x1000, &77], [3, 2, 1], encode).is_none(), "the kernel has fewer words");
    }

    #[test]
    fn maps_are_made_once_for_tensors_that_alternate() {
        let persistent = persistent();
        let made = Cell::new(0);
        let count = |map: &TensorMap, tensor: &MappedTensor| {
            made.set(made.get() + 1);
            encode(map, tensor)
        };
        for distance in [1 << 4, 1 << 10, 1 << 21, 1 << 30] {
            made.set(0);
            for round in 0..10 {
                for tensor in 1..=ROWS as u64 {
                    let launch = persistent.prepare(&[&(distance * tensor), &round, &7], [1, 1, 1], count).unwrap();
                    assert_eq!(*launch.parameters, [1, distance * tensor, 7]);
                }
            }
            assert!(made.get() < 2 * ROWS, "{} maps for {ROWS} tensors that lie {distance} bytes apart", made.get());
        }
    }

    #[test]
    fn launches_of_other_grids_have_other_ctas() {
        let persistent = persistent();
        for programs in (1..1000).chain(1..1000) {
            let launch = persistent.prepare(&[&0x1000, &77, &40], [1, programs, 1], encode).unwrap();
            assert_eq!(launch.ctas, programs.min(264));
        }
    }

    #[test]
    fn a_new_launch_takes_the_place_of_an_old_one() {
        let persistent = persistent();
        for tensor in 1..10_000u64 {
            let launch = persistent.prepare(&[&(16 * tensor), &1, &7], [1, 1, 1], encode).unwrap();
            assert_eq!(*launch.parameters, [1, 16 * tensor, 7]);
        }
        let kept = persistent.launches.lock().unwrap().iter().flatten().flatten().count();
        assert_eq!(kept, ROWS * WAYS);
        // Of the launches of one row, the last ones are kept.
        let row = |address: &u64| persistent.asked.hash(&[address, &1, &7], [1, 1, 1]) as usize % ROWS;
        let of_row: Vec<u64> = (1..10_000).map(|tensor| 16 * tensor).filter(|address| row(address) == 0).take(2 * WAYS).collect();
        of_row.iter().for_each(|address| _ = persistent.prepare(&[address, &1, &7], [1, 1, 1], encode));
        for address in &of_row[WAYS..] {
            let known = persistent.prepare(&[address, &1, &7], [1, 1, 1], |_, _| panic!("a map is made again"));
            assert_eq!(known.unwrap().parameters[1], *address);
        }
    }
}
