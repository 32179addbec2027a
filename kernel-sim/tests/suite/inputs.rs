//! The inputs of the suite: the same numbers wherever they are made, with what is special among them.

use kernel_sim::ptx::Type;

use crate::rows::{Domain, Input};

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// Bytes of a value in memory: registers of eight bits do not exist, so such values fill 32.
pub(crate) fn stored_bytes(ty: Type) -> usize {
    match ty {
        Type::Pred => 1,
        _ if ty.bits() <= 8 => 4,
        _ => ty.bytes() as usize,
    }
}

/// One thread's values of all inputs.
pub(crate) fn case(random: &mut Random, inputs: &[Input]) -> Vec<u64> {
    let mut values: Vec<u64> = Vec::with_capacity(inputs.len());
    for (index, input) in inputs.iter().enumerate() {
        let before = index.checked_sub(1).filter(|&before| inputs[before] == *input).map(|before| values[before]);
        let value = match before {
            // Equal and opposite values cancel.
            Some(before) if random.below(8) == 0 => before ^ if input.ty.is_float() { random.below(2) << (input.ty.bits() - 1) } else { 0 },
            _ => value(random, *input),
        };
        values.push(value);
    }
    if let [a, b, c] = inputs
        && a == b
        && b == c
        && random.below(4) == 0
    {
        // A product that its addend takes away shows whether it was rounded before. The bits of a NaN would depend on the host.
        let opposite = match a.ty {
            Type::F32 => {
                let product = -(f32::from_bits(values[0] as u32) * f32::from_bits(values[1] as u32));
                (!product.is_nan()).then(|| u64::from(product.to_bits()))
            }
            Type::F64 => {
                let product = -(f64::from_bits(values[0]) * f64::from_bits(values[1]));
                (!product.is_nan()).then(|| product.to_bits())
            }
            _ => None,
        };
        values[2] = opposite.unwrap_or(values[2]);
    }
    values
}

fn value(random: &mut Random, input: Input) -> u64 {
    let Input { ty, domain } = input;
    if let Domain::Below(bound) = domain {
        return random.below(bound);
    }
    let mut pair =
        |exponent: u32, mantissa: u32| float(random, exponent, mantissa, domain) << 16 | float(random, exponent, mantissa, domain);
    match ty {
        Type::Pred => random.below(2),
        Type::F16 => float(random, 5, 10, domain),
        Type::Bf16 => float(random, 8, 7, domain),
        Type::F32 => float(random, 8, 23, domain),
        Type::F64 => float(random, 11, 52, domain),
        Type::F16x2 => pair(5, 10),
        Type::Bf16x2 => pair(8, 7),
        Type::E4m3 => (0..4).fold(0, |word, _| word << 8 | eight_bits(random, 4, 3, domain)),
        Type::E5m2 => (0..4).fold(0, |word, _| word << 8 | eight_bits(random, 5, 2, domain)),
        _ => loop {
            let bits = integer(random, if ty.bits() <= 8 { 32 } else { ty.bits() });
            if bits != 0 || domain != Domain::NonZero {
                break bits;
            }
        },
    }
}

fn integer(random: &mut Random, bits: u32) -> u64 {
    let mask = u64::MAX >> (64 - bits);
    let sign = 1u64 << (bits - 1);
    let value = match random.below(4) {
        0 => {
            random.pick(&[0, 1, 2, 3, u64::MAX, u64::MAX - 1, sign, sign - 1, sign + 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x10000])
        }
        1 => {
            let small = random.next() >> random.below(64);
            if random.below(2) == 0 { small } else { small.wrapping_neg() }
        }
        _ => random.next(),
    };
    value & mask
}

fn eight_bits(random: &mut Random, exponent: u32, mantissa: u32, domain: Domain) -> u64 {
    if domain == Domain::Moderate { float(random, exponent, mantissa, domain) } else { random.below(256) }
}

/// The bits of a float.
fn float(random: &mut Random, exponent_bits: u32, mantissa_bits: u32, domain: Domain) -> u64 {
    let sign = random.below(2) << (exponent_bits + mantissa_bits);
    let bias = (1i64 << (exponent_bits - 1)) - 1;
    let mask = (1u64 << mantissa_bits) - 1;
    let top = (1u64 << exponent_bits) - 1;
    let compose = |exponent: i64, mantissa: u64| sign | (exponent.clamp(0, top as i64) as u64) << mantissa_bits | mantissa & mask;
    let mut between = |low: i64, high: i64| low + random.below((high - low + 1) as u64) as i64;
    if domain == Domain::Moderate {
        let exponent = bias + between(-4, 3);
        return compose(exponent, random.next());
    }
    match between(0, 7) {
        0 | 1 => {
            let payload = random.next() & mask >> 1;
            let quiet = 1u64 << (mantissa_bits - 1);
            let specials = [
                (0, 0),
                (0, 1),
                (0, mask),
                (1, 0),
                (bias, 0),
                (bias, 1),
                (bias - 1, mask),
                (bias - 1, 0),
                (bias, quiet),
                (bias + 1, 0),
                (top as i64 - 1, mask),
                (top as i64, 0),
                (top as i64, 0),
                (top as i64, quiet | payload),
                (top as i64, payload | 1),
            ];
            let (exponent, mantissa) = random.pick(&specials);
            compose(exponent, mantissa)
        }
        2 | 3 => sign | random.next() >> (64 - exponent_bits - mantissa_bits),
        4 => {
            let exponent = bias + between(-8, 8);
            compose(exponent, random.next())
        }
        5 | 6 => {
            // Few bits: sums are exact, and conversions to less find ties.
            let exponent = bias + between(-4, 66).min(i64::from(mantissa_bits) + 40);
            let kept = between(0, i64::from(mantissa_bits)) as u32;
            compose(exponent, random.next() & !(mask >> kept) | u64::from(random.below(8) == 0))
        }
        _ => {
            // Where smaller types end.
            let ends = [(-26, -12), (14, 17), (-152, -125), (126, 129), (6, 10), (-12, -5), (30, 33), (62, 65), (-20, -14)];
            let (low, high) = ends[between(0, ends.len() as i64 - 1) as usize];
            let exponent = bias + between(low, high);
            let kept = between(0, i64::from(mantissa_bits)) as u32;
            compose(exponent, random.next() & !(mask >> kept))
        }
    }
}
