#[kernel(M = 64, contract, require(wgmma, tma, specialized))]
fn k<const M: usize>(x: Ptr<bf16>, z: PtrMut<f32>) {
    let at = arange(0, M).col() * M + arange(0, M).row();
    store(z + at, dot(load(x + at), load(x + at)));
}
