//! Numbers that differ from run to run; the seed is printed.

use std::time::SystemTime;

/// xorshift64 (Marsaglia, *Xorshift RNGs*, 2003).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new() -> Random {
        let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
        println!("seed {seed}");
        Random(seed)
    }

    pub(crate) fn seeded(seed: u64) -> Random {
        Random(seed | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Below that.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16) as usize % end
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.next() >> 32) as u8).collect()
    }
}
