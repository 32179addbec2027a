#[kernel]
fn break_continue(x: Ptr<f32>, y: PtrMut<f32>, n: usize, m: i32) {
    let mut sum = 0.0;
    for i in 0..n {
        let v = load(x + i);
        if v < 0.0 {
            continue;
        }
        if v > 100.0 {
            break;
        }
        sum += v;
    }
    let mut j = 0;
    while true {
        j += 1;
        if j > m {
            break;
        }
        if j == 3 {
            continue;
        }
        for k in 0..j {
            if k == 5 {
                return;
            }
            sum += 1.0;
        }
    }
    store(y, sum);
}
