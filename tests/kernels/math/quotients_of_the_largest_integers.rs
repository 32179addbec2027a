//! The largest and the smallest integers divided by numbers that are known: their quotients are next to a whole number.
//! q: zeros 512
//! r: zeros 512
//! s: zeros 512
//! t: zeros 512
fn kernel(q: PtrMut<u32>, r: PtrMut<u32>, s: PtrMut<i64>, t: PtrMut<u64>) {
    let i = arange(0, 64);
    let (x, w) = (4294967295 - i as u32, 18446744073709551615 - i as u64);
    let v = select(i < 32, 9223372036854775807 - i, -9223372036854775807 + i);
    store(q + i, x / 3);
    store(q + 64 + i, x / 6);
    store(q + 128 + i, x / 7);
    store(q + 192 + i, x / 641);
    store(r + i, x % 3);
    store(r + 64 + i, x % 5);
    store(r + 128 + i, x % 7);
    store(r + 192 + i, x % 10);
    store(s + i, v / 3);
    store(s + 64 + i, v / 7);
    store(s + 128 + i, v % 10);
    store(s + 192 + i, v / 8);
    store(t + i, w / 3);
    store(t + 64 + i, w / 7);
    store(t + 128 + i, w % 10);
    store(t + 192 + i, w / 641);
}

fn reference(q: PtrMut<u32>, r: PtrMut<u32>, s: PtrMut<i64>, t: PtrMut<u64>) {
    for i in 0..64 {
        let (x, w) = (4294967295 - i as u32, 18446744073709551615 - i as u64);
        let v = if i < 32 { 9223372036854775807 - i } else { -9223372036854775807 + i };
        for k in 0..4 {
            let by = if k == 0 { 3 } else { if k == 1 { 6 } else { if k == 2 { 7 } else { 641 } } };
            store(q + 64 * k + i, x / by as u32);
            let by = if k == 0 { 3 } else { if k == 1 { 5 } else { if k == 2 { 7 } else { 10 } } };
            store(r + 64 * k + i, x % by as u32);
            let by = if k == 0 { 3 } else { if k == 1 { 7 } else { if k == 2 { 10 } else { 8 } } };
            store(s + 64 * k + i, if k == 2 { v % by } else { v / by });
            let by = (if k == 0 { 3 } else { if k == 1 { 7 } else { if k == 2 { 10 } else { 641 } } }) as u64;
            store(t + 64 * k + i, if k == 2 { w % by } else { w / by });
        }
    }
}
