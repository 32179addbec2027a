use galatea::prelude::*;

#[device]
fn factorial(n: usize) -> usize {
    if n == 0 { 1 } else { n * factorial(n - 1) }
}

#[kernel]
fn k(y: PtrMut<i64>, n: usize) {
    store(y, factorial(n));
}

fn main() {}
