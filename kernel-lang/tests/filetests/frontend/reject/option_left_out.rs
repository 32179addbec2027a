#[device]
fn read(x: Ptr<f32>, at: Value<i64>, #[option] mask: Value<bool>, #[option] mut other: f32) -> Value<f32> {
    other += 1.0;
    let kept = load(x + at, mask = mask, other = other);
    let nothing = store_one(x);
    kept + load(x + at, mask = nothing) * select(mask, 1.0, 2.0)
}

#[device]
fn store_one(x: Ptr<f32>) {}

#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    store(y + arange(0, 64), read(x, arange(0, 64)));
}
