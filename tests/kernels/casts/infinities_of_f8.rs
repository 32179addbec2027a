//! Elements of 8-bit floats are copied with all bits: infinities stay infinities.
//! x: any 384
//! y: any 768
//! grid: 3
//! warps: 1
fn kernel(x: Ptr<f8e5m2>, y: PtrMut<f8e5m2>) {
    let p = program_id(0); let o = p * 128 + arange(0, 128);
    let e = o;
    let at = 2 * e;
    let v0 = load(x + at);
    store(y + at, v0);
    store(y + at + 1, v0);
}

fn reference(x: Ptr<f8e5m2>, y: PtrMut<f8e5m2>) {
    for p in 0..3 { for l in 0..128 { let o = p * 128 + l;
    let e = o;
    let at = 2 * e;
    let v0 = load(x + at);
    store(y + at, v0);
    store(y + at + 1, v0);
    }}
}
