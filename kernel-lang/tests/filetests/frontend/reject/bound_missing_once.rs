#[kernel]
fn k<T, U: Copy>(x: Ptr<T>, y: PtrMut<U>, a: T) {
    store(y, ((load(x) + a) * 2.0) as U);
}
