#[kernel(heuristics = [EVEN], BLOCK = 64)]
fn k<const BLOCK: usize, const EVEN: bool>(x: Ptr<f32>, y: PtrMut<f32>, n: usize, scale: f32) {
    store(y + arange(0, BLOCK), scale, mask = arange(0, BLOCK) < n && EVEN);
}
