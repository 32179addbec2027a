//! Every elementwise op on every dtype of its domain: the executor over tiles, the scalar function, and a reference that knows neither.

mod support;

use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{BinaryOp, CompareOp, Domain, UnaryOp};
use kernel_lang::scalar::{self, Scalar};
use support::{Buffer, compile, float, float_bits, int, int_bits, run_grid, same, samples};

/// Runs `op` over operands in tiles of 64, the last one ragged, and returns the result's bits.
fn over_tiles(op: &str, operands: &[(Dtype, Vec<u64>)], result: Dtype) -> Vec<u64> {
    let n = operands[0].1.len();
    let names = ["a", "b", "c"];
    let params: Vec<String> = operands.iter().zip(names).map(|((dtype, _), name)| format!("%{name}: ptr<{dtype}>")).collect();
    let loads: Vec<String> = operands
        .iter()
        .zip(names)
        .map(|((dtype, _), name)| format!("%v{name} = load %{name}, %5 {{mask = %7}} : tile<{dtype}, [64]>\n    "))
        .collect();
    let args: Vec<String> = names[..operands.len()].iter().map(|name| format!("%v{name}")).collect();
    let text = format!(
        "kernel @op({}, %r: ptr_mut<{result}>, %n: i64) {{
    %0 = program_id : i64
    %1 = const {{value = 64}} : i64
    %2 = mul %0, %1 : i64
    %3 = arange {{start = 0, end = 64}} : tile<i64, [64]>
    %4 = broadcast %2 : tile<i64, [64]>
    %5 = add %4, %3 : tile<i64, [64]>
    %6 = broadcast %n : tile<i64, [64]>
    %7 = lt %5, %6 : tile<bool, [64]>
    {}%8 = {op} {} : tile<{result}, [64]>
    store %r, %5, %8 {{mask = %7}}
    return
}}
",
        params.join(", "),
        loads.concat(),
        args.join(", ")
    );
    let mut buffers: Vec<Buffer> = operands.iter().map(|(dtype, bits)| Buffer::new(*dtype, bits)).collect();
    let mut output = Buffer::poisoned(result, n);
    let mut words: Vec<u64> = buffers.iter_mut().flat_map(Buffer::args).collect();
    words.extend(output.args());
    words.push(n as u64);
    run_grid(&compile(&text), &words, [n.div_ceil(64) as u32, 1, 1], true).unwrap();
    output.check_guards();
    output.bits()
}

/// The expected result of an op on one element.
#[derive(Debug)]
enum Expected {
    /// These bits (any NaN for NaN).
    Bits(u64),
    /// The nearest float or, if the value is so close to the middle of two, the other one: within so many ulp of the exact value.
    Near(f64, f64),
}

fn check(what: &str, dtype: Dtype, got: u64, expected: &Expected) {
    match expected {
        Expected::Bits(bits) => assert!(same(dtype, got, *bits), "{what}: {got:#x}, not {bits:#x}"),
        Expected::Near(exact, ulps) => {
            let value = float(dtype, got);
            let rounded = float(dtype, float_bits(dtype, *exact));
            if !rounded.is_finite() || *exact == 0.0 {
                return assert!(same(dtype, got, float_bits(dtype, *exact)), "{what}: {value:e}, not {exact:e}");
            }
            let error = (value - exact).abs() / ulp(dtype, *exact);
            assert!(error <= *ulps, "{what}: {value:e}, not {exact:e}: {error} ulp");
        }
    }
}

/// The distance of neighbours at that value.
fn ulp(dtype: Dtype, value: f64) -> f64 {
    let (digits, smallest) = match dtype {
        Dtype::F16 => (11, -14),
        Dtype::Bf16 => (8, -126),
        Dtype::F32 => (24, -126),
        _ => (53, -1022),
    };
    let exponent = ((value.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(smallest);
    2f64.powi(exponent - (digits - 1)).max(f64::from_bits(1))
}

/// Is that `f64` function one that the result must be the nearest float to?
fn float_unary(op: UnaryOp, dtype: Dtype, x: f64) -> Expected {
    // f32 is within 0.51 ulp. Rounding that once more to a half adds 2^-13 of its ulp for f16, 2^-16 for bf16. f64 is the library's.
    let tolerance = match dtype {
        Dtype::F64 => 2.0,
        Dtype::F32 => 0.51,
        _ => 0.5002,
    };
    // The series below sums some 60 terms, each off by an ulp or so of its own.
    let tolerance = if (op, dtype) == (UnaryOp::Erf, Dtype::F64) { 16.0 } else { tolerance };
    let near = |exact: f64| Expected::Near(exact, tolerance);
    let exactly = |value: f64| Expected::Bits(float_bits(dtype, value));
    match op {
        UnaryOp::Neg => exactly(-x),
        UnaryOp::Abs => exactly(if x.is_sign_negative() { -x } else { x }),
        UnaryOp::Exp => near(x.exp()),
        UnaryOp::Exp2 | UnaryOp::ExpApprox2 => near(x.exp2()),
        UnaryOp::ExpApproxFtz2 if dtype != Dtype::F64 && x < -126.0 => exactly(0.0),
        UnaryOp::ExpApproxFtz2 => near(x.exp2()),
        UnaryOp::Log => near(x.ln()),
        UnaryOp::Log2 | UnaryOp::LogApprox2 => near(x.log2()),
        UnaryOp::Sqrt | UnaryOp::SqrtApprox => exactly(x.sqrt()),
        UnaryOp::Rsqrt | UnaryOp::RsqrtApprox => near(1.0 / x.sqrt()),
        UnaryOp::RecipApprox => near(1.0 / x),
        UnaryOp::Sin | UnaryOp::SinApprox => near(x.sin()),
        UnaryOp::Cos | UnaryOp::CosApprox => near(x.cos()),
        UnaryOp::Tan => near(x.tan()),
        UnaryOp::Tanh | UnaryOp::TanhApprox => near(x.tanh()),
        UnaryOp::Sigmoid => near(if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }),
        UnaryOp::Erf => near(erf(x)),
        UnaryOp::Floor => exactly(x.floor()),
        UnaryOp::Ceil => exactly(x.ceil()),
        UnaryOp::Trunc => exactly(x.trunc()),
        UnaryOp::Round => exactly((x.abs().floor() + f64::from(x.abs().fract() >= 0.5)).copysign(x)),
        UnaryOp::Rint => {
            let down = x.floor();
            let up = match x - down {
                0.5 => down % 2.0 != 0.0,
                fraction => fraction > 0.5,
            };
            exactly(if x.is_finite() { (down + f64::from(up)).copysign(x) } else { x })
        }
        UnaryOp::Not | UnaryOp::Popc | UnaryOp::Clz | UnaryOp::Brev => unreachable!("{op:?} of floats"),
    }
}

/// By the series with positive terms only: 2 / sqrt(pi) * exp(-x^2) * sum of 2^n x^(2n+1) / (2n+1)!!.
fn erf(x: f64) -> f64 {
    if x.abs() > 6.0 {
        return x.signum();
    }
    let (mut term, mut sum, mut n) = (x, x, 0);
    while term.abs() > 1e-18 * sum.abs() {
        n += 1;
        term *= 2.0 * x * x / f64::from(2 * n + 1);
        sum += term;
    }
    // exp(-x^2) with the square split, so that its rounding does not matter.
    let high = f64::from(x as f32);
    let square = (-high * high).exp() * (-(x - high) * (x + high)).exp();
    std::f64::consts::FRAC_2_SQRT_PI * square * sum
}

/// From tables (Abramowitz and Stegun, table 7.1, and further digits).
#[test]
fn erf_of_f64_is_within_an_ulp() {
    for (x, exact) in
        [(0.5, 0.520_499_877_813_046_5), (1.0, 0.842_700_792_949_714_9), (2.0, 0.995_322_265_018_952_7), (2.5, 0.999_593_047_982_555)]
    {
        let got = scalar::unary(UnaryOp::Erf, Scalar::from_bits(Dtype::F64, f64::to_bits(x))).unwrap();
        check(&format!("erf({x})"), Dtype::F64, got.bits(), &Expected::Near(exact, 1.0));
    }
}

fn int_unary(op: UnaryOp, dtype: Dtype, x: i128) -> Expected {
    let bits = dtype.bits();
    let bit = |at: u32| x >> at & 1;
    Expected::Bits(int_bits(
        dtype,
        match op {
            UnaryOp::Neg => -x,
            UnaryOp::Not if dtype == Dtype::Bool => i128::from(x == 0),
            UnaryOp::Not => -x - 1,
            UnaryOp::Abs => x.abs(),
            UnaryOp::Popc => (0..bits).map(bit).sum(),
            UnaryOp::Clz => (0..bits).rev().take_while(|at| bit(*at) == 0).count() as i128,
            UnaryOp::Brev => (0..bits).map(|at| bit(at) << (bits - 1 - at)).sum(),
            other => unreachable!("{other:?} of integers"),
        },
    ))
}

#[test]
fn unary_ops() {
    let mut checked = 0;
    for op in UnaryOp::ALL {
        for dtype in Dtype::ALL {
            let x = samples(dtype, 60);
            if !op.domain().contains(dtype) {
                assert_eq!(scalar::unary(*op, Scalar::from_bits(dtype, x[0])), None);
                continue;
            }
            let tiles = over_tiles(op.name(), &[(dtype, x.clone())], dtype);
            for (x, got) in x.into_iter().zip(tiles) {
                let what = format!("{}({:?})", op.name(), Scalar::from_bits(dtype, x));
                let alone = scalar::unary(*op, Scalar::from_bits(dtype, x)).unwrap();
                assert!(same(dtype, alone.bits(), got), "{what}: {got:#x} in a tile, {alone:?} alone");
                let expected =
                    if dtype.is_float() { float_unary(*op, dtype, float(dtype, x)) } else { int_unary(*op, dtype, int(dtype, x)) };
                check(&what, dtype, got, &expected);
                checked += 1;
            }
        }
    }
    assert!(checked > 8000, "{checked}");
}

/// A million angles, exponents, logarithms of f32 at random: the 0.51 ulp that the module promises.
#[test]
fn functions_of_f32_are_nearly_correctly_rounded() {
    let mut random = support::Random(7);
    for op in UnaryOp::ALL.iter().filter(|op| op.domain().contains(Dtype::F32) && !op.domain().contains(Dtype::I32)) {
        for round in 0..30_000 {
            let x = match round % 3 {
                0 => f32::from_bits(random.bits() as u32),
                1 => (random.unit() * 200.0 - 100.0) as f32,
                _ => (random.unit() * 2.0 - 1.0) as f32,
            };
            let got = scalar::unary(*op, Scalar::from_bits(Dtype::F32, x.to_bits().into())).unwrap();
            check(&format!("{}({x:e})", op.name()), Dtype::F32, got.bits(), &float_unary(*op, Dtype::F32, x.into()));
        }
    }
}

fn int_binary(op: BinaryOp, dtype: Dtype, a: i128, b: i128) -> i128 {
    let bits = i128::from(dtype.bits());
    // The amount of a shift is unsigned.
    let amount = if b < 0 { b + (1 << bits) } else { b };
    match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div => a.checked_div(b).unwrap_or(0),
        BinaryOp::Rem => a.checked_rem(b).unwrap_or(a),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Shl if amount >= bits => 0,
        BinaryOp::Shl => a << amount,
        BinaryOp::Shr => a >> amount.min(bits),
        BinaryOp::Min => a.min(b),
        BinaryOp::Max => a.max(b),
        BinaryOp::MulHigh if dtype == Dtype::U64 => ((a as u128 * b as u128) >> 64) as i128,
        BinaryOp::MulHigh => (a * b) >> bits,
        BinaryOp::CopySign | BinaryOp::DivApprox => unreachable!("{op:?} of integers"),
    }
}

fn float_binary(op: BinaryOp, dtype: Dtype, a: f64, b: f64) -> u64 {
    let less = |a: f64, b: f64| a < b || a == b && a.is_sign_negative();
    let pick = |first: bool| if first { a } else { b };
    let value = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div | BinaryOp::DivApprox => a / b,
        BinaryOp::Rem => a % b,
        BinaryOp::CopySign => a.copysign(b),
        BinaryOp::Min if a.is_nan() || b.is_nan() => pick(b.is_nan()),
        BinaryOp::Max if a.is_nan() || b.is_nan() => pick(b.is_nan()),
        BinaryOp::Min => pick(less(a, b)),
        BinaryOp::Max => pick(!less(a, b)),
        other => unreachable!("{other:?} of floats"),
    };
    float_bits(dtype, value)
}

/// Every pair of samples.
fn pairs(dtype: Dtype) -> [Vec<u64>; 2] {
    let samples = samples(dtype, 12);
    let all = || samples.iter().flat_map(|a| samples.iter().map(move |b| (*a, *b)));
    [all().map(|(a, _)| a).collect(), all().map(|(_, b)| b).collect()]
}

#[test]
fn binary_ops() {
    for op in BinaryOp::ALL {
        for dtype in Dtype::ALL {
            let [a, b] = pairs(dtype);
            let scalars = |i: usize| [Scalar::from_bits(dtype, a[i]), Scalar::from_bits(dtype, b[i])];
            if !op.domain().contains(dtype) {
                assert_eq!(scalar::binary(*op, scalars(0)[0], scalars(0)[1]), None);
                continue;
            }
            let tiles = over_tiles(op.name(), &[(dtype, a.clone()), (dtype, b.clone())], dtype);
            for (i, got) in tiles.into_iter().enumerate() {
                let [lhs, rhs] = scalars(i);
                let what = format!("{}({lhs:?}, {rhs:?})", op.name());
                let alone = scalar::binary(*op, lhs, rhs).unwrap();
                assert!(same(dtype, alone.bits(), got), "{what}: {got:#x} in a tile, {alone:?} alone");
                let expected = match dtype.is_float() {
                    true => float_binary(*op, dtype, float(dtype, a[i]), float(dtype, b[i])),
                    false => int_bits(dtype, int_binary(*op, dtype, int(dtype, a[i]), int(dtype, b[i]))),
                };
                check(&what, dtype, got, &Expected::Bits(expected));
            }
        }
    }
}

#[test]
fn comparisons() {
    for op in CompareOp::ALL {
        for dtype in Dtype::ALL {
            let [a, b] = pairs(dtype);
            let tiles = over_tiles(op.name(), &[(dtype, a.clone()), (dtype, b.clone())], Dtype::Bool);
            for (i, got) in tiles.into_iter().enumerate() {
                let (lhs, rhs) = (Scalar::from_bits(dtype, a[i]), Scalar::from_bits(dtype, b[i]));
                let order = match dtype.is_float() {
                    true => float(dtype, a[i]).partial_cmp(&float(dtype, b[i])),
                    false => Some(int(dtype, a[i]).cmp(&int(dtype, b[i]))),
                };
                let expected = match op {
                    CompareOp::Eq => order.is_some_and(std::cmp::Ordering::is_eq),
                    CompareOp::Ne => order.is_none_or(std::cmp::Ordering::is_ne),
                    CompareOp::Lt => order.is_some_and(std::cmp::Ordering::is_lt),
                    CompareOp::Le => order.is_some_and(std::cmp::Ordering::is_le),
                    CompareOp::Gt => order.is_some_and(std::cmp::Ordering::is_gt),
                    CompareOp::Ge => order.is_some_and(std::cmp::Ordering::is_ge),
                };
                assert_eq!(got, u64::from(expected), "{}({lhs:?}, {rhs:?})", op.name());
                assert_eq!(scalar::compare(*op, lhs, rhs).unwrap().bits(), got, "{}({lhs:?}, {rhs:?})", op.name());
            }
        }
    }
}

/// `a * b + c` rounded once: the product of two `f32` is exact in `f64`, and the sum is rounded to odd by its own error.
fn exact_fma(a: f64, b: f64, c: f64) -> f64 {
    let product = a * b;
    let sum = product + c;
    let back = sum - product;
    let error = (product - (sum - back)) + (c - back);
    if !error.is_finite() || error == 0.0 || sum.to_bits() & 1 == 1 {
        return sum;
    }
    if (error > 0.0) == (sum > 0.0) { f64::from_bits(sum.to_bits() + 1) } else { f64::from_bits(sum.to_bits() - 1) }
}

#[test]
fn fma_and_select() {
    let mut random = support::Random(3);
    for dtype in Dtype::ALL {
        let samples = samples(dtype, 40);
        let mut draw = || (0..3001).map(|_| samples[random.below(samples.len())]).collect::<Vec<u64>>();
        let (a, b, c) = (draw(), draw(), draw());
        let operands = [(dtype, a.clone()), (dtype, b.clone()), (dtype, c.clone())];
        let scalars = |i: usize| [&a, &b, &c].map(|bits| Scalar::from_bits(dtype, bits[i]));
        if Domain::Float.contains(dtype) {
            for (i, got) in over_tiles("fma", &operands, dtype).into_iter().enumerate() {
                let [x, y, z] = scalars(i);
                let values = [a[i], b[i], c[i]].map(|bits| float(dtype, bits));
                let expected = match dtype {
                    Dtype::F64 => values[0].mul_add(values[1], values[2]),
                    _ => exact_fma(values[0], values[1], values[2]),
                };
                let what = format!("fma({x:?}, {y:?}, {z:?})");
                let bits = if dtype.is_half() { nearest_half(dtype, expected) } else { float_bits(dtype, expected) };
                check(&what, dtype, got, &Expected::Bits(bits));
                assert!(same(dtype, scalar::fma(x, y, z).unwrap().bits(), got), "{what}");
            }
        } else {
            assert_eq!(scalar::fma(scalars(0)[0], scalars(0)[1], scalars(0)[2]), None);
        }
        let conditions: Vec<u64> = (0..a.len()).map(|_| random.bits() & 1).collect();
        let chosen = over_tiles("select", &[(Dtype::Bool, conditions.clone()), (dtype, a.clone()), (dtype, b.clone())], dtype);
        for (i, got) in chosen.into_iter().enumerate() {
            assert_eq!(got, if conditions[i] == 1 { a[i] } else { b[i] });
            let [x, y, _] = scalars(i);
            assert_eq!(scalar::select(Scalar::from_bits(Dtype::Bool, conditions[i]), x, y).unwrap().bits(), got);
        }
    }
}

/// An integer rounded to so many bits, ties to even: exact arithmetic.
fn rounded_int(value: i128, digits: u32) -> f64 {
    let excess = (128 - value.unsigned_abs().leading_zeros()).saturating_sub(digits);
    let unit = 1u128 << excess;
    let (kept, rest) = (value.unsigned_abs() / unit, value.unsigned_abs() % unit);
    let up = rest * 2 > unit || rest * 2 == unit && kept % 2 == 1;
    let magnitude = (kept + u128::from(up)) as f64 * unit as f64;
    if value < 0 { -magnitude } else { magnitude }
}

/// The nearest half to any `f64`, by comparing with both neighbours.
fn nearest_half(dtype: Dtype, value: f64) -> u64 {
    let guess = float_bits(dtype, value);
    if !value.is_finite() || !float(dtype, guess).is_finite() || value == 0.0 {
        return guess;
    }
    let sign = guess & 0x8000;
    let candidates = [(guess & 0x7fff).saturating_sub(1), guess & 0x7fff, (guess & 0x7fff) + 1].map(|bits| bits | sign);
    let distance = |bits: u64| match float(dtype, bits) {
        finite if finite.is_finite() => (finite - value).abs(),
        _ => f64::INFINITY,
    };
    candidates.into_iter().min_by(|a, b| distance(*a).total_cmp(&distance(*b)).then((a & 1).cmp(&(b & 1)))).unwrap()
}

#[test]
fn casts() {
    for from in Dtype::ALL {
        let mut x = samples(from, 200);
        if from == Dtype::F64 {
            // Near the middle of two halves, where rounding twice goes wrong.
            for value in [1.0 + 2f64.powi(-11), 1.0 + 2f64.powi(-8), 2049.0, 3.0 * 2f64.powi(-25), 257.0] {
                x.extend([value.next_up(), value, value.next_down(), -value.next_up()].map(f64::to_bits));
            }
        }
        for to in Dtype::ALL {
            let digits = if to == Dtype::F16 { 11 } else { 8 };
            let tiles = over_tiles("cast", &[(from, x.clone())], to);
            for (x, got) in x.iter().zip(tiles) {
                let expected = match (from.is_float(), to) {
                    (true, Dtype::Bool) => u64::from(float(from, *x) != 0.0),
                    (false, Dtype::Bool) => u64::from(int(from, *x) != 0),
                    (true, Dtype::F16 | Dtype::Bf16) => nearest_half(to, float(from, *x)),
                    (true, to) if to.is_float() => float_bits(to, float(from, *x)),
                    (true, to) => {
                        let (low, high) = to.int_range().unwrap();
                        int_bits(to, (float(from, *x) as i128).clamp(low, high))
                    }
                    (false, Dtype::F16 | Dtype::Bf16) => float_bits(to, rounded_int(int(from, *x), digits)),
                    (false, Dtype::F8E4M3 | Dtype::F8E5M2) => float_bits(to, int(from, *x) as f64),
                    (false, Dtype::F32) => (rounded_int(int(from, *x), 24) as f32).to_bits().into(),
                    (false, Dtype::F64) => rounded_int(int(from, *x), 53).to_bits(),
                    (false, to) => int_bits(to, int(from, *x)),
                };
                let what = format!("{:?} as {to}", Scalar::from_bits(from, *x));
                check(&what, to, got, &Expected::Bits(expected));
                let alone = scalar::cast(Scalar::from_bits(from, *x), to);
                assert!(alone.dtype() == to && same(to, alone.bits(), got), "{what}: {alone:?} alone");
            }
        }
    }
}

#[test]
fn bitcasts_keep_bits() {
    for from in Dtype::ALL {
        for to in Dtype::ALL.into_iter().filter(|to| to.bits() == from.bits() && from != Dtype::Bool) {
            let x = samples(from, 50);
            assert_eq!(over_tiles("bitcast", &[(from, x.clone())], to), x);
            assert_eq!(scalar::bitcast(Scalar::from_bits(from, x[0]), to), Some(Scalar::from_bits(to, x[0])));
        }
        assert_eq!(scalar::bitcast(Scalar::from_bits(from, 1), Dtype::Bool).is_some(), from == Dtype::Bool);
    }
}

#[test]
fn constants_become_elements_and_back() {
    for dtype in Dtype::ALL {
        for bits in samples(dtype, 100) {
            let element = Scalar::from_bits(dtype, bits);
            let back = Scalar::from_const(&element.to_const(), dtype).unwrap();
            assert!(same(dtype, back.bits(), bits), "{element:?} became {back:?}");
        }
    }
}
