#[kernel(T = [f32, f16], B = 64, unchecked)]
fn scale_all<T: Float, const B: usize>(addresses: Ptr<u64>, lengths: Ptr<u32>, factor: f32) {
    let tensor = program_id(1);
    let x = load(addresses + tensor) as PtrMut<T>;
    let at = program_id(0) * B + arange(0, B);
    let mask = at < load(lengths + tensor);
    store(x + at, (load(x + at, mask = mask) as f32 * factor) as T, mask = mask);
}

#[device]
fn first<T: Element>(x: Ptr<T>) -> T {
    load(x)
}

#[kernel(unchecked)]
fn every_use(list: Ptr<i64>, y: PtrMut<f32>, z: PtrMut<u64>, one: u64, n: usize) {
    // A list of lists, a view, an atomic, and a function.
    let inner = load(list + 1) as Ptr<u64>;
    let matrix = view(load(inner) as Ptr<f32>, [n, 8], [8, 1]);
    let counts = one as PtrMut<i32> + n;
    atomic_add(counts, 1);
    let mut walk = load(inner + 1) as Ptr<f32>;
    let mut total = zeros::<f32>([8]);
    for i in 0..n {
        total += load(walk + arange(0, 8)) + matrix.load([i, 0], [1, 8]).reshape([8]);
        walk += 8;
    }
    store(y + arange(0, 8), total + first(walk));
    // And the other way: addresses are numbers.
    store(z + arange(0, 8), (y + arange(0, 8)) as u64);
    store(z, y as u64);
    store(z + 1, (y + 1) as usize as u64);
}
