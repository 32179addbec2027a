//! A simulated GPU in a program without the feature `sim`.

use galatea::prelude::*;

fn main() -> galatea::Result<()> {
    let device = Device::sim(Target::SM_90A)?;
    println!("{device}");
    Ok(())
}
