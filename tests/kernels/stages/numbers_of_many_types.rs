//! Numbers of all widths are loaded ahead beside rows: some are masked, some are outside of their tensor, and some have a nonzero `other`.
//! x: whole 17000
//! a: any 16
//! b: any 9
//! c: whole 16
//! d: any 40
//! e: whole 12
//! y: zeros 17000
//! rows: 12, 11, 16, 9, 3, 0
//! n: 1021, 1022, 1019, 1023, 1024, 1000
//! grid: 8, 4, 8, 2, 3, 8
//! warps: 8
fn kernel(x: Ptr<f16>, a: Ptr<i8>, b: Ptr<i32>, c: Ptr<f64>, d: Ptr<i64>, e: Ptr<f32>, y: PtrMut<i64>, rows: usize, n: usize) {
    let column = arange(0, 1024);
    let mask = column < n;
    let mut acc = zeros::<i64>([1024]);
    for row in range(program_id(0), rows, num_programs(0), num_stages = 4) {
        let v = load(x + row * n + column, mask = mask) as i64;
        let s = load(a + row) as i64 + load(b + row, mask = row % 3 != 1, other = 77) as i64;
        let t = load(c + row) as i64 * 3 + load(d + 2 * row + 1, other = 5);
        let u = load(e + row, mask = row < 10, other = -5.0) as i64;
        acc += v * s + t * u;
        store(y + row * n + column, acc, mask = mask);
    }
}

fn reference(x: Ptr<f16>, a: Ptr<i8>, b: Ptr<i32>, c: Ptr<f64>, d: Ptr<i64>, e: Ptr<f32>, y: PtrMut<i64>, rows: usize, n: usize) {
    for j in 0..n {
        let mut acc = 0i64;
        for row in range(program_id(0), rows, num_programs(0)) {
            let v = load(x + row * n + j) as i64;
            let s = load(a + row) as i64 + (if row % 3 != 1 { load(b + row, mask = true, other = 77) as i64 } else { 77i64 });
            let t = load(c + row) as i64 * 3 + load(d + 2 * row + 1, mask = true, other = 5);
            let u = (if row < 10 { load(e + row, mask = true, other = -5.0) } else { -5.0 }) as i64;
            acc += v * s + t * u;
            store(y + row * n + j, acc);
        }
    }
}
