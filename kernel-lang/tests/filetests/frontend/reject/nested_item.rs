#[kernel]
fn k(y: PtrMut<f32>, n: usize) {
    static SCALE: f32 = 2.0;
    const COUNT: i32 = 2.5;
    const SIZE: usize = n;
    store(y + arange(0, SIZE), SCALE * COUNT as f32);
}
