//! Random numbers: Philox as its authors define it, and what is made of it, as Triton makes it.

use galatea::Dtype;

use crate::array::{Array, Tolerance};
use crate::case::{Case, refused};
use crate::lab::{Arg, Source};
use crate::number::Number;

const SEEDS: [u64; 6] = [0, 42, 124, 54, 0xffff_ffff, 0x0000_000f_cafe_b0ba];

/// Philox 4x32 after ten rounds.
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let [even, odd] = [(0xd251_1f53u64, 0), (0xcd9e_8d57u64, 2)].map(|(factor, word)| factor * u64::from(counter[word]));
        counter = [(odd >> 32) as u32 ^ counter[1] ^ key[0], odd as u32, (even >> 32) as u32 ^ counter[3] ^ key[1], even as u32];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

fn words(seed: u64, offset: u64) -> [u32; 4] {
    philox([offset as u32, (offset >> 32) as u32, 0, 0], [seed as u32, (seed >> 32) as u32])
}

/// A word as a number from 0 to before 1, rounded as `f32` computes it.
fn uniform(word: u32) -> f32 {
    let signed = word as i32;
    (if signed < 0 { !signed } else { signed }) as f32 * (4.656_612_734_2e-10f64 as f32)
}

/// A kernel that stores what `expression` says of `seed` and `at`; the seed an argument, or a constant.
fn source(out: Dtype, offset: Dtype, expression: &str, constant: Option<u64>) -> Source {
    let seed = constant.map_or_else(|| "seed".to_string(), |seed| format!("{seed}u64"));
    Source::new(format!(
        "fn kernel(y: PtrMut<{out}>, seed: u64) {{
            let at = program_id(0) * 64 + arange(0, 64);
            let (offset, seed) = (at as {offset}, {seed});
            store(y + at, {expression});
        }}"
    ))
}

fn seed_word(seed: u64) -> Arg<'static> {
    Arg::Scalar(Dtype::U64, Number::Int(seed.into()))
}

/// The first word of each offset, whatever the width of the offsets, of a seed that is an argument or a constant.
pub(crate) fn randint() -> Vec<Case> {
    let mut cases = Vec::new();
    for size in [10, 4 * 53, 400] {
        for seed in SEEDS {
            for offset in [Dtype::I32, Dtype::I64] {
                for constant in [false, true] {
                    let source = source(Dtype::U32, offset, "randint(seed, offset)", constant.then_some(seed));
                    let name = format!("{size}-{seed:#x}-{offset}{}", if constant { "-constant" } else { "" });
                    cases.push(Case::new(name, move |lab| {
                        let mut y = lab.any(Dtype::U32, size);
                        lab.launch(&source, [size.div_ceil(64), 1, 1], &mut [Arg::Out(&mut y), seed_word(seed)])?;
                        y.check(Tolerance::Exact, |i| Number::Int(words(seed, i as u64)[0].into()))
                    }));
                }
            }
        }
    }
    cases
}

/// Numbers from 0 to before 1: bit by bit, and evenly spread.
pub(crate) fn rand() -> Vec<Case> {
    let mut cases = Vec::new();
    for seed in SEEDS {
        for offset in [Dtype::I32, Dtype::I64] {
            for constant in [false, true] {
                let source = source(Dtype::F32, offset, "rand(seed, offset)", constant.then_some(seed));
                let name = format!("{seed:#x}-{offset}{}", if constant { "-constant" } else { "" });
                cases.push(Case::new(name, move |lab| {
                    const LEN: usize = 4096;
                    let mut y = lab.any(Dtype::F32, LEN);
                    lab.launch(&source, [LEN / 64, 1, 1], &mut [Arg::Out(&mut y), seed_word(seed)])?;
                    y.check(Tolerance::Exact, |i| Number::Float(uniform(words(seed, i as u64)[0]).into()))?;
                    spread(&y, 0.5, 1.0 / 12.0)
                }));
            }
        }
    }
    cases
}

/// Mean and variance of many numbers, to six standard deviations of them.
fn spread(y: &Array, mean: f64, variance: f64) -> Result<(), String> {
    let (len, values) = (y.len() as f64, || y.numbers().map(Number::float));
    let average = values().sum::<f64>() / len;
    let squares = values().map(|x| (x - average).powi(2)).sum::<f64>() / len;
    let near = (average - mean).abs() < 6.0 * (variance / len).sqrt() && (squares - variance).abs() < 6.0 * variance * (2.0 / len).sqrt();
    if near { Ok(()) } else { Err(format!("mean {average}, variance {squares}, not {mean} and {variance}")) }
}

/// Normal numbers by the method of Box and Muller.
pub(crate) fn randn() -> Vec<Case> {
    let mut cases = Vec::new();
    for seed in SEEDS {
        for offset in [Dtype::I32, Dtype::I64] {
            for constant in [false, true] {
                let source = source(Dtype::F32, offset, "randn(seed, offset)", constant.then_some(seed));
                let name = format!("{seed:#x}-{offset}{}", if constant { "-constant" } else { "" });
                cases.push(Case::new(name, move |lab| {
                    const LEN: usize = 4096;
                    let mut y = lab.any(Dtype::F32, LEN);
                    lab.launch(&source, [LEN / 64, 1, 1], &mut [Arg::Out(&mut y), seed_word(seed)])?;
                    // The angle and the radius are `f32`: what is near zero has an absolute error.
                    y.check(Tolerance::Relative(1e-5, 2e-6), |i| {
                        let [first, second, ..] = words(seed, i as u64);
                        let radius = (-2.0 * f64::from(uniform(first)).max(1e-7).ln()).sqrt();
                        Number::Float(radius * (std::f64::consts::TAU * f64::from(uniform(second))).cos())
                    })?;
                    spread(&y, 0.0, 1.0)
                }));
            }
        }
    }
    cases
}

/// The four words at once.
pub(crate) fn four_at_once() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, dtype) in [("randint4x", Dtype::U32), ("rand4x", Dtype::F32)] {
        for (word, pick) in ["a", "b", "c", "d"].into_iter().enumerate() {
            let expression = format!("{{ let (a, b, c, d) = {name}(seed, offset); {pick} }}");
            let source = source(dtype, Dtype::I64, &expression, None);
            cases.push(Case::new(format!("{name}-{pick}"), move |lab| {
                let seed = lab.random();
                let mut y = lab.any(dtype, 100);
                lab.launch(&source, [2, 1, 1], &mut [Arg::Out(&mut y), seed_word(seed)])?;
                y.check(Tolerance::Exact, |i| {
                    let drawn = words(seed, i as u64)[word];
                    if dtype == Dtype::U32 { Number::Int(drawn.into()) } else { Number::Float(uniform(drawn).into()) }
                })
            }));
        }
    }
    cases
}

/// A seed is an integer.
pub(crate) fn seed_is_int() -> Vec<Case> {
    [("float", "2.3"), ("tile-of-floats", "zeros::<f32>([64])")]
        .map(|(name, seed)| {
            let text = format!("fn kernel(y: PtrMut<f32>) {{ let at = arange(0, 64); store(y + at, rand({seed}, at)); }}");
            refused(name, Source::new(text), "`rand`")
        })
        .into()
}

/// The words that give the smallest and the largest number: both ends of the integers.
pub(crate) fn rand_limits() -> Vec<Case> {
    // The conversion of a random word to a float in `rand`, written in the kernel language.
    let source = Source::new(
        "fn kernel(x: Ptr<u32>, y: PtrMut<f32>) {
            let at = arange(0, 4);
            let signed = bitcast::<i32>(load(x + at));
            store(y + at, select(signed < 0, !signed, signed) as f32 * 4.6566127342e-10);
        }",
    );
    vec![Case::new("ends", move |lab| {
        let x = Array::ints(Dtype::U32, [0, i32::MAX.into(), 1 << 31, u32::MAX.into()]);
        let mut y = lab.any(Dtype::F32, 4);
        lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
        y.check(Tolerance::Exact, |i| Number::Float(uniform(x.bits[i] as u32).into()))?;
        match y.numbers().find(|number| !(0.0..1.0).contains(&number.float())) {
            Some(number) => Err(format!("{number:?} is not below 1")),
            None => Ok(()),
        }
    })]
}
