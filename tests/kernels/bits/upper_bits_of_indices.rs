//! Shifts of an index whose start is a multiple of its length, of more or of less; and of what differs from itself by nothing.
//! y: zeros 8192
//! first: 0, 5, 8388607, -3
//! grid: 2
fn kernel(y: PtrMut<i64>, first: i64) {
    let lanes = arange(0, 512);
    let at = program_id(0) * 4096 + lanes;
    let part = first + program_id(0);
    store(y + at, (part * 512 + lanes) >> 9);
    store(y + 512 + at, (part * 512 + lanes) >> 8);
    store(y + 1024 + at, (part * 256 + lanes) >> 9);
    store(y + 1536 + at, (lanes + (part << 9)) >> 32);
    store(y + 2048 + at, ((part << 8) + lanes) >> 10);
    store(y + 2560 + at, (((part * 512 + lanes) as u64) >> 40) as i64);
    store(y + 3072 + at, (part * 512 + arange(1, 513)) >> 9);
    store(y + 3584 + at, umulhi((lanes ^ lanes) as u32, 0xcd9e_8d57) as i64 + (at - at) + part);
}

fn reference(y: PtrMut<i64>, first: i64) {
    let part = first + program_id(0);
    for i in 0..512 {
        let at = program_id(0) * 4096 + i;
        store(y + at, (part * 512 + i) >> 9);
        store(y + 512 + at, (part * 512 + i) >> 8);
        store(y + 1024 + at, (part * 256 + i) >> 9);
        store(y + 1536 + at, (part * 512 + i) >> 32);
        store(y + 2048 + at, (part * 256 + i) >> 10);
        store(y + 2560 + at, (((part * 512 + i) as u64) >> 40) as i64);
        store(y + 3072 + at, (part * 512 + i + 1) >> 9);
        store(y + 3584 + at, part);
    }
}
