#[kernel(heuristics(EVENN = n % 2 == 0, n = 3, EVEN = true, EVEN = false))]
fn k<const BLOCK: usize, const EVEN: bool>(x: Ptr<f32>, y: PtrMut<f32>, n: usize, scale: f32) {
    store(y + arange(0, BLOCK), scale, mask = arange(0, BLOCK) < n && EVEN);
}
