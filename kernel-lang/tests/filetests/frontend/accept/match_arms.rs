#[kernel(MODE = [0, 1, 2])]
fn k<const MODE: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize, on: bool) {
    let v = load(x + arange(0, 64));
    // Of a constant only one arm is left.
    let r = match MODE {
        0 => sum(v),
        1 => max(v),
        _ => min(v),
    };
    let factor = match n {
        0 => 1.0,
        1 | 2 => 2.0,
        3..=9 => {
            let wide = n as f32;
            wide * 0.5
        }
        100.. => 4.0,
        MODE => 5.0,
        _ if on => 6.0,
        odd if odd % 2 == 1 => odd as f32,
        other => (other * 3) as f32,
    };
    match on {
        true => store(y, r * factor),
        false => return,
    }
    let mut count = 0;
    for i in 0..n {
        match i % 3 {
            0 => continue,
            1 => count += 1,
            _ => count += 2,
        }
    }
    store(y + 1, count as f32);
}
