#[device]
async fn a(x: &f32) -> Vec<f32> {
    x
}

#[device]
fn b((x, y): (f32, f32), #[cold] z: f32, #[option] c: f32, d: f32, d: f32) {}

#[device]
unsafe fn c<T, const N: f32>(self, x: Value) {}

#[kernel]
fn k(y: PtrMut<f32>) {
    store(y, 0.0);
}
