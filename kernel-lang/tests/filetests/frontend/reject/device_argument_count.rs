#[device]
fn scaled<const N: usize>(x: f32, #[option(1.0)] by: f32) -> f32 {
    x * by
}

#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    store(y, scaled::<4>(load(x), 2.0));
    store(y, scaled::<4>());
}
