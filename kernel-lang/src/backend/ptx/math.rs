//! What takes more than one instruction and is no matter of tiles.

use crate::ir::Value;

use super::Emitter;

impl Emitter<'_> {
    /// Splits angles into a remainder and a multiple of pi/2.
    pub(super) fn reduce_pio2(&mut self, _x: Value, _remainder: Value, _quadrant: Value) {
        todo!()
    }
}
