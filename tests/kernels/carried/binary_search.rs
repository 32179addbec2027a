//! A loop carries tiles of indices and loads at their middle.
//! x: counting 1000
//! q: any 512
//! y: zeros 512
//! n: 1000, 0, 1, 37
fn kernel(x: Ptr<i32>, q: Ptr<i32>, y: PtrMut<i64>, n: usize) {
    let o = arange(0, 512); let v = load(q + o); let mut lo = zeros::<i64>([512]); let mut hi = zeros::<i64>([512]) + n; for i in 0..10 { let mid = (lo + hi) / 2; let less = (load(x + mid, mask = mid < n) < v) & (lo < hi); hi = select(less, hi, mid); lo = select(less, mid + 1, lo); } store(y + o, lo);
}

fn reference(x: Ptr<i32>, q: Ptr<i32>, y: PtrMut<i64>, n: usize) {
    if program_id(0) == 0 { for o in 0..512 { let v = load(q + o); let mut lo = 0; let mut hi = n; for i in 0..10 { let mid = (lo + hi) / 2; let less = (load(x + mid, mask = mid < n) < v) & (lo < hi); hi = select(less, hi, mid); lo = select(less, mid + 1, lo); } store(y + o, lo); } }
}
