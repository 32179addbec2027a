//! `assume` and `multiple_of`: right where they hold, found by checked launches where they do not, and never a way out of a tensor.

use galatea::Error;
use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::check_bits;

tests![hold, mistaken, mistaken_and_checked, tiles];

/// Without the assumptions the same kernel, whose results they must not change.
#[kernel(N = 64, ASSUMING = [true, false])]
fn strided<const N: usize, const ASSUMING: bool>(x: Ptr<f32>, y: PtrMut<f32>, n: usize, stride: usize) {
    if ASSUMING {
        assume((n > 0) & (n <= 1000));
        assume(stride % 16 == 0);
    }
    let at = program_id(0) * N + arange(0, N);
    let mut v = load(x + at, mask = at < n);
    if n == 0 {
        v = -v;
    }
    v += (stride % 8) as f32;
    for i in 0..cdiv(stride, 16) {
        v += (i + multiple_of(stride, 4) % 2) as f32;
    }
    store(y + at, v, mask = at < n);
}

fn hold(lab: &mut Lab) {
    for (n, stride) in [(1, 16), (100, 64), (999, 48), (1000, 0)] {
        let host = lab.values::<f32>(n);
        let x = lab.input(&host);
        let (mut plain, mut assuming) = (lab.output::<f32>(n), lab.output::<f32>(n));
        strided::<64, false>(x.slice(), &mut plain.slice(), n, stride).grid(cdiv(n, 64)).launch().unwrap();
        strided::<64, true>(x.slice(), &mut assuming.slice(), n, stride).grid(cdiv(n, 64)).launch().unwrap();
        let (plain, assuming) = (plain.read(), assuming.read());
        let iterations = (0..stride / 16).map(|i| i as f32);
        for i in 0..n {
            let want = iterations.clone().fold(host[i] + 0.0, |sum, iteration| sum + iteration);
            assert!(plain[i].to_bits() == want.to_bits() || plain[i].is_nan() && want.is_nan(), "{i}: {} and {want}", plain[i]);
            assert!(assuming[i].to_bits() == plain[i].to_bits() || plain[i].is_nan(), "{i}: {} and {}", assuming[i], plain[i]);
        }
    }
}

const TRUSTING: u32 = line!() + 2;
#[kernel(N = 256)]
fn trusting<const N: usize>(x: Ptr<i32>, y: PtrMut<i32>, n: usize, first: usize) {
    assume(n >= 256);
    assume(first < 100);
    let at = multiple_of(first, 16) + arange(0, N);
    if n >= 256 {
        store(y + at, load(x + at, other = -1) + 1);
    }
}

/// The lab's outputs notice what is written beside them, and the simulator what is read beside tensors.
fn mistaken(lab: &mut Lab) {
    let host = lab.values::<i32>(300);
    let x = lab.input(&host);
    for first in [0usize, 7, 299, 1 << 40] {
        let mut y = lab.output::<i32>(211);
        let before = y.before().to_vec();
        trusting::<256>(x.slice(), &mut y.slice(), 3, first).grid(1).launch().unwrap();
        for (i, got) in y.read().into_iter().enumerate() {
            // Whether the branch was taken is unspecified; what it stores is not.
            let stored = if i >= first && i < first + 256 { host.get(i).map_or(0, |x| x.wrapping_add(1)) } else { before[i] };
            assert!(got == before[i] || got == stored, "element {i} is {got}");
        }
    }
}

fn mistaken_and_checked(lab: &mut Lab) {
    let host: Vec<i32> = (0..400).collect();
    let x = lab.input(&host);
    for (n, first, line) in [(256, 96, None), (255, 0, Some(1)), (256, 100, Some(2)), (256, 7, Some(3))] {
        let mut y = lab.output::<i32>(400);
        let result = trusting::<256>(x.slice(), &mut y.slice(), n, first).grid(1).checked().launch();
        match (result, line) {
            (Ok(()), None) => {}
            (Err(Error::AssertionFailed(failed)), Some(below)) => {
                assert_eq!(failed.message, "assumption failed");
                assert_eq!(failed.line, TRUSTING + below);
            }
            (result, line) => panic!("{result:?} where {line:?} was expected"),
        }
    }
}

#[kernel(N = 128)]
fn of_tiles<const N: usize>(x: Ptr<i32>, y: PtrMut<i32>) {
    let at = arange(0, N);
    let index = load(x + at);
    assume((index >= 0) & (index < 128));
    store(y + index, multiple_of(at * 4, 4) as i32);
}

fn tiles(lab: &mut Lab) {
    let mut host: Vec<i32> = (0..128).collect();
    for i in (1..128).rev() {
        host.swap(i, lab.below(i + 1));
    }
    let (x, mut y) = (lab.input(&host), lab.output::<i32>(128));
    of_tiles::<128>(x.slice(), &mut y.slice()).grid(1).launch().unwrap();
    let got = y.read();
    check_bits(&(0..128).map(|i| got[host[i] as usize]).collect::<Vec<i32>>(), |i| 4 * i as i32);
    host[77] = 128;
    let x = lab.input(&host);
    let mut y = lab.output::<i32>(128);
    let failed = of_tiles::<128>(x.slice(), &mut y.slice()).grid(1).checked().launch();
    assert!(matches!(failed, Err(Error::AssertionFailed(_))), "{failed:?}");
}
