//! Reduces so many tiles together that not even one run of each fits into shared memory at once.
//! x: any 1024
//! y: zeros 960
//! warps: 32
fn kernel(x: Ptr<i64>, y: PtrMut<i64>) {
    let j = arange(0, 32);
    let v = load(x + 32 * j.col() + j.row());
    let tiles = (
        v, v * 3, v * 5, v * 7, v * 9, v * 11, v * 13, v * 15, v * 17, v * 19, v * 21, v * 23, v * 25, v * 27, v * 29, v * 31, v * 33,
        v * 35, v * 37, v * 39, v * 41, v * 43, v * 45, v * 47, v * 49, v * 51, v * 53, v * 55, v * 57, v * 59,
    );
    let totals = reduce(tiles, 0, |a, b| (
        a.0 + b.0, max(a.1, b.1), a.2 ^ b.2, a.3 + b.3, max(a.4, b.4), a.5 ^ b.5, a.6 + b.6, max(a.7, b.7), a.8 ^ b.8, a.9 + b.9,
        max(a.10, b.10), a.11 ^ b.11, a.12 + b.12, max(a.13, b.13), a.14 ^ b.14, a.15 + b.15, max(a.16, b.16), a.17 ^ b.17, a.18 + b.18,
        max(a.19, b.19), a.20 ^ b.20, a.21 + b.21, max(a.22, b.22), a.23 ^ b.23, a.24 + b.24, max(a.25, b.25), a.26 ^ b.26, a.27 + b.27,
        max(a.28, b.28), a.29 ^ b.29,
    ));
    store(y + 0 + j, totals.0);
    store(y + 32 + j, totals.1);
    store(y + 64 + j, totals.2);
    store(y + 96 + j, totals.3);
    store(y + 128 + j, totals.4);
    store(y + 160 + j, totals.5);
    store(y + 192 + j, totals.6);
    store(y + 224 + j, totals.7);
    store(y + 256 + j, totals.8);
    store(y + 288 + j, totals.9);
    store(y + 320 + j, totals.10);
    store(y + 352 + j, totals.11);
    store(y + 384 + j, totals.12);
    store(y + 416 + j, totals.13);
    store(y + 448 + j, totals.14);
    store(y + 480 + j, totals.15);
    store(y + 512 + j, totals.16);
    store(y + 544 + j, totals.17);
    store(y + 576 + j, totals.18);
    store(y + 608 + j, totals.19);
    store(y + 640 + j, totals.20);
    store(y + 672 + j, totals.21);
    store(y + 704 + j, totals.22);
    store(y + 736 + j, totals.23);
    store(y + 768 + j, totals.24);
    store(y + 800 + j, totals.25);
    store(y + 832 + j, totals.26);
    store(y + 864 + j, totals.27);
    store(y + 896 + j, totals.28);
    store(y + 928 + j, totals.29);
}

fn reference(x: Ptr<i64>, y: PtrMut<i64>) {
    for j in 0..32 {
        for k in static_range(0, 30) {
            let mut total = load(x + j) * (2 * k + 1);
            for i in 1..32 {
                let v = load(x + 32 * i + j) * (2 * k + 1);
                total = if k % 3 == 0 {
                    total + v
                } else if k % 3 == 1 {
                    max(total, v)
                } else {
                    total ^ v
                };
            }
            store(y + 32 * k + j, total);
        }
    }
}
