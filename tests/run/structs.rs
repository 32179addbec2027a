//! Structs of tiles and scalars, and their functions: in reductions, scans and loops, from other modules and from another crate.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{Class, check, check_ints};
use crate::value::{FloatValue, IntValue};

tests![
    layer_norm<f16, bf16, f32, f64>,
    online_softmax<f16, f32>,
    products_of_complex_numbers<f32, f64>,
    generic_over_constants<i8, i32, u64>,
    parts<f32, f64>,
    of_another_crate<f16, f32>,
    accesses,
];

#[device]
mod moments {
    /// Mean, sum of squared deviations, and number of some values, as Welford has them.
    pub(super) struct Welford<T> {
        mean: Value<T>,
        m2: Value<T>,
        count: Value<T>,
    }

    impl<T: Float> Welford<T> {
        /// Of single values; of none where `is_there` does not hold.
        pub(super) fn of(x: Value<T>, is_there: Value<bool>) -> Self {
            Self { mean: select(is_there, x, 0), m2: zeros_like(x), count: is_there as T }
        }

        /// Of both together.
        pub(super) fn combine(self, other: Self) -> Self {
            let count = self.count + other.count;
            let share = other.count / max(count, 1);
            let delta = other.mean - self.mean;
            Welford { mean: fma(delta, share, self.mean), m2: self.m2 + other.m2 + delta * delta * self.count * share, count }
        }

        pub(super) fn normalize(self, x: Value<T>, eps: T) -> Value<T> {
            let Welford { mean, m2, count } = self;
            (x - mean) * rsqrt(m2 / count + eps)
        }
    }
}

use moments::Welford;

/// A row that is longer than a tile: the tiles' states are combined element by element, then along the tile.
#[kernel]
fn layer_norm_kernel<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize, eps: f32) {
    let row = program_id(0) * n;
    let mut state = Welford::of(zeros::<f32>([N]), full([N], false));
    for start in range(0, n, N) {
        let at = start + arange(0, N);
        state = state.combine(Welford::of(load(x + row + at, mask = at < n) as f32, at < n));
    }
    let whole = reduce(state, 0, |a, b| a.combine(b));
    for start in range(0, n, N) {
        let at = start + arange(0, N);
        let v = load(x + row + at, mask = at < n) as f32;
        store(y + row + at, whole.normalize(v, eps) as T, mask = at < n);
    }
}

fn layer_norm<T: FloatValue>(lab: &mut Lab) {
    for (rows, n) in [(3, 1), (2, 63), (4, 64), (3, 1000), (1, 4097)] {
        let host = lab.numbers::<T>(rows * n, -3.0, 5.0);
        let x = lab.input(&host);
        let mut y = lab.output::<T>(rows * n);
        layer_norm_kernel::<T, 64>(x.slice(), &mut y.slice(), n, 1e-5).grid(rows).launch().unwrap();
        for (row, (got, host)) in y.read().chunks(n).zip(host.chunks(n)).enumerate() {
            let mean = host.iter().map(|v| v.wide()).sum::<f64>() / n as f64;
            let var = host.iter().map(|v| (v.wide() - mean).powi(2)).sum::<f64>() / n as f64;
            for (i, got) in got.iter().enumerate() {
                let want = (host[i].wide() - mean) / (var + 1e-5f32 as f64).sqrt();
                // The state is `f32`: some roundings of the mean, of the size of the inputs, over the deviation.
                let bound = 2f64.powi(-T::DIGITS.min(24)) * (want.abs() + 64.0 / (var + 1e-5).sqrt());
                assert!((got.wide() - want).abs() <= bound, "row {row} of {n}, element {i}: {} for {want}", got.wide());
            }
        }
    }
}

#[device]
mod attention {
    /// The state of an online softmax over the columns seen so far: the maximum, the sum of the exponentials, and the sum of the weighted values.
    pub(super) struct Online<T> {
        maximum: T,
        total: T,
        weighted: Value<T>,
    }

    impl<T: Float> Online<T> {
        pub fn new(weighted: Value<T>) -> Self {
            Online { maximum: f32::NEG_INFINITY as T, total: 0, weighted }
        }

        /// Takes scores and the rows of values that they weigh.
        pub fn update(mut self, scores: Value<T>, values: Value<T>) -> Self {
            let before = self.maximum;
            self.maximum = max(self.maximum, scores.max());
            let scale = exp(before - self.maximum);
            let weights = exp(scores - self.maximum);
            self.total = self.total * scale + sum(weights);
            self.weighted = self.weighted * scale + sum(weights[(.., None)] * values, axis = 0);
            self
        }

        pub fn finish(self) -> Value<T> {
            self.weighted / self.total
        }
    }
}

/// Softmax of a row of scores times a matrix, in one walk over both.
#[kernel]
fn online_softmax_kernel<T: Float, const M: usize, const N: usize>(scores: Ptr<T>, values: Ptr<T>, y: PtrMut<f32>, n: usize) {
    let columns = arange(0, N);
    let mut state = attention::Online::new(zeros::<f32>([N]));
    let mut start = 0;
    while start < n {
        let at = start + arange(0, M);
        let s = load(scores + at, mask = at < n, other = f32::NEG_INFINITY as T) as f32;
        let v = load(values + at[(.., None)] * N + columns[(None, ..)], mask = (at < n)[(.., None)]) as f32;
        state = state.update(s, v);
        start += M;
    }
    store(y + columns, state.finish());
}

fn online_softmax<T: FloatValue>(lab: &mut Lab) {
    for n in [1, 16, 17, 100] {
        let (scores, values) = (lab.numbers::<T>(n, -20.0, 20.0), lab.numbers::<T>(n * 32, -1.0, 1.0));
        let (s, v) = (lab.input(&scores), lab.input(&values));
        let mut y = lab.output::<f32>(32);
        online_softmax_kernel::<T, 16, 32>(s.slice(), v.slice(), &mut y.slice(), n).grid(1).launch().unwrap();
        let top = scores.iter().map(|s| s.wide()).fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|s| (s.wide() - top).exp()).collect();
        let total: f64 = weights.iter().sum();
        for (column, got) in y.read().iter().enumerate() {
            let want = (0..n).map(|i| weights[i] * values[i * 32 + column].wide()).sum::<f64>() / total;
            assert!((f64::from(*got) - want).abs() < 2e-5, "{n} scores, column {column}: {got} for {want}");
        }
    }
}

#[device]
mod complex {
    pub(super) struct Complex<T> {
        pub re: Value<T>,
        pub im: Value<T>,
    }

    impl<T: Float> Complex<T> {
        pub fn add(self, other: Self) -> Self {
            Complex { re: self.re + other.re, im: self.im + other.im }
        }

        pub fn mul(self, other: Self) -> Self {
            Complex { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
        }

        /// The same name as a word: the struct's own function is meant.
        pub fn abs(self) -> Value<T> {
            sqrt(square(self).re)
        }
    }

    /// In a circle with the struct's functions.
    fn square<T: Float>(z: Complex<T>) -> Complex<T> {
        z.mul(Complex { im: -z.im, ..z })
    }
}

/// Running products and sums, the first with a closure, the second with the function itself.
#[kernel]
fn products_of_complex_numbers_kernel<T: Float, const N: usize>(x: Ptr<T>, products: PtrMut<T>, sums: PtrMut<T>, sizes: PtrMut<T>) {
    let at = 2 * arange(0, N);
    let z = complex::Complex { re: load(x + at), im: load(x + at + 1) };
    let product = associative_scan(z, 0, |a, b| a.mul(b));
    store(products + at, product.re);
    store(products + at + 1, product.im);
    let complex::Complex { re, im: imaginary } = associative_scan(z, 0, complex::Complex::add, reverse = true);
    store(sums + at, re);
    store(sums + at + 1, imaginary);
    store(sizes + arange(0, N), z.abs());
}

fn products_of_complex_numbers<T: FloatValue>(lab: &mut Lab) {
    products_of::<T, 64>(lab);
    products_of::<T, 37>(lab);
}

fn products_of<T: FloatValue, const N: usize>(lab: &mut Lab) {
    // Of length near 1, so that products stay of a size.
    let host: Vec<T> = (0..N).map(|_| lab.between(0.0, 6.3).sin_cos()).flat_map(|(im, re)| [re, im]).map(T::near).collect();
    let x = lab.input(&host);
    let (mut products, mut sums, mut sizes) = (lab.output::<T>(2 * N), lab.output::<T>(2 * N), lab.output::<T>(N));
    products_of_complex_numbers_kernel::<T, N>(x.slice(), &mut products.slice(), &mut sums.slice(), &mut sizes.slice())
        .grid(1)
        .launch()
        .unwrap();
    let (products, sums) = (products.read(), sums.read());
    let bound = 8.0 * N as f64 * 2f64.powi(-T::DIGITS);
    let near = |got: &[T], want: (f64, f64)| (got[0].wide() - want.0).abs().max((got[1].wide() - want.1).abs()) <= bound;
    let mut product = (1.0, 0.0);
    for i in 0..N {
        let (re, im) = (host[2 * i].wide(), host[2 * i + 1].wide());
        product = (product.0 * re - product.1 * im, product.0 * im + product.1 * re);
        let sum = (i..N).fold((0.0, 0.0), |sum, j| (sum.0 + host[2 * j].wide(), sum.1 + host[2 * j + 1].wide()));
        assert!(near(&products[2 * i..], product), "product of {}: {:?} for {product:?}", i + 1, &products[2 * i..2 * i + 2]);
        assert!(near(&sums[2 * i..], sum), "sum from {i}: {:?} for {sum:?}", &sums[2 * i..2 * i + 2]);
    }
    check(&sizes.read(), Class::Chain(4), |i| host[2 * i].wide().hypot(host[2 * i + 1].wide()));
}

#[device]
mod blocks {
    /// `N` neighbours, and where they begin.
    pub(super) struct Block<T, const N: usize> {
        elements: Value<T>,
        start: usize,
        at: (Value<usize>, Value<bool>),
    }

    impl<E: Int, const N: usize> Block<E, N> {
        pub fn load_from(x: Ptr<E>, start: usize, len: usize) -> Self {
            let offsets = start + arange(0, N);
            Self { elements: load(x + offsets, mask = offsets < len), start, at: (offsets, offsets < len) }
        }

        /// Element by element with one that has as many.
        pub fn plus(self, other: Block<E, N>) -> Self {
            Block { elements: self.elements + other.elements, ..self }
        }

        pub fn as_wide<U: Int>(self) -> Block<U, N> {
            Block { elements: self.elements as U, start: self.start, at: self.at }
        }

        pub fn store_to(self, y: PtrMut<E>) {
            store(y + self.at.0, self.elements, mask = self.at.1);
        }
    }

    /// Its constant is that of what it takes.
    pub fn extent_of<T: Int, const N: usize>(block: Block<T, N>) -> usize {
        N + block.start
    }
}

#[kernel]
fn generic_over_constants_kernel<T: Int, const N: usize>(x: Ptr<T>, y: PtrMut<i64>, extents: PtrMut<i64>, n: usize) {
    let start = program_id(0) * N;
    let block = blocks::Block::<T, N>::load_from(x, start, n);
    let doubled = block.plus(block);
    let mut wide = doubled.as_wide::<i64>();
    wide.elements += 1;
    wide.at.1 = wide.at.1 & (wide.at.0 != 5);
    wide.store_to(y);
    store(extents + program_id(0), blocks::extent_of(block));
}

fn generic_over_constants<T: IntValue>(lab: &mut Lab) {
    for n in [1, 31, 32, 100] {
        let host = lab.values::<T>(n);
        let x = lab.input(&host);
        let programs = n.div_ceil(32);
        let (mut y, mut extents) = (lab.output::<i64>(n), lab.output::<i64>(programs));
        let before = y.before().to_vec();
        generic_over_constants_kernel::<T, 32>(x.slice(), &mut y.slice(), &mut extents.slice(), n).grid(programs).launch().unwrap();
        check_ints(&y.read(), |i| if i == 5 { before[5].into() } else { T::wrap(2 * host[i].wide()).wide() + 1 });
        check_ints(&extents.read(), |i| (32 + 32 * i) as i128);
    }
}

#[device]
struct Range2 {
    low: Value<f32>,
    high: Value<f32>,
}

#[device]
struct Nested<T> {
    range: Range2,
    last: (T, i32),
}

/// A struct through `if`, a loop that is left, a tuple, a closure, and fields that are assigned to.
#[device]
fn widened<T: Float>(state: Nested<T>, x: T, f: impl Fn(Range2) -> Range2) -> (Nested<T>, bool) {
    let mut next = Nested { last: (x, state.last.1 + 1), ..state };
    if (x as f32) < next.range.low {
        next.range.low = x as f32;
    } else {
        next.range.high = max(next.range.high, x as f32);
    }
    next.range = f(next.range);
    (next, x == 0)
}

#[kernel]
fn parts_kernel<T: Float>(x: Ptr<T>, y: PtrMut<f32>, n: usize, by: f32) {
    let mut state = Nested { range: Range2 { low: 1e9, high: -1e9 }, last: (0 as T, 0) };
    for i in 0..n {
        let (next, is_last) = widened(state, load(x + i), |range| Range2 { high: range.high + by, low: range.low });
        state = next;
        if is_last {
            break;
        }
    }
    let Nested { range: Range2 { low, high }, last } = state;
    store(y, low);
    store(y + 1, high);
    store(y + 2, last.0 as f32);
    store(y + 3, last.1 as f32);
}

fn parts<T: FloatValue>(lab: &mut Lab) {
    for n in [1, 5, 40] {
        // Eighths, so that every sum is exact.
        let mut host: Vec<T> = (0..n).map(|_| T::near(lab.between(-99.0, 99.0).round() / 8.0)).collect();
        if n == 40 {
            host[29] = T::near(0.0);
        }
        let x = lab.input(&host);
        let mut y = lab.output::<f32>(4);
        parts_kernel::<T>(x.slice(), &mut y.slice(), n, 0.5).grid(1).launch().unwrap();
        let (mut low, mut high, mut last, mut count) = (1e9f32, -1e9f32, 0.0, 0);
        for v in &host {
            last = v.wide() as f32;
            count += 1;
            if last < low {
                low = last
            } else {
                high = high.max(last)
            }
            high += 0.5;
            if last == 0.0 {
                break;
            }
        }
        assert_eq!(y.read(), [low, high, last, count as f32], "{host:?}");
    }
}

/// Structs of another crate: made by its functions and here, under another name, with a function given to a scan.
mod elsewhere {
    use activations::geometry::{Affine as Map, Point};
    use galatea::prelude::*;

    #[kernel(T = [f32], N = [32])]
    pub(super) fn of_another_crate_kernel<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<f32>, n: usize) {
        let at = arange(0, N);
        let inside = at < n;
        let maps = Map { scale: load(x + at, mask = inside) as f32, shift: load(x + at + n, mask = inside) as f32 };
        let Map { scale, shift } = associative_scan(maps, 0, Map::then);
        let moved = Map { scale, shift }.apply(activations::geometry::origin().moved(1.0, 2.0));
        store(y + at, moved.x, mask = inside);
        store(y + at + n, moved.y, mask = inside);
        store(y + 2 * n, activations::geometry::distance(Point::at(3.0, 4.0), activations::geometry::origin()));
    }
}

fn of_another_crate<T: FloatValue>(lab: &mut Lab) {
    for n in [1, 9, 32] {
        // Powers of two and small integers: exact.
        let mut host: Vec<T> = (0..n).map(|_| T::near([1.0, -1.0, 0.5, 2.0][lab.below(4)])).collect();
        host.extend((0..n).map(|_| T::near(lab.below(3) as f64 - 1.0)));
        let x = lab.input(&host);
        let mut y = lab.output::<f32>(2 * n + 1);
        elsewhere::of_another_crate_kernel::<T, 32>(x.slice(), &mut y.slice(), n).grid(1).launch().unwrap();
        let got = y.read();
        let (mut scale, mut shift) = (1.0, 0.0);
        for i in 0..n {
            let (by, plus) = (host[i].wide(), host[i + n].wide());
            (scale, shift) = (scale * by, shift * by + plus);
            let want = [1.0, 2.0].map(|v| (v * scale + shift) as f32);
            assert!(
                [got[i], got[i + n]].iter().zip(want).all(|(got, want)| (got - want).abs() <= 1e-5 * want.abs().max(1.0)),
                "{i} of {n}"
            );
        }
        assert_eq!(got[2 * n], 5.0);
    }
}

#[device]
mod tensors {
    /// A matrix and a row of it.
    pub(super) struct Cursor {
        matrix: View<f32, 2>,
        out: PtrMut<f32>,
        row: usize,
    }

    impl Cursor {
        pub fn new(matrix: View<f32, 2>, out: PtrMut<f32>) -> Self {
            Cursor { matrix, out, row: program_id(0) }
        }

        pub fn tile<const N: usize>(self) -> Value<f32> {
            self.matrix.load([self.row, 0], [1, N])
        }

        pub fn next(mut self) -> Self {
            self.row += 1;
            self.out += 1;
            self
        }

        pub fn put(self, value: f32) {
            store(self.out, value);
        }
    }

    /// Views are parameters, too.
    pub fn height(matrix: View<f32, 2>) -> usize {
        extent(matrix, 0)
    }
}

#[kernel]
fn accesses_kernel(x: View<f32, 2>, y: PtrMut<f32>) {
    let mut cursor = tensors::Cursor::new(x, y);
    for _ in 0..tensors::height(x) {
        cursor.put(sum(cursor.tile::<16>()));
        cursor = cursor.next();
    }
}

fn accesses(lab: &mut Lab) {
    let host: Vec<f32> = (0..7 * 13).map(|_| lab.below(100) as f32).collect();
    let x = lab.device.tensor(&host).unwrap().reshape([7, 13]).unwrap();
    let mut y = lab.output::<f32>(7);
    accesses_kernel(x.view(), &mut y.slice()).grid(1).launch().unwrap();
    let sums: Vec<f32> = host.chunks(13).map(|row| row.iter().sum()).collect();
    assert_eq!(y.read(), sums);
}
