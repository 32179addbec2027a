#[kernel(N = 64)]
fn casts<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>, i: PtrMut<u32>, h: PtrMut<f16>) {
    let offsets = arange(0, N);
    let v = load(x + offsets) as f32;
    let bits = bitcast::<u32>(v);
    let sign = bits >> 31;
    store(i + offsets, sign + (v as u32) + (offsets as u32) + (N as u32));
    store(h + offsets, v.to::<f16>());
    store(y + offsets, (v > 0.0) as T);
    store(y, N as T);
    store(y + 1, (N as f32 / 3.0) as T);
    store(i, -1 as u32);
    store(i + 1, 300 as u8);
}
