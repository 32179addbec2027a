//! Sums of long rows whose elements must stay where they are: a masked position adds one, the elements have an order or are stored, and a mask leaves out the first positions.
//! x: any 8000
//! y: any 12
//! each: any 768
//! grid: 3
//! n: 1037, 2600, 2051, 1500
//! m: 0, 100, 300, 2000
//! start: 1, 7, 3, 0
fn kernel(x: Ptr<i16>, y: PtrMut<i32>, each: PtrMut<i16>, n: usize, m: usize, start: usize) {
    let row = start + program_id(0) * n;
    let lanes = arange(0, 256);
    let mut counted = zeros::<i32>([256]);
    for from in range(0, n, 256) {
        let at = from + lanes;
        counted += load(x + row + at, mask = at < n) as i32 + 1;
    }
    let mut ordered = zeros::<i16>([256]);
    for from in range(0, n, 256) {
        let at = from + lanes;
        ordered += load(x + row + at, mask = at < n);
    }
    let mut stored = zeros::<i16>([256]);
    for from in range(0, n, 256) {
        let at = from + lanes;
        stored += load(x + row + at, mask = at < n);
    }
    let mut some = zeros::<i16>([256]);
    for from in range(0, n, 256) {
        let at = from + lanes;
        some += load(x + row + at, mask = (at < n) & (at >= m));
    }
    store(y + program_id(0), sum(counted));
    store(y + 3 + program_id(0), reduce(ordered, 0, |a, b| b) as i32);
    store(y + 6 + program_id(0), sum(stored) as i32);
    store(y + 9 + program_id(0), sum(some) as i32);
    store(each + program_id(0) * 256 + lanes, stored);
}

fn reference(x: Ptr<i16>, y: PtrMut<i32>, each: PtrMut<i16>, n: usize, m: usize, start: usize) {
    let row = start + program_id(0) * n;
    let mut counted = 0i32;
    let mut all = 0i16;
    let mut some = 0i16;
    for lane in 0..256 {
        let mut own = 0i16;
        for tile in 0..(n + 255) / 256 {
            let at = tile * 256 + lane;
            counted += 1;
            if at < n {
                let v = load(x + row + at);
                counted += v as i32;
                own += v;
                if at >= m {
                    some += v;
                }
            }
        }
        all += own;
        store(each + program_id(0) * 256 + lane, own);
        if lane == 255 {
            store(y + 3 + program_id(0), own as i32);
        }
    }
    store(y + program_id(0), counted);
    store(y + 6 + program_id(0), all as i32);
    store(y + 9 + program_id(0), some as i32);
}
