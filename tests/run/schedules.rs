//! Tiles smaller and larger than the threads: every number of warps with blocks from 1 to 8192.

use galatea::prelude::*;
use galatea::{Element, Float};

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{Class, check};
use crate::value::FloatValue;

tests![warps_and_blocks<f16, f32>, blocks_of_bytes];

macro_rules! warps {
    ($($name:ident, $bytes:ident: $warps:literal;)*) => {
        mod warps {
            use galatea::prelude::*;
            $(
                /// Adds, keeps a tile through a loop, and leaves out lanes by their data. Blocks of 8192 are compiled in process: with few
                /// warps their three tiles must spill, which no embedded kernel may.
                #[kernel(num_warps = $warps, B = [1, 2, 16, 64], T = [f16, f32])]
                pub(super) fn $name<T: Float, const B: usize>(x: Ptr<T>, y: Ptr<T>, out: PtrMut<T>, n: usize, iterations: usize) {
                    let at = program_id(0) * B + arange(0, B);
                    let mask = at < n;
                    let a = load(x + at, mask = mask);
                    let b = load(y + at, mask = mask);
                    let mut sum = a + b;
                    for _ in 0..iterations {
                        sum += b;
                    }
                    store(out + at, sum, mask = mask && a >= b);
                }

                #[kernel(num_warps = $warps, B = [1, 32, 4096])]
                pub(super) fn $bytes<const B: usize>(x: Ptr<u8>, out: PtrMut<u8>, n: usize) {
                    let at = program_id(0) * B + arange(0, B);
                    store(out + at, load(x + at, mask = at < n) ^ 0x5a, mask = at < n);
                }
            )*
        }

        fn warps_and_blocks<T: FloatValue>(lab: &mut Lab) {$(
            one::<T>(lab, 1, |x, y, out, n, iterations| warps::$name::<T, 1>(x, y, out, n, iterations).grid(n).launch());
            one::<T>(lab, 2, |x, y, out, n, iterations| warps::$name::<T, 2>(x, y, out, n, iterations).grid(cdiv(n, 2)).launch());
            one::<T>(lab, 16, |x, y, out, n, iterations| warps::$name::<T, 16>(x, y, out, n, iterations).grid(cdiv(n, 16)).launch());
            one::<T>(lab, 64, |x, y, out, n, iterations| warps::$name::<T, 64>(x, y, out, n, iterations).grid(cdiv(n, 64)).launch());
            one::<T>(lab, 8192, |x, y, out, n, iterations| warps::$name::<T, 8192>(x, y, out, n, iterations).grid(cdiv(n, 8192)).launch());
        )*}

        fn blocks_of_bytes(lab: &mut Lab) {$(
            for n in [1, 31, 33, 4097] {
                let host = lab.values::<u8>(n);
                let x = lab.input(&host);
                let [mut a, mut b, mut c] = [(); 3].map(|()| lab.output::<u8>(n));
                warps::$bytes::<32>(x.slice(), &mut b.slice(), n).grid(cdiv(n, 32)).launch().unwrap();
                warps::$bytes::<4096>(x.slice(), &mut c.slice(), n).grid(cdiv(n, 4096)).launch().unwrap();
                let mut outputs = vec![b, c];
                // Thousands of programs of one element show no more than dozens.
                if n < 100 {
                    warps::$bytes::<1>(x.slice(), &mut a.slice(), n).grid(n).launch().unwrap();
                    outputs.push(a);
                }
                for out in outputs {
                    crate::tolerance::check_bits(&out.read(), |i| host[i] ^ 0x5a);
                }
            }
        )*}
    };
}
warps! {
    w1, bytes_w1: 1;
    w2, bytes_w2: 2;
    w4, bytes_w4: 4;
    w8, bytes_w8: 8;
    w16, bytes_w16: 16;
    w32, bytes_w32: 32;
}

type Run<T> =
    fn(galatea::TensorView<'_, T>, galatea::TensorView<'_, T>, &mut galatea::TensorViewMut<'_, T>, usize, usize) -> galatea::Result<()>;

fn one<T: FloatValue + Element + Float>(lab: &mut Lab, block: usize, run: Run<T>) {
    for n in [1, block - 1, block + 1, (2 * block).min(1000)] {
        let iterations = lab.below(3);
        // Small integers, whose sums are exact.
        let mut numbers = || (0..n).map(|_| T::near(lab.below(64) as f64)).collect::<Vec<T>>();
        let (a, b) = (numbers(), numbers());
        let (x, y) = (lab.input(&a), lab.input(&b));
        let mut out = lab.output::<T>(n);
        run(x.slice(), y.slice(), &mut out.slice(), n, iterations).unwrap();
        let (a, b) = (|i: usize| a[i].wide(), |i: usize| b[i].wide());
        let want = |i: usize| if a(i) >= b(i) { a(i) + b(i) * (1 + iterations) as f64 } else { out.before()[i].wide() };
        check(&out.read(), Class::Rounded, want);
    }
}
