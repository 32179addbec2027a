#[kernel]
fn k(y: PtrMut<i32>, v: f32) {
    atomic_add(y, v);
}
