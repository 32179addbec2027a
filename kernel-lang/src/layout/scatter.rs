//! Reductions that scatter their results among lanes.
//!
//! Lanes that differ only along a reduced axis hold copies of all results. In a *scattered* layout, each of these lanes holds a part of the results: a bit of
//! the lane that only makes copies takes over the basis of a bit of the register.
//!
//! ```text
//! a slice      layout<[8], register = [1, 2], lane = [4, 0, 0], warp = [], block = []>    four results in each of eight lanes
//! scattered    layout<[8], register = [], lane = [4, 2, 1], warp = [], block = []>        one result in each
//! ```

use super::{Layout, Level};

/// A bit of the lane and the bit of the register whose basis it takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trade {
    /// The bit of the lane.
    pub lane: usize,
    /// The bit of the register.
    pub register: usize,
}

impl Layout {
    /// The layout in which as many bits of the lane as possible take over bases from bits of the register. The first registers keep theirs, so that
    /// neighbours remain in a thread.
    ///
    /// ```
    /// use kernel_lang::layout::Layout;
    /// let slice: Layout = "layout<[8], register = [1, 2], lane = [4, 0], warp = [], block = []>".parse().unwrap();
    /// assert_eq!(slice.scattered().to_string(), "layout<[8], register = [1], lane = [4, 2], warp = [], block = []>");
    /// ```
    pub fn scattered(&self) -> Layout {
        let mut bases = self.0.bases.clone();
        let [registers, lanes, ..] = &mut bases;
        registers.retain(|basis| *basis != 0);
        for lane in lanes.iter_mut().filter(|basis| **basis == 0) {
            let Some(basis) = registers.pop() else { break };
            *lane = basis;
        }
        self.with_bases(bases)
    }

    /// The trades that make `to` of this layout, and the layout after them, in which registers that are traded hold copies. `None` if the lanes of `to` hold
    /// anything else.
    pub fn trades(&self, to: &Layout) -> Option<(Layout, Vec<Trade>)> {
        let (mut bases, mut trades) = (self.0.bases.clone(), Vec::new());
        let [registers, lanes, ..] = &mut bases;
        if to.bits(Level::Lane) != lanes.len() {
            return None;
        }
        for (lane, (own, basis)) in lanes.iter_mut().zip(to.flat_bases(Level::Lane)).enumerate().filter(|(_, (own, basis))| *own != *basis)
        {
            let register = registers.iter().position(|register| register == basis).filter(|_| *own == 0)?;
            (*own, registers[register]) = (*basis, 0);
            trades.push(Trade { lane, register });
        }
        Some((self.with_bases(bases), trades))
    }

    fn with_bases(&self, bases: [Vec<u64>; 4]) -> Layout {
        Layout::from_flat(self.shape(), bases).expect("no level has more bits than before")
    }
}
