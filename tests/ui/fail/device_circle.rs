use galatea::prelude::*;

#[device]
fn even(n: usize) -> usize {
    if n == 0 { 1 } else { odd(n - 1) }
}

#[device]
fn odd(n: usize) -> usize {
    if n == 0 { 0 } else { even(n - 1) }
}

#[kernel]
fn k(y: PtrMut<i64>, n: usize) {
    store(y, even(n));
}

fn main() {}
