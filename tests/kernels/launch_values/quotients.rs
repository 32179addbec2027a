//! Loaded numbers are divided by an argument: the host computes its reciprocal, which is exact for none of these divisors but powers of two.
//! x: any 64
//! y: zeros 256
//! d: 0, 1, 2, 3, 7, 641, 65537, 2147483647, 2147483648, 2147483649, 4294967294, 4294967295
//! grid: 64
fn kernel(x: Ptr<u32>, y: PtrMut<u32>, d: u32) {
    let i = program_id(0);
    let n = load(x + i);
    store(y + i * 4, n / d);
    store(y + i * 4 + 1, n % d);
    store(y + i * 4 + 2, (n / d * d - 1) / d);
    store(y + i * 4 + 3, (0xffff_ffffu32 - i as u32) / d);
}

fn reference(x: Ptr<u32>, y: PtrMut<u32>, d: u32) {
    let i = program_id(0) + arange(0, 1);
    let n = load(x + i);
    let d = full::<u32>([1], d);
    store(y + i * 4, n / d);
    store(y + i * 4 + 1, n % d);
    store(y + i * 4 + 2, (n / d * d - 1) / d);
    store(y + i * 4 + 3, (0xffff_ffffu32 - i as u32) / d);
}
