//! The kernels that the tests explain.

#[kernel(BLOCK = 1024)]
fn copy<T: Float, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = at < n;
    store(y + at, load(x + at, mask = mask), mask = mask);
}

#[kernel(BLOCK = 1024)]
fn scale_rows<const BLOCK: usize>(x: Ptr<bf16>, y: PtrMut<bf16>, columns: usize, factor: f32) {
    let row = program_id(0);
    let at = arange(0, BLOCK);
    let values = load(x + row * columns + at, mask = at < columns) as f32;
    store(y + row * columns + at, (values * factor) as bf16, mask = at < columns);
}

#[kernel(BLOCK = 512)]
fn every_nth<const BLOCK: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize, stride: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + at, load(x + at * stride, mask = at < n), mask = at < n);
}

#[kernel(M = 64, N = 64)]
fn transpose<const M: usize, const N: usize>(x: View<f32, 2>, y: ViewMut<f32, 2>) {
    let (i, j) = (program_id(0) * M, program_id(1) * N);
    let tile = x.load([i, j], [M, N]);
    y.store([j, i], trans(tile));
}

#[kernel(BLOCK = 512)]
fn gather<const BLOCK: usize>(table: Ptr<f32>, index: Ptr<i32>, y: PtrMut<f32>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let from = load(index + at, mask = at < n) as usize;
    store(y + at, load(table + from, mask = at < n), mask = at < n);
}

#[kernel(BLOCK = 1024)]
fn row_sum<const BLOCK: usize>(x: View<bf16, 2>, y: PtrMut<f32>) {
    let row = program_id(0);
    let mut sum = zeros::<f32>([BLOCK]);
    for at in range(0, x.extent(1), BLOCK) {
        sum += x.load([row, at], [1, BLOCK]).reshape([BLOCK]) as f32;
    }
    store(y + row, sum.sum());
}

#[kernel(BLOCK = 1024)]
fn add_bias<const BLOCK: usize>(x: Ptr<bf16>, bias: Ptr<bf16>, y: PtrMut<bf16>, n: usize, width: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = at < n;
    store(y + at, load(x + at, mask = mask) + load(bias + at % width, mask = mask), mask = mask);
}

#[kernel(BLOCK = 1024)]
fn count<const BLOCK: usize>(x: Ptr<i32>, counts: PtrMut<i32>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let bins = load(x + at, mask = at < n, other = 0);
    atomic_add(counts + bins as usize, full::<i32>([BLOCK], 1), mask = at < n);
}

#[kernel(BLOCK = 1024)]
fn shifted<const BLOCK: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + at, load(x + at + 1, mask = at + 1 < n), mask = at < n);
}

#[kernel(BLOCK = 1024)]
fn segments<const BLOCK: usize>(x: Ptr<f32>, starts: Ptr<i64>, y: PtrMut<f32>) {
    let segment = program_id(0);
    let (from, to) = (load(starts + segment), load(starts + segment + 1));
    let at = from + arange(0, BLOCK);
    store(y + at, 2.0 * load(x + at, mask = at < to), mask = at < to);
}

#[kernel(BLOCK = 128)]
fn print_them<const BLOCK: usize>(x: Ptr<f32>) {
    device_print!("{}", load(x + arange(0, BLOCK)));
}

#[kernel(BLOCK = 128)]
fn wrong<const BLOCK: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    store(y + arange(0, BLOCK), load(x + arange(0, 64)));
}

#[kernel(M = 256)]
fn pairs<const M: usize>(x: View<f32, 2>, y: ViewMut<f32, 2>) {
    let i = program_id(0) * M;
    y.store([i, 0], 2.0 * x.load([i, 0], [M, 2]));
}

#[kernel(M = 32)]
fn padded_rows<const M: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = arange(0, M).col() * 33 + arange(0, M).row();
    store(y + at, 2.0 * load(x + at));
}

#[kernel(M = 32)]
fn matrix<const M: usize>(x: View<f32, 2>, y: ViewMut<f32, 2>) {
    y.store([0, 0], 2.0 * x.load([0, 0], [M, M]));
}

#[kernel(BLOCK = 1024)]
fn chosen<const BLOCK: usize>(x: Ptr<f32>, keep: Ptr<bool>, y: PtrMut<f32>) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + at, load(x + at, mask = load(keep + at)));
}

#[kernel(BLOCK = 1024)]
fn swapped<const BLOCK: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + at, load(x + (at ^ 1)));
}

#[kernel(BLOCK = 1024)]
fn largest<const BLOCK: usize>(x: Ptr<i32>, y: PtrMut<i32>) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    atomic_max(y + at, load(x + at));
}

#[device]
fn doubled<const BLOCK: usize>(x: Ptr<f32>, start: usize) -> Value<f32> {
    2.0 * load(x + start + arange(0, BLOCK))
}

#[kernel(BLOCK = 1024)]
fn through_a_function<const BLOCK: usize>(x: Ptr<f32>, z: Ptr<f32>, y: PtrMut<f32>) {
    let start = program_id(0) * BLOCK;
    store(y + start + arange(0, BLOCK), doubled::<BLOCK>(x, start) + doubled::<BLOCK>(z, start));
}

#[kernel]
fn unlisted<const BLOCK: usize>(x: PtrMut<f32>) {
    store(x + arange(0, BLOCK), 0.0);
}

#[autotune(configs = [Config { BLOCK: 4096, num_warps: 4 }, Config { BLOCK: 4096, num_warps: 8 }], key = [])]
#[kernel(T = [bf16])]
fn tuned<T: Float, const BLOCK: usize>(x: PtrMut<T>) {
    store(x + program_id(0) * BLOCK + arange(0, BLOCK), T::INFINITY);
}

#[kernel(BLOCK = 128)]
fn in_turns<const BLOCK: usize>(turn: PtrMut<i32>, y: PtrMut<f32>) {
    let program = program_id(0);
    while atomic_add(turn, 0) as usize != program {}
    store(y + program * BLOCK + arange(0, BLOCK), 1.0);
    atomic_add(turn, 1);
}

#[kernel(BLOCK = 1024, unchecked)]
fn too_far<const BLOCK: usize>(x: PtrMut<f32>) {
    store(x + program_id(0) * BLOCK + arange(0, BLOCK), 1.0);
}

#[kernel(BLOCK = 1024)]
fn padded<const BLOCK: usize>(x: PtrMut<f32>, columns: usize, stride: usize) {
    let at = arange(0, BLOCK);
    store(x + program_id(0) * stride + at, 1.0, mask = at < columns);
}

#[kernel(BLOCK = 1024)]
fn rotated<const BLOCK: usize>(x: Ptr<bf16>, y: PtrMut<bf16>, n: usize, columns: usize, shift: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = at < n;
    let from = at / columns * columns + (at % columns + shift) % columns;
    store(y + at, load(x + from, mask = mask), mask = mask);
}

#[kernel(BLOCK = 2048)]
fn add_wide<const BLOCK: usize>(x: Ptr<bf16>, y: PtrMut<f32>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    atomic_add(y + at, load(x + at, mask = at < n) as f32, mask = at < n);
}

#[kernel(BLOCK = 1024)]
fn widened<const BLOCK: usize>(a: Ptr<u8>, b: Ptr<u8>, y: PtrMut<f32>) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + at, load(a + at) as f32 * load(b + at) as f32);
}

#[kernel(BLOCK = 1024)]
fn conjugated<const BLOCK: usize>(x: Ptr<bf16>, y: PtrMut<bf16>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let (re, im) = (load(x + 2 * at, mask = at < n), load(x + 2 * at + 1, mask = at < n));
    store(y + 2 * at, re, mask = at < n);
    store(y + 2 * at + 1, -im, mask = at < n);
}

#[kernel(M = 128, N = 128, K = 64)]
fn matmul<const M: usize, const N: usize, const K: usize>(
    x: Ptr<bf16>,
    y: Ptr<bf16>,
    z: PtrMut<bf16>,
    rows: usize,
    columns: usize,
    inner: usize,
) {
    let row = (program_id(0) * M + arange(0, M)).col();
    let column = (program_id(1) * N + arange(0, N)).row();
    let mut total = zeros::<f32>([M, N]);
    for first in range(0, inner, K) {
        let k = first + arange(0, K);
        let a = load(x + row * inner + k.row(), mask = (row < rows) & (k.row() < inner));
        let b = load(y + k.col() * columns + column, mask = (k.col() < inner) & (column < columns));
        total += dot(a, b);
    }
    store(z + row * columns + column, total as bf16, mask = (row < rows) & (column < columns));
}

#[kernel(M = 128, K = 64)]
fn matmul_in_place<const M: usize, const K: usize>(x: PtrMut<bf16>, y: Ptr<bf16>, z: PtrMut<f32>, columns: usize) {
    let (row, column, k) = (arange(0, M).col(), arange(0, M).row(), arange(0, K));
    let a = load(x + row * K + k.row());
    let b = load(y + k.col() * columns + column);
    store(x + row * K + k.row(), 0.0);
    store(z + row * columns + column, dot(a, b));
}

#[kernel(M = 64, K = 64)]
fn accumulate<const M: usize, const K: usize>(x: View<bf16, 2>, y: View<bf16, 2>, z: PtrMut<f32>) {
    let (row, column) = (arange(0, M).col(), arange(0, M).row());
    let i = program_id(0) * M;
    let mut total = zeros::<f32>([M, M]);
    for first in range(0, x.extent(1), K) {
        total += dot(x.load([i, first], [M, K]), y.load([first, 0], [K, M]));
    }
    let at = (i + row) * M + column;
    store(z + at, load(z + at) + total);
}
