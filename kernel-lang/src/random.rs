//! Random choices for tests that write kernels: the same for each run.

/// A linear congruential generator.
pub(crate) struct Random {
    pub(crate) state: u64,
}

impl Random {
    /// A number from 0 to `end - 1`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.state = self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.state >> 33) as usize % end
    }

    /// One of the list.
    pub(crate) fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}
