#[device]
fn scaled(x: f32, #[option(1.0)] factor: f32) -> f32 {
    x * factor
}

#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    store(y, scaled(load(x), facter = 2.0));
    store(y, scaled(load(x), by = 2.0));
    store(y, scaled(load(x), factor = 1));
}
