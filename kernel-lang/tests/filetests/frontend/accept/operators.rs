#[kernel(N = 64)]
fn operators<const N: usize>(x: Ptr<i32>, y: PtrMut<i32>, b: PtrMut<bool>, n: i32, s: u32) {
    let offsets = arange(0, N);
    let v = load(x + offsets);
    let mut r = v + n - 3 * v / 2 % 7;
    r += v & 0xff | n ^ !v;
    r = r << 2 >> 1;
    r -= -v;
    r *= 2;
    r /= 3;
    r %= 1000;
    r &= v;
    r |= 1;
    r ^= n;
    r <<= 1;
    r >>= 1;
    store(y + offsets, r);
    let m = (v == n) | (v != 1) & (v < 2) ^ (v <= 3) || v > 4 && v >= 5;
    store(b + offsets, !m);
    store(b, n > 0 && s < 3u32);
}
