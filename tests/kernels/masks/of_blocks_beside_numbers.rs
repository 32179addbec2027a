//! Indices of blocks beside numbers of any size: comparisons in each direction, whose results are data.
//! y: zeros 2304
//! n: 0, -1, 1, 17, 40, 47, 1000, -4294967290, -5000000000, 5000000000, -9223372036854775808, 9223372036854775807
//! m: 3, 2, 1, 0, 3, 3, 3, 3, 1, 2, 3, 3
//! grid: 70
fn kernel(y: PtrMut<i32>, n: i64, m: i64) {
    let lane = arange(0, 16);
    let at = program_id(0) * 16 + lane;
    let below = select(at < n, 1, 0) + select(at <= n, 2, 0);
    let above = select(at > n, 4, 0) + select(n <= at, 8, 0);
    let beside = select(at + 3 < n, 16, 0) + select(program_id(0) * 32 + at * 2 > n, 32, 0) + select(program_id(0) * 48 + lane < n, 512, 0);
    let wide = select(program_id(0) * 144115188075855872 + lane < n, 64, 0) + select(lane - program_id(0) * 16 < n, 128, 0);
    store(y + at, (below + above + beside + wide + select(lane < n, 256, 0)) as i32);
    let far = program_id(0) * 33554432 + lane;
    let mut sums = zeros::<i64>([16]);
    for row in range(0, m) {
        sums += select(far < m - row, 1, 0) + select(lane < n + row, 10, 0) + select(at < n, row, 100);
    }
    store(y + 1152 + at, sums as i32, mask = at <= n);
}

fn reference(y: PtrMut<i32>, n: i64, m: i64) {
    for lane in 0..16 {
        let at = program_id(0) * 16 + lane;
        let below = select(at < n, 1, 0) + select(at <= n, 2, 0);
        let above = select(at > n, 4, 0) + select(n <= at, 8, 0);
        let beside = select(at + 3 < n, 16, 0) + select(program_id(0) * 32 + at * 2 > n, 32, 0) + select(program_id(0) * 48 + lane < n, 512, 0);
        let wide = select(program_id(0) * 144115188075855872 + lane < n, 64, 0) + select(lane - program_id(0) * 16 < n, 128, 0);
        store(y + at, (below + above + beside + wide + select(lane < n, 256, 0)) as i32);
        let far = program_id(0) * 33554432 + lane;
        let mut sums = 0;
        for row in range(0, m) {
            sums += select(far < m - row, 1, 0) + select(lane < n + row, 10, 0) + select(at < n, row, 100);
        }
        store(y + 1152 + at, sums as i32, mask = at <= n);
    }
}
