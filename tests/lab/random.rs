//! Random numbers that are the same for a test on every device.

use galatea::Device;

use super::Lab;

impl Lab {
    pub(crate) fn new(device: Device, seed: u64, name: &str) -> Lab {
        let state = name.bytes().fold(seed ^ 0x517c_c1b7_2722_0a95, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        Lab { device, state: state | 1 }
    }

    /// Any 64 bits: xorshift*.
    pub(crate) fn random(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number from 0 to `end - 1`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.random() >> 16) as usize % end.max(1)
    }

    /// A number of an interval.
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (self.random() >> 11) as f64 / 2f64.powi(53) * (high - low)
    }
}
