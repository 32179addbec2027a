#[autotune(configs = [Config { B: 64 }, Config { B: 128 }], key = [], restore_value = [])]
#[kernel(unchecked)]
fn copy_all<const B: usize>(addresses: Ptr<u64>) {
    let (x, y) = (load(addresses) as Ptr<f32>, load(addresses + 1) as PtrMut<f32>);
    let at = program_id(0) * B + arange(0, B);
    store(y + at, load(x + at) * 2.0);
}
