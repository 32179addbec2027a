//! Project tasks.

fn main() {}
