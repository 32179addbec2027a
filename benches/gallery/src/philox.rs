//! The random numbers of `rand` in plain Rust, for references: Philox 4x32 with 10 rounds.

/// A little less than 2^-31, so that no number is rounded to 1.
const SCALE: f32 = 4.656_612_734_2e-10_f64 as f32;

/// The number that `rand(seed, offset)` gives, in [0, 1).
pub(crate) fn uniform(seed: u64, offset: u64) -> f32 {
    let [mut a, mut b, mut c, mut d] = [offset as u32, (offset >> 32) as u32, 0, 0];
    let [mut low, mut high] = [seed as u32, (seed >> 32) as u32];
    for _ in 0..10 {
        let product_a = u64::from(a) * 0xd251_1f53;
        let product_c = u64::from(c) * 0xcd9e_8d57;
        [a, b, c, d] = [(product_c >> 32) as u32 ^ b ^ low, product_c as u32, (product_a >> 32) as u32 ^ d ^ high, product_a as u32];
        low = low.wrapping_add(0x9e37_79b9);
        high = high.wrapping_add(0xbb67_ae85);
    }
    let signed = a as i32;
    // The negative half is folded onto the other one, so that 31 bits are left.
    (if signed < 0 { -1 - signed } else { signed }) as f32 * SCALE
}
