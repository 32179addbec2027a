//! A flat index is taken apart into three digits, and put together from six.
//! x: any 4096
//! y: zeros 4096
//! n: 4096, 4000
//! r: 2, 4
//! h: 8, 4
//! w: 8, 4
//! c: 16, 16
//! grid: 4
fn kernel(x: Ptr<f16>, y: PtrMut<f16>, n: usize, r: usize, h: usize, w: usize, c: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024); let wo = o % (w * r); let ho = o / (w * r) % (h * r); let co = o / (w * r * h * r); let src = ((co * r * r + ho % r * r + wo % r) * h + ho / r) * w + wo / r; store(y + o, load(x + src, mask = o < n), mask = o < n);
}

fn reference(x: Ptr<f16>, y: PtrMut<f16>, n: usize, r: usize, h: usize, w: usize, c: usize) {
    if program_id(0) == 0 { for o in 0..4096 { let wo = o % (w * r); let ho = o / (w * r) % (h * r); let co = o / (w * r * h * r); let src = ((co * r * r + ho % r * r + wo % r) * h + ho / r) * w + wo / r; store(y + o, load(x + src, mask = o < n), mask = o < n); } }
}
