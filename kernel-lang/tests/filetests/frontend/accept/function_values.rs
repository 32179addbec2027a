mod larger {
    #[device]
    pub fn by_key(a: (f32, i64), b: (f32, i64)) -> (f32, i64) {
        let first = a.0 > b.0 || (a.0 == b.0 && a.1 < b.1);
        (select(first, a.0, b.0), select(first, a.1, b.1))
    }
}

#[device]
fn plus<T: Number>(a: T, b: T) -> T {
    a + b
}

#[kernel(N = 64)]
fn k<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>, z: PtrMut<i64>) {
    let v = load(x + arange(0, N));
    store(y, reduce(v, 0, plus) + v.reduce(0, max));
    store(y + arange(0, N), associative_scan(v, 0, self::plus, reverse = true));
    let (_, at) = reduce((v as f32, arange(0, N)), 0, larger::by_key);
    store(z, at);
}
