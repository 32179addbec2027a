//! Elements of one, two and four bytes, of which some rows are outside of their tensors.
//! x: whole 6000
//! s: whole 5000
//! y: zeros 5500
//! rows: 20, 20, 23, 20
//! n: 251, 499, 251, 504
//! start: 0, 3, 16, 8
//! grid: 16, 16, 16, 16
//! warps: 2
fn kernel(x: Ptr<i8>, s: Ptr<f16>, y: PtrMut<f32>, rows: usize, n: usize, start: usize) {
    let column = arange(0, 512);
    let mask = column < n;
    let mut before = zeros::<f32>([512]);
    for row in range(program_id(0), rows, 16) {
        let at = start + row * n + column;
        let v = load(x + at, mask = mask) as f32 + load(s + at, mask = mask) as f32;
        store(y + at, v - before + sum(v), mask = mask);
        before += v;
    }
}

fn reference(x: Ptr<i8>, s: Ptr<f16>, y: PtrMut<f32>, rows: usize, n: usize, start: usize) {
    for column in 0..n {
        let mut before = 0.0f32;
        for row in range(program_id(0), rows, 16) {
            let mut total = 0.0f32;
            let mut own = 0.0f32;
            for other in 0..n {
                let at = start + row * n + other;
                let v = (if at < 6000 { load(x + at) as f32 } else { 0.0 }) + (if at < 5000 { load(s + at) as f32 } else { 0.0 });
                total += v;
                if other == column {
                    own = v;
                }
            }
            let at = start + row * n + column;
            if at < 5500 {
                store(y + at, own - before + total);
            }
            before += own;
        }
    }
}
