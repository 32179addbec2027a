//! Random numbers without a state: a number is a function of a seed and a counter, by Philox (Salmon, Moraes, Dror and Shaw, "Parallel
//! random numbers: as easy as 1, 2, 3", 2011). The streams are Triton's: equal seeds and offsets give equal bits.

pub fn philox<S: Int, C: Int>(
    seed: Value<S>,
    c0: Value<C>,
    c1: Value<C>,
    c2: Value<C>,
    c3: Value<C>,
    #[option(10)] n_rounds: usize,
) -> (Value<C>, Value<C>, Value<C>, Value<C>) {
    static_assert!(C != i8 && C != u8 && C != i16 && C != u16, "the counters of `philox` have 32 or 64 bits");
    let key = seed as u64;
    if C == u64 || C == i64 {
        let (a, b, c, d) = philox_4x64(c0 as u64, c1 as u64, c2 as u64, c3 as u64, key, n_rounds);
        (a as C, b as C, c as C, d as C)
    } else {
        let (a, b, c, d) = philox_4x32(c0 as u32, c1 as u32, c2 as u32, c3 as u32, key, n_rounds);
        (a as C, b as C, c as C, d as C)
    }
}

pub fn randint<S: Int, I: Int>(seed: Value<S>, offset: Value<I>, #[option(10)] n_rounds: usize) -> Value<u32> {
    let (a, _, _, _) = randint4x(seed, offset, n_rounds = n_rounds);
    a
}

pub fn rand<S: Int, I: Int>(seed: Value<S>, offset: Value<I>, #[option(10)] n_rounds: usize) -> Value<f32> {
    uniform(randint(seed, offset, n_rounds = n_rounds))
}

pub fn randn<S: Int, I: Int>(seed: Value<S>, offset: Value<I>, #[option(10)] n_rounds: usize) -> Value<f32> {
    let (a, b, _, _) = randint4x(seed, offset, n_rounds = n_rounds);
    let (x, _) = normal_pair(uniform(a), uniform(b));
    x
}

/// The counter is the offset: its lower and its upper 32 bits, and zeros.
pub fn randint4x<S: Int, I: Int>(
    seed: Value<S>,
    offset: Value<I>,
    #[option(10)] n_rounds: usize,
) -> (Value<u32>, Value<u32>, Value<u32>, Value<u32>) {
    let low = offset as u32;
    let zero = low ^ low;
    let high = if I == i64 || I == u64 { (offset >> 32) as u32 } else { zero };
    philox_4x32(low, high, zero, zero, seed as u64, n_rounds)
}

pub fn rand4x<S: Int, I: Int>(
    seed: Value<S>,
    offset: Value<I>,
    #[option(10)] n_rounds: usize,
) -> (Value<f32>, Value<f32>, Value<f32>, Value<f32>) {
    let (a, b, c, d) = randint4x(seed, offset, n_rounds = n_rounds);
    (uniform(a), uniform(b), uniform(c), uniform(d))
}

pub fn randn4x<S: Int, I: Int>(
    seed: Value<S>,
    offset: Value<I>,
    #[option(10)] n_rounds: usize,
) -> (Value<f32>, Value<f32>, Value<f32>, Value<f32>) {
    let (a, b, c, d) = rand4x(seed, offset, n_rounds = n_rounds);
    let (w, x) = normal_pair(a, b);
    let (y, z) = normal_pair(c, d);
    (w, x, y, z)
}

/// A round mixes two products into the other two words; the key grows by a constant, the golden ratio and the root of 3 less 1.
fn philox_4x32(
    c0: Value<u32>,
    c1: Value<u32>,
    c2: Value<u32>,
    c3: Value<u32>,
    key: Value<u64>,
    n_rounds: usize,
) -> (Value<u32>, Value<u32>, Value<u32>, Value<u32>) {
    // Every word depends on every other from the second round on: all have the shape of all.
    let shape = (c0 ^ c1 ^ c2 ^ c3 ^ key as u32) & 0;
    let (mut a, mut b, mut c, mut d) = (c0 | shape, c1 | shape, c2 | shape, c3 | shape);
    let (mut low, mut high) = (key as u32, (key >> 32) as u32);
    for _ in static_range(0, n_rounds) {
        let (first, third) = (a, c);
        a = umulhi(third, 0xcd9e_8d57) ^ b ^ low;
        c = umulhi(first, 0xd251_1f53) ^ d ^ high;
        b = third * 0xcd9e_8d57;
        d = first * 0xd251_1f53;
        low = low + 0x9e37_79b9;
        high = high + 0xbb67_ae85;
    }
    (a, b, c, d)
}

/// As with 32 bits; the upper half of the key is 0.
fn philox_4x64(
    c0: Value<u64>,
    c1: Value<u64>,
    c2: Value<u64>,
    c3: Value<u64>,
    key: Value<u64>,
    n_rounds: usize,
) -> (Value<u64>, Value<u64>, Value<u64>, Value<u64>) {
    let shape = (c0 ^ c1 ^ c2 ^ c3 ^ key) & 0;
    let (mut a, mut b, mut c, mut d) = (c0 | shape, c1 | shape, c2 | shape, c3 | shape);
    let (mut low, mut high) = (key, key ^ key);
    for _ in static_range(0, n_rounds) {
        let (first, third) = (a, c);
        a = umulhi(third, 0xca5a_8263_9512_1157) ^ b ^ low;
        c = umulhi(first, 0xd2e7_470e_e14c_6c93) ^ d ^ high;
        b = third * 0xca5a_8263_9512_1157;
        d = first * 0xd2e7_470e_e14c_6c93;
        low = low + 0x9e37_79b9_7f4a_7c15;
        high = high + 0xbb67_ae85_84ca_a73b;
    }
    (a, b, c, d)
}

/// 32 random bits as a number in [0, 1): the 31 bits that remain when negative numbers are inverted, times the float below 2^-31, so that
/// what rounds to 2^31 does not reach 1.
fn uniform(bits: Value<u32>) -> Value<f32> {
    let signed = bitcast::<i32>(bits);
    select(signed < 0, !signed, signed) as f32 * 4.656_612_734_2e-10
}

/// After Box and Muller: two independent normal numbers of two uniform ones.
fn normal_pair(u: Value<f32>, v: Value<f32>) -> (Value<f32>, Value<f32>) {
    let radius = sqrt(-2.0 * log(max(u, 1.0e-7)));
    let angle = v * std::f32::consts::TAU;
    (radius * cos(angle), radius * sin(angle))
}
