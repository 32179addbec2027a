//! Constants without an exact `f32` value are rounded to the nearest one, up or down.
//! x: any 64
//! y: zeros 64
//! z: zeros 8
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>) {
    let at = arange(0, 64);
    store(y + at, load(x + at) * 0.1 + 16777219.0);
    store(z + 0, 0.1);
    store(z + 1, -0.1);
    store(z + 2, 0.3);
    store(z + 3, 16777219.0);
    store(z + 4, 3.3e38);
    store(z + 5, 0.7);
    store(z + 6, 1e-40);
    store(z + 7, 1e-45);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>) {
    let tenth = bitcast::<f32>(0x3dcccccdu32);
    let large = bitcast::<f32>(0x4b800002u32);
    for i in 0..64 {
        store(y + i, load(x + i) * tenth + large);
    }
    store(z + 0, tenth);
    store(z + 1, -tenth);
    store(z + 2, bitcast::<f32>(0x3e99999au32));
    store(z + 3, large);
    store(z + 4, bitcast::<f32>(0x7f7843b0u32));
    store(z + 5, bitcast::<f32>(0x3f333333u32));
    store(z + 6, bitcast::<f32>(0x000116c2u32));
    store(z + 7, bitcast::<f32>(0x00000001u32));
}
