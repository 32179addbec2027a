//! `#[kernel]` on a struct.

use galatea::prelude::*;

#[kernel]
struct Fill;

fn main() {}
