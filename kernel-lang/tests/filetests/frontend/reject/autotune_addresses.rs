#[autotune(configs = [Config { B: 64 }, Config { B: 128 }], key = [])]
#[kernel(unchecked)]
fn scale_all<const B: usize>(addresses: Ptr<u64>) {
    let x = load(addresses + program_id(1)) as PtrMut<f32>;
    let at = program_id(0) * B + arange(0, B);
    store(x + at, load(x + at) * 2.0);
}
