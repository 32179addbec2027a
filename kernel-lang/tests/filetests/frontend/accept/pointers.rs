#[kernel(N = 64)]
fn pointers<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, row: i32, stride: u32, n: usize) {
    let offsets = arange(0, N);
    let start = x + row * 2;
    let p = start + offsets - 1;
    let q = 4 + y;
    let mut r = q;
    r += stride;
    r -= n;
    let r2 = r + offsets;
    store(r2 + 1, load(p) + load(start));
}
