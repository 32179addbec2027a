#[device]
fn wide(x: f32) -> f64 {
    x
}

#[device]
fn pair(x: f32) -> (f32, f32) {
    x
}

#[device]
fn forgotten(x: f32) -> f32 {
    x * 2.0;
}

#[device]
fn tile(x: f32) -> f32 {
    x + zeros::<f32>([8])
}

#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    let a = wide(load(x));
    let b = pair(load(x));
    let c = forgotten(load(x));
    let d = tile(load(x));
}
