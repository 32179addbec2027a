//! Global memory: allocations at virtual addresses. The module records which bytes were written and which allocations were freed.
//!
//! Addresses are never reused, and a gap separates allocations. An access next to an allocation or to a freed allocation is therefore
//! always detected. Words are atomic, because CTAs run on several host threads and a race in the kernel must be no data race in the
//! simulator.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::fault::FaultKind;
use crate::memory::POISON;
use crate::ptx::Space;

/// The first address of an allocation. Lower addresses belong to the windows of shared, local and parameter memory.
const FIRST: u64 = 0x10_0000_0000;
/// The alignment of every allocation.
const ALIGNMENT: u64 = 256;
/// The minimum distance between two allocations.
const GAP: u64 = 64 << 10;

/// The reason why an operation of the host on global memory failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// There is not enough memory left.
    #[error("out of memory: {requested} bytes are wanted, and {free} of {total} bytes are free")]
    OutOfMemory {
        /// The number of requested bytes.
        requested: u64,
        /// The number of free bytes.
        free: u64,
        /// The total number of bytes.
        total: u64,
    },
    /// No allocation contains the address, or begins there.
    #[error("no allocation at address {address:#x}")]
    UnknownAddress {
        /// The address.
        address: u64,
    },
    /// The allocation was freed.
    #[error("the allocation at address {address:#x} was freed")]
    Freed {
        /// The address.
        address: u64,
    },
    /// A range extends beyond its allocation.
    #[error("{bytes} bytes at address {address:#x} reach beyond the {length}-byte allocation at {start:#x}")]
    OutOfRange {
        /// The start of the range.
        address: u64,
        /// The length of the range.
        bytes: u64,
        /// The start of the allocation.
        start: u64,
        /// The length of the allocation.
        length: u64,
    },
    /// The length of a fill pattern is not 1, 2, 4 or 8 bytes.
    #[error("a pattern of {bytes} bytes: 1, 2, 4 or 8 are possible")]
    Pattern {
        /// The length of the pattern.
        bytes: usize,
    },
}

/// The global memory of one simulated GPU.
pub(crate) struct GlobalMemory {
    total: u64,
    state: RwLock<State>,
}

struct State {
    view: GlobalView,
    next: u64,
    used: u64,
}

/// The set of allocations at one time, such as the start of a launch. All views share the bytes of the allocations.
#[derive(Clone, Default)]
pub(crate) struct GlobalView {
    /// Live allocations, sorted by address.
    live: Arc<Vec<Arc<Allocation>>>,
    /// The address and the length of each freed allocation, sorted by address.
    freed: Arc<Vec<(u64, u64)>>,
}

/// An allocation of global memory.
pub(crate) struct Allocation {
    address: u64,
    bytes: u64,
    /// The name of a variable; `None` for memory that the host allocated.
    label: Option<String>,
    is_read_only: bool,
    words: Box<[AtomicU64]>,
    /// One bit for each byte: whether the byte was written.
    written: Box<[AtomicU64]>,
    /// Locked during atomic updates of more than one word.
    wide: Mutex<()>,
}

/// A copy of some bytes of memory.
pub(crate) struct Snapshot {
    address: u64,
    words: Vec<u64>,
    written: Vec<u64>,
}

impl GlobalMemory {
    /// A memory of this size without allocations.
    pub(crate) fn new(total: u64) -> GlobalMemory {
        GlobalMemory { total, state: RwLock::new(State { view: GlobalView::default(), next: FIRST, used: 0 }) }
    }

    /// The current set of allocations.
    pub(crate) fn view(&self) -> GlobalView {
        self.state.read().unwrap_or_else(PoisonError::into_inner).view.clone()
    }

    /// Allocates uninitialised memory.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<u64, MemoryError> {
        self.reserve(bytes as u64, None, false, &[])
    }

    /// The free and the total bytes.
    pub(crate) fn free_and_total(&self) -> (u64, u64) {
        let used = self.state.read().unwrap_or_else(PoisonError::into_inner).used;
        (self.total - used, self.total)
    }

    /// Allocates a variable of a module, with its initial value.
    pub(crate) fn allocate_variable(&self, name: &str, value: &[u8], is_read_only: bool) -> Result<u64, MemoryError> {
        self.reserve(value.len() as u64, Some(name.to_owned()), is_read_only, value)
    }

    fn reserve(&self, bytes: u64, label: Option<String>, is_read_only: bool, value: &[u8]) -> Result<u64, MemoryError> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let free = self.total - state.used;
        if bytes > free {
            return Err(MemoryError::OutOfMemory { requested: bytes, free, total: self.total });
        }
        let address = state.next;
        let allocation = Allocation::new(address, bytes, label, is_read_only);
        allocation.put(0, value);
        Arc::make_mut(&mut state.view.live).push(Arc::new(allocation));
        state.used += bytes;
        state.next = (address + bytes + GAP).next_multiple_of(ALIGNMENT);
        Ok(address)
    }

    /// Frees the allocation that begins at this address.
    pub(crate) fn free(&self, address: u64) -> Result<(), MemoryError> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let Ok(index) = state.view.live.binary_search_by_key(&address, |allocation| allocation.address) else {
            return Err(state.view.unknown(address));
        };
        let allocation = Arc::make_mut(&mut state.view.live).remove(index);
        state.used -= allocation.bytes;
        let freed = Arc::make_mut(&mut state.view.freed);
        let index = freed.partition_point(|&(start, _)| start < address);
        freed.insert(index, (address, allocation.bytes));
        Ok(())
    }

    /// Copies bytes from the host into one allocation.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        let view = self.view();
        let (allocation, offset) = view.range(address, bytes.len() as u64)?;
        allocation.put(offset, bytes);
        Ok(())
    }

    /// Copies bytes of one allocation to the host. Uninitialised bytes are `0xff`.
    pub(crate) fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), MemoryError> {
        let view = self.view();
        let (allocation, offset) = view.range(address, bytes.len() as u64)?;
        allocation.get(offset, bytes);
        Ok(())
    }

    /// Copies between allocations, or inside one. Uninitialised bytes stay uninitialised.
    pub(crate) fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<(), MemoryError> {
        let view = self.view();
        let (source, start) = view.range(from, bytes as u64)?;
        let (target, target_start) = view.range(to, bytes as u64)?;
        let mut buffer = vec![0; bytes];
        source.get(start, &mut buffer);
        let written: Vec<bool> = (start..).take(bytes).map(|offset| source.first_unwritten(offset, 1).is_none()).collect();
        target.put(target_start, &buffer);
        for (offset, _) in (target_start..).zip(written).filter(|(_, written)| !written) {
            target.written[(offset / 64) as usize].fetch_and(!(1 << (offset % 64)), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Writes a pattern of 1, 2, 4 or 8 bytes `count` times.
    pub(crate) fn fill(&self, address: u64, pattern: &[u8], count: usize) -> Result<(), MemoryError> {
        if !matches!(pattern.len(), 1 | 2 | 4 | 8) {
            return Err(MemoryError::Pattern { bytes: pattern.len() });
        }
        let view = self.view();
        let (allocation, offset) = view.range(address, (pattern.len() as u64).saturating_mul(count as u64))?;
        // Works in chunks, so that a large fill needs little host memory.
        let chunk = pattern.repeat(count.min(4096));
        let total = pattern.len() * count;
        for start in (0..total).step_by(chunk.len().max(1)) {
            allocation.put(offset + start as u64, &chunk[..chunk.len().min(total - start)]);
        }
        Ok(())
    }
}

impl GlobalView {
    /// The allocation that contains all bytes of the access, and the offset in it.
    pub(crate) fn find(&self, address: u64, bytes: u32) -> Result<(&Allocation, u64), FaultKind> {
        let allocation = self.before(address).filter(|allocation| allocation.holds(address, bytes));
        allocation.map(|allocation| (allocation, address - allocation.address)).ok_or_else(|| self.outside(address, bytes))
    }

    /// Restores memory from a snapshot.
    pub(crate) fn restore(&self, before: &Snapshot) {
        let Some(allocation) = self.before(before.address) else { return };
        let offset = before.address - allocation.address;
        let words = allocation.words[(offset / 8) as usize..].iter().zip(&before.words);
        let written = allocation.written[(offset / 64) as usize..].iter().zip(&before.written);
        words.chain(written).for_each(|(word, &value)| word.store(value, Ordering::Relaxed));
    }

    /// The offset of an address in its allocation, and the description of the allocation.
    pub(crate) fn locate(&self, address: u64) -> (u64, String) {
        self.before(address)
            .map_or((address, "no allocation".to_owned()), |allocation| (address - allocation.address, allocation.describe()))
    }

    /// The last allocation that begins at or before the address.
    fn before(&self, address: u64) -> Option<&Allocation> {
        let after = self.live.partition_point(|allocation| allocation.address <= address);
        after.checked_sub(1).map(|index| &*self.live[index])
    }

    fn freed(&self, address: u64, bytes: u64) -> bool {
        let after = self.freed.partition_point(|&(start, _)| start <= address);
        after > 0 && address.saturating_add(bytes) <= self.freed[after - 1].0 + self.freed[after - 1].1
    }

    /// The number of bytes from an address to the end of its allocation, live or freed; `None` if no allocation contains the address.
    pub(crate) fn bytes_from(&self, address: u64) -> Option<u64> {
        let live = self.before(address).map(|allocation| (allocation.address, allocation.bytes));
        let freed = self.freed.partition_point(|&(start, _)| start <= address).checked_sub(1).map(|index| self.freed[index]);
        let there = |&(start, bytes): &(u64, u64)| address == start || address - start < bytes;
        live.into_iter().chain(freed).find(there).map(|(start, bytes)| start + bytes - address)
    }

    fn outside(&self, address: u64, bytes: u32) -> FaultKind {
        if self.freed(address, 1) {
            return FaultKind::Freed { address, bytes };
        }
        FaultKind::OutOfBounds { space: Space::Global, address, bytes, nearest: self.nearest(address) }
    }

    /// Describes an address outside every allocation, relative to the nearest allocation.
    fn nearest(&self, address: u64) -> Option<String> {
        if address < GAP {
            return Some("a null pointer".to_owned());
        }
        let after = self.live.get(self.live.partition_point(|allocation| allocation.address <= address));
        let ahead = after.map(|allocation| (allocation.address - address, allocation.describe()));
        if let Some(allocation) = self.before(address) {
            let name = allocation.describe();
            let end = allocation.address + allocation.bytes;
            match address.checked_sub(end) {
                None => return Some(format!("it reaches beyond the end of {name}")),
                Some(0) => return Some(format!("it begins at the end of {name}")),
                Some(past) if ahead.as_ref().is_none_or(|(ahead, _)| past <= *ahead) => {
                    return Some(format!("{past} bytes past the end of {name}"));
                }
                Some(_) => {}
            }
        }
        ahead.map(|(ahead, name)| format!("{ahead} bytes before {name}"))
    }

    fn range(&self, address: u64, bytes: u64) -> Result<(&Allocation, u64), MemoryError> {
        let Some(allocation) = self.before(address).filter(|allocation| address - allocation.address <= allocation.bytes) else {
            return Err(self.unknown(address));
        };
        let offset = address - allocation.address;
        if bytes > allocation.bytes - offset {
            let (start, length) = (allocation.address, allocation.bytes);
            return Err(MemoryError::OutOfRange { address, bytes, start, length });
        }
        Ok((allocation, offset))
    }

    fn unknown(&self, address: u64) -> MemoryError {
        if self.freed(address, 0) { MemoryError::Freed { address } } else { MemoryError::UnknownAddress { address } }
    }
}

impl Allocation {
    fn new(address: u64, bytes: u64, label: Option<String>, is_read_only: bool) -> Allocation {
        let words = (0..bytes.div_ceil(8)).map(|_| AtomicU64::new(u64::from_ne_bytes([POISON; 8]))).collect();
        let written = (0..bytes.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Allocation { address, bytes, label, is_read_only, words, written, wide: Mutex::new(()) }
    }

    /// The address of the first byte.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Whether the allocation contains all these bytes.
    pub(crate) fn holds(&self, address: u64, bytes: u32) -> bool {
        address >= self.address && address - self.address <= self.bytes && self.bytes - (address - self.address) >= u64::from(bytes)
    }

    /// Loads 1, 2, 4, 8 or 16 naturally aligned bytes. The caller checks bounds.
    pub(crate) fn load(&self, offset: u64, bytes: u32) -> u128 {
        let word = (offset / 8) as usize;
        if bytes == 16 {
            return u128::from(self.word(word)) | u128::from(self.word(word + 1)) << 64;
        }
        u128::from(self.word(word) >> (offset % 8 * 8) & low_bytes(bytes))
    }

    /// Stores 1, 2, 4, 8 or 16 naturally aligned bytes. The caller checks bounds.
    pub(crate) fn store(&self, offset: u64, bytes: u32, value: u128) {
        self.mark_written(offset, bytes);
        let word = (offset / 8) as usize;
        match bytes {
            16 => {
                self.words[word].store(value as u64, Ordering::Release);
                self.words[word + 1].store((value >> 64) as u64, Ordering::Release);
            }
            8 => self.words[word].store(value as u64, Ordering::Release),
            _ => {
                self.update(offset, bytes, |_| value);
            }
        }
    }

    /// Atomically updates 1, 2, 4, 8 or 16 naturally aligned bytes, and returns the old value.
    pub(crate) fn update(&self, offset: u64, bytes: u32, change: impl Fn(u128) -> u128) -> u128 {
        self.mark_written(offset, bytes);
        let word = (offset / 8) as usize;
        if bytes == 16 {
            let _one_at_a_time = self.wide.lock().unwrap_or_else(PoisonError::into_inner);
            let old = self.load(offset, 16);
            let new = change(old);
            self.words[word].store(new as u64, Ordering::Release);
            self.words[word + 1].store((new >> 64) as u64, Ordering::Release);
            return old;
        }
        let (shift, mask) = (offset % 8 * 8, low_bytes(bytes));
        let cell = &self.words[word];
        let mut seen = cell.load(Ordering::Acquire);
        loop {
            let old = u128::from(seen >> shift & mask);
            let new = seen & !(mask << shift) | (change(old) as u64 & mask) << shift;
            match cell.compare_exchange_weak(seen, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return old,
                Err(other) => seen = other,
            }
        }
    }

    /// Copies the part of the range that is inside the allocation. The range begins and ends at multiples of 64 bytes from the allocation's
    /// start.
    pub(crate) fn snapshot(&self, address: u64, bytes: u64) -> Snapshot {
        let start = address.max(self.address) - self.address;
        let end = (address + bytes - self.address).min(self.bytes);
        let copy = |cells: &[AtomicU64], unit: u64| {
            let range = (start / unit) as usize..end.div_ceil(unit) as usize;
            cells[range].iter().map(|cell| cell.load(Ordering::Relaxed)).collect()
        };
        Snapshot { address: self.address + start, words: copy(&self.words, 8), written: copy(&self.written, 64) }
    }

    /// The offset of the first uninitialised byte among these bytes (at most 16, aligned).
    pub(crate) fn first_unwritten(&self, offset: u64, bytes: u32) -> Option<u64> {
        let missing = !(self.written[(offset / 64) as usize].load(Ordering::Relaxed) >> (offset % 64)) & ((1 << bytes) - 1);
        (missing != 0).then(|| offset + u64::from(missing.trailing_zeros()))
    }

    fn mark_written(&self, offset: u64, bytes: u32) {
        let bits = ((1 << bytes) - 1) << (offset % 64);
        let cell = &self.written[(offset / 64) as usize];
        if cell.load(Ordering::Relaxed) & bits != bits {
            cell.fetch_or(bits, Ordering::Relaxed);
        }
    }

    fn word(&self, word: usize) -> u64 {
        self.words[word].load(Ordering::Acquire)
    }

    /// Stores bytes at any offset.
    fn put(&self, offset: u64, bytes: &[u8]) {
        // Stores single bytes up to a word boundary, whole words, and the remaining bytes.
        let first = (offset.next_multiple_of(8) - offset) as usize;
        let (head, rest) = bytes.split_at(first.min(bytes.len()));
        let (words, tail) = rest.as_chunks::<8>();
        let mut next = offset;
        let mut store = |value: u64, bytes: u32| {
            self.store(next, bytes, value.into());
            next += u64::from(bytes);
        };
        head.iter().for_each(|&byte| store(byte.into(), 1));
        words.iter().for_each(|&word| store(u64::from_le_bytes(word), 8));
        tail.iter().for_each(|&byte| store(byte.into(), 1));
    }

    /// Loads bytes from any offset.
    fn get(&self, offset: u64, bytes: &mut [u8]) {
        let byte = |offset: u64| (self.word((offset / 8) as usize) >> (offset % 8 * 8)) as u8;
        let first = (offset.next_multiple_of(8) - offset) as usize;
        let (head, rest) = bytes.split_at_mut(first.min(bytes.len()));
        let (words, tail) = rest.as_chunks_mut::<8>();
        let start = offset.div_ceil(8);
        let end = 8 * (start + words.len() as u64);
        (offset..).zip(head).for_each(|(offset, target)| *target = byte(offset));
        (start..).zip(words).for_each(|(word, target)| *target = self.word(word as usize).to_le_bytes());
        (end..).zip(tail).for_each(|(offset, target)| *target = byte(offset));
    }

    fn describe(&self) -> String {
        match &self.label {
            Some(name) => format!("the {}-byte variable `{name}` at {:#x}", self.bytes, self.address),
            None => format!("a {}-byte allocation at {:#x}", self.bytes, self.address),
        }
    }
}

fn low_bytes(bytes: u32) -> u64 {
    u64::MAX >> (64 - 8 * bytes.min(8))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn allocations_lie_apart_and_are_never_reused() {
        let memory = GlobalMemory::new(1 << 20);
        let mut last = FIRST - GAP;
        for bytes in [0, 1, 256, 257, 70_000] {
            let address = memory.allocate(bytes).unwrap();
            assert!(address.is_multiple_of(ALIGNMENT) && address >= last + GAP, "{address:#x} after {last:#x}");
            last = address + bytes as u64;
            memory.free(address).unwrap();
        }
        assert!(memory.allocate(1 << 20).unwrap() > last, "all is free again, at new addresses");
        let error = memory.allocate(1).unwrap_err();
        assert_eq!(error.to_string(), "out of memory: 1 bytes are wanted, and 0 of 1048576 bytes are free");
    }

    #[test]
    fn mistakes_of_the_host_are_errors() {
        let memory = GlobalMemory::new(1 << 20);
        let address = memory.allocate(10).unwrap();
        memory.write(address, &[1; 10]).unwrap();
        let error = memory.write(address + 8, &[1; 3]).unwrap_err();
        assert_eq!(error.to_string(), format!("3 bytes at address {:#x} reach beyond the 10-byte allocation at {address:#x}", address + 8));
        assert_eq!(memory.read(address + 11, &mut []).unwrap_err(), MemoryError::UnknownAddress { address: address + 11 });
        assert_eq!(memory.free(address + 1).unwrap_err(), MemoryError::UnknownAddress { address: address + 1 });
        assert_eq!(memory.fill(address, &[0; 3], 1).unwrap_err(), MemoryError::Pattern { bytes: 3 });
        memory.free(address).unwrap();
        assert_eq!(memory.free(address).unwrap_err(), MemoryError::Freed { address });
        assert_eq!(memory.read(address, &mut [0]).unwrap_err(), MemoryError::Freed { address });
    }

    #[test]
    fn an_access_outside_names_the_nearest_allocation() {
        let memory = GlobalMemory::new(1 << 30);
        let first = memory.allocate(4096).unwrap();
        let second = memory.allocate_variable("table", &[0; 64], true).unwrap();
        let gone = memory.allocate(64).unwrap();
        memory.free(gone).unwrap();
        let view = memory.view();
        let text = |address| view.find(address, 4).map(|_| ()).unwrap_err().to_string();
        let outside = |address: u64, near: &str| {
            format!("access of 4 bytes at global address {address:#x}, which is outside every allocation ({near})")
        };
        let end = first + 4096;
        assert_eq!(text(end + 4), outside(end + 4, &format!("4 bytes past the end of a 4096-byte allocation at {first:#x}")));
        assert_eq!(text(end), outside(end, &format!("it begins at the end of a 4096-byte allocation at {first:#x}")));
        assert_eq!(text(end - 2), outside(end - 2, &format!("it reaches beyond the end of a 4096-byte allocation at {first:#x}")));
        assert_eq!(text(second - 8), outside(second - 8, &format!("8 bytes before the 64-byte variable `table` at {second:#x}")));
        assert_eq!(text(16), outside(16, "a null pointer"));
        assert_eq!(text(gone + 60), format!("access of 4 bytes at address {:#x}, in memory that was freed", gone + 60));
    }

    #[test]
    fn a_fill_and_a_copy_cover_exactly_their_bytes() {
        let memory = GlobalMemory::new(1 << 20);
        let address = memory.allocate(40_000).unwrap();
        memory.fill(address + 4, &[1, 2, 3, 4], 9_000).unwrap();
        let mut bytes = vec![0; 40_000];
        memory.read(address, &mut bytes).unwrap();
        assert!(bytes[..4].iter().chain(&bytes[36_004..]).all(|&byte| byte == POISON));
        assert!(bytes[4..36_004].chunks(4).all(|chunk| chunk == [1, 2, 3, 4]));
        memory.copy(address + 3, address + 20_000, 4).unwrap();
        memory.read(address + 20_000, &mut bytes[..5]).unwrap();
        assert_eq!(bytes[..5], [POISON, 1, 2, 3, 1]);
        let view = memory.view();
        let unwritten = |address| view.find(address, 1).map(|(allocation, offset)| allocation.first_unwritten(offset, 1).is_some());
        assert_eq!((unwritten(address + 20_000), unwritten(address + 20_001)), (Ok(true), Ok(false)), "what nobody wrote stays so");
    }

    #[test]
    fn updates_of_every_size_are_indivisible() {
        let memory = GlobalMemory::new(1 << 20);
        let address = memory.allocate(64).unwrap();
        memory.write(address, &[0; 64]).unwrap();
        let view = memory.view();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for (offset, bytes) in [(0, 1), (1, 1), (2, 2), (4, 4), (8, 8), (16, 16)] {
                        let (allocation, offset) = view.find(address + offset, bytes).unwrap();
                        (0..1000).for_each(|_| {
                            allocation.update(offset, bytes, |old| old + 1);
                        });
                    }
                });
            }
        });
        let mut bytes = [0; 32];
        memory.read(address, &mut bytes).unwrap();
        assert_eq!(bytes[..2], [(2000 % 256) as u8; 2]);
        assert_eq!(u16::from_le_bytes([bytes[2], bytes[3]]), 2000);
        assert_eq!(bytes[4..8], 2000u32.to_le_bytes());
        assert_eq!(bytes[8..16], 2000u64.to_le_bytes());
        assert_eq!(bytes[16..], 2000u128.to_le_bytes());
    }

    proptest! {
        #[test]
        fn a_load_returns_the_stored_bytes(stores in prop::collection::vec((0u32..5, 0u64..96, any::<u128>()), 1..40)) {
            let memory = GlobalMemory::new(1 << 20);
            let address = memory.allocate(96).unwrap();
            let view = memory.view();
            let mut model = [None; 96];
            for (log, start, value) in stores {
                let bytes = 1 << log;
                let offset = start / u64::from(bytes) * u64::from(bytes);
                let (allocation, _) = view.find(address, 1).unwrap();
                allocation.store(offset, bytes, value);
                for (cell, byte) in model[offset as usize..].iter_mut().zip(&value.to_le_bytes()[..bytes as usize]) {
                    *cell = Some(*byte);
                }
                for log in 0..5 {
                    let offset = start >> log << log;
                    let cells = &model[offset as usize..offset as usize + (1 << log)];
                    let unwritten = cells.iter().position(Option::is_none).map(|position| offset + position as u64);
                    prop_assert_eq!(allocation.first_unwritten(offset, 1 << log), unwritten);
                    let expected = cells.iter().rev().fold(0, |value, cell| value << 8 | u128::from(cell.unwrap_or(POISON)));
                    prop_assert_eq!(allocation.load(offset, 1 << log), expected);
                }
            }
            let mut bytes = [0; 96];
            memory.read(address, &mut bytes).unwrap();
            prop_assert_eq!(bytes, model.map(|cell| cell.unwrap_or(POISON)));
        }

        #[test]
        fn the_host_reads_the_bytes_that_it_wrote(offset in 0usize..40, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let memory = GlobalMemory::new(1 << 20);
            let address = memory.allocate(240).unwrap();
            memory.write(address + offset as u64, &bytes).unwrap();
            let mut all = [0; 240];
            memory.read(address, &mut all).unwrap();
            let mut expected = [POISON; 240];
            expected[offset..offset + bytes.len()].copy_from_slice(&bytes);
            prop_assert_eq!(all, expected);
        }
    }
}
