#[kernel]
fn loop_with_a_value(x: Ptr<f32>, y: PtrMut<f32>) {
    let v = loop { break load(x); };
    store(y, v);
}
