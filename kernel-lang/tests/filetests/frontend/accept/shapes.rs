#[kernel]
fn shapes<const M: usize, const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, stride: usize) {
    let rows = arange(0, M);
    let columns = arange(0, N);
    let v = load(x + rows[(.., None)] * stride + columns[(None, ..)]);
    store((y + columns)[(.., None)] + rows[(None, ..)] * stride, trans(v));
    let flat = reshape(v, [M * N]);
    store(y + arange(0, M * N), flat);
    let cube = v.reshape([2, M / 2, N]).permute([2, 0, -2]);
    store(y + reshape(arange(0, M * N), [N, 2, M / 2]), cube, mask = columns[(.., None, None)] < stride);
    let wide = broadcast_to(expand_dims(columns, -1), [N, M]);
    let zero = zeros::<f32>([N, M]);
    store(y + wide, zero + full([N, M], 1.0f32).max(zero));
    store(y + wide, select(wide > stride, zero, trans(v)), mask = rows[(None, ..)] < 2);
}
