//! Constant limits with more than 32 bits: what the indices are only shows once a number cancels out.
//! y: zeros 2048
//! n: 1, 5, 1099511627776, -9223372036854775808
fn kernel(y: PtrMut<i32>, n: usize) {
    let lanes = arange(0, 512);
    let same = lanes - n + n;
    store(y + lanes, 1 + lanes as i32, mask = same < 4294967299);
    store(y + 512 + lanes, 1 + lanes as i32, mask = same >= -4294967000);
    store(y + 1024 + lanes, 1 + lanes as i32, mask = same < -4294967000);
    store(y + 1536 + lanes, 1 + lanes as i32, mask = same == 4294967299);
}

fn reference(y: PtrMut<i32>, n: usize) {
    for i in 0..1024 {
        store(y + i, 1 + (i % 512) as i32);
    }
}
