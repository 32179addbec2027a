//! Quotients and remainders of the numbers of programs, which are small, and of their quotients and remainders.
//! y: zeros 256
//! n: 1, 3, -3, 0, -1, 7, 2147483647, 2147483648, -2147483648, 4294967297, -4294967299, 9223372036854775807, -9223372036854775808
//! m: 2, -2, 2, 3, 0, 1, -1, 2, 2, 2, 2, 2, -9223372036854775808
//! grid: 23
fn kernel(y: PtrMut<i64>, n: usize, m: usize) {
    let at = program_id(0) * 10;
    store(y + at, program_id(0) / n);
    store(y + at + 1, program_id(0) % n);
    store(y + at + 2, program_id(0) / n / m);
    store(y + at + 3, program_id(0) / n % m);
    store(y + at + 4, program_id(0) % n / m);
    store(y + at + 5, program_id(0) % n % m);
    store(y + at + 6, program_id(0) / n % -5);
    store(y + at + 7, program_id(0) / -5 / m);
    store(y + at + 8, num_programs(0) / n);
    store(y + at + 9, num_programs(0) % n);
}

fn reference(y: PtrMut<i64>, n: usize, m: usize) {
    for i in 0..23 {
        let at = i * 10;
        store(y + at, i / n);
        store(y + at + 1, i % n);
        store(y + at + 2, i / n / m);
        store(y + at + 3, i / n % m);
        store(y + at + 4, i % n / m);
        store(y + at + 5, i % n % m);
        store(y + at + 6, i / n % -5);
        store(y + at + 7, i / -5 / m);
        store(y + at + 8, 23 / n);
        store(y + at + 9, 23 % n);
    }
}
