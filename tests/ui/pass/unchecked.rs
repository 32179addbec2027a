//! A kernel without bounds checks, launched in an `unsafe` block.

use galatea::prelude::*;

/// # Safety
/// `y` has at least `N` elements.
#[kernel(N = 64, unchecked)]
pub fn fill<T: Element, const N: usize>(y: PtrMut<T>, value: T) {
    store(y + arange(0, N), value);
}

fn main() -> galatea::Result<()> {
    let mut y = Device::cpu().zeros::<bool>(64)?;
    // SAFETY: `y` has 64 elements.
    unsafe { fill::<bool, 64>(&mut y, true) }.grid(1).launch()?;
    assert_eq!(y.to_vec()?, [true; 64]);
    Ok(())
}
