/// The seed of a generator, whose steps wrap.
#[device]
fn next<T: Int>(seed: Value<T>) -> Value<T> {
    seed * 75 + 74
}

#[kernel]
fn wrapping_constants(y: PtrMut<u8>, z: PtrMut<u64>) {
    store(y, next(200u8));
    store(y + 1, 3u8 - 5);
    store(z, next(0xffff_ffff_ffff_ffffu64));
    store(z + 1, 0xffff_ffff_ffff_ffffu64 * 0xffff_ffff_ffff_ffffu64);
}
