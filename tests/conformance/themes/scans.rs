//! Scans: what every run of elements gives, from either end.

use galatea::Dtype;

use crate::array::{Array, Tolerance};
use crate::case::{Case, Check, Draw, refused};
use crate::lab::{Arg, Lab, Source};
use crate::number::Number;
use crate::tiles::Shape;

/// A scan of the elements along an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Cumsum,
    Cumprod,
    Cummax,
    /// The first element, whatever follows: nothing may be reordered.
    First,
    /// `h = a * h + x`.
    Recurrence,
    /// The element before, by counting how many there are.
    Roll,
}

use What::{Cummax, Cumprod, Cumsum, First, Recurrence, Roll};

impl What {
    fn name(self) -> &'static str {
        match self {
            Cumsum => "cumsum",
            Cumprod => "cumprod",
            Cummax => "cummax",
            First => "get-first-element",
            Recurrence => "linear-recurrence",
            Roll => "roll",
        }
    }

    /// The scan of `v`, or of `v` and `a`, as an expression of the language.
    fn expression(self, dtype: Dtype, shape: &Shape, axis: usize, reverse: bool) -> String {
        let (shape, option) = (shape.written(), if reverse { ", reverse = true" } else { "" });
        match self {
            Cumsum | Cumprod | Cummax => format!("{}(v, axis = {axis}{option})", self.name()),
            First => format!("associative_scan(v, {axis}, |a, b| a{option})"),
            Recurrence => {
                format!("{{ let (_, h) = associative_scan((load(a + at), v), {axis}, |(a, x), (b, y)| (a * b, x * b + y){option}); h }}")
            }
            Roll => format!(
                "{{ let (_, last, _) = associative_scan((full({shape}, 1i32), zeros::<{dtype}>({shape}), v), {axis}, \
                 |(n, _, c), (m, last, d)| (n + m, select(m == 1, c, last), d){option}); last }}"
            ),
        }
    }

    /// Numbers whose runs stay in range, and whose roundings can be told.
    fn input(self, lab: &mut Lab, dtype: Dtype, len: usize) -> Array {
        match self {
            Cumsum if dtype.is_float() => Draw::Within(0.0, 1.0).array(lab, dtype, len),
            Cumprod if dtype.is_float() => Draw::Within(0.99, 1.01).array(lab, dtype, len),
            Recurrence => lab.ints(dtype, len, -2, 3),
            _ if dtype.is_float() => Draw::Within(-100.0, 100.0).array(lab, dtype, len),
            _ => lab.any(dtype, len),
        }
    }

    /// The scan of some numbers, in their order.
    fn of(self, numbers: &[Number], factors: &[Number]) -> Vec<Number> {
        let mut results: Vec<Number> = Vec::new();
        for (at, number) in numbers.iter().enumerate() {
            let before = results.last().copied();
            results.push(match (self, before, *number) {
                (First, ..) => numbers[0],
                (Roll, _, Number::Int(_)) if at == 0 => Number::Int(0),
                (Roll, ..) if at == 0 => Number::Float(0.0),
                (Roll, ..) => numbers[at - 1],
                (_, None, number) => number,
                (Cumsum, Some(Number::Int(a)), Number::Int(b)) => Number::Int(a.wrapping_add(b)),
                (Cumprod, Some(Number::Int(a)), Number::Int(b)) => Number::Int(a.wrapping_mul(b)).to(Dtype::I64),
                (Cummax, Some(Number::Int(a)), Number::Int(b)) => Number::Int(a.max(b)),
                (Recurrence, Some(Number::Int(a)), Number::Int(b)) => Number::Int(a * factors[at].int() + b),
                (Cumsum, Some(a), b) => Number::Float(a.float() + b.float()),
                (Cumprod, Some(a), b) => Number::Float(a.float() * b.float()),
                (Cummax, Some(a), b) => Number::Float(a.float().max(b.float())),
                (Recurrence, Some(a), b) => Number::Float(a.float() * factors[at].float() + b.float()),
            });
        }
        results
    }

    /// Sums and products of floats are rounded once for each element at most; the errors point in all directions. Halves are rounded once at the end.
    fn tolerance(self, dtype: Dtype, extent: usize) -> Tolerance {
        match (self, dtype) {
            (Cumsum | Cumprod, Dtype::F32 | Dtype::F64) => Tolerance::Ulps(20.0 + 2.0 * (extent as f64).sqrt()),
            (Cumsum | Cumprod, Dtype::F16 | Dtype::Bf16) => Tolerance::Ulps(0.51),
            _ => Tolerance::Exact,
        }
    }
}

struct Scan {
    what: What,
    dtype: Dtype,
    shape: Shape,
    axis: usize,
    reverse: bool,
    num_warps: u32,
}

impl Scan {
    fn case(self) -> Case {
        let reverse = if self.reverse { "-reverse" } else { "" };
        let Scan { what, dtype, shape, axis, num_warps, .. } = &self;
        let name = format!("{}-{dtype}-{}-axis{axis}{reverse}-warps{num_warps}", what.name(), shape.name());
        Case::new(name, move |lab| self.run(lab))
    }

    fn run(&self, lab: &mut Lab) -> Check {
        let Scan { what, dtype, shape, axis, reverse, num_warps } = self;
        let source = Source::new(format!(
            "fn kernel(x: Ptr<{dtype}>, a: Ptr<{dtype}>, y: PtrMut<{dtype}>) {{ let at = {}; let v = load(x + at); store(y + at, {}); }}",
            shape.offsets(),
            what.expression(*dtype, shape, *axis, *reverse),
        ));
        let x = what.input(lab, *dtype, shape.numel());
        // Half of the factors are 0, so that runs are short and every number of a recurrence is exact.
        let a = Array::ints(*dtype, (0..shape.numel()).map(|_| [0, 0, 1, -1][lab.below(4)]));
        let mut y = lab.any(*dtype, shape.numel());
        lab.launch(&source.warps(*num_warps), [1; 3], &mut [Arg::In(&x), Arg::In(&a), Arg::Out(&mut y)])?;
        (0..shape.without(*axis).numel()).try_for_each(|of| {
            let mut line: Vec<usize> = shape.line(*axis, of).collect();
            if *reverse {
                line.reverse();
            }
            let of = |array: &Array| line.iter().map(|at| array.get(*at)).collect::<Vec<Number>>();
            let want = what.of(&of(&x), &of(&a));
            line.iter().zip(want).try_for_each(|(at, want)| y.check_at(*at, what.tolerance(*dtype, line.len()), want))
        })
    }
}

/// Matrices along each axis, from either end, by four warps and by sixteen; and an axis that there is not.
pub(crate) fn scan2d() -> Vec<Case> {
    let mut cases = Vec::new();
    for what in [Cumsum, Cumprod, First, Recurrence, Cummax, Roll] {
        for dtype in [Dtype::I32, Dtype::F32, Dtype::Bf16] {
            for extents in [[8, 32], [16, 32], [32, 16], [2, 1024], [1024, 2], [32, 32], [1, 1024]] {
                for axis in [0, 1] {
                    for (reverse, num_warps) in [(false, 4), (true, 4), (false, 16), (true, 16)] {
                        cases.push(Scan { what, dtype, shape: Shape::new(&extents), axis, reverse, num_warps }.case());
                    }
                }
            }
        }
    }
    let text = "fn kernel(y: PtrMut<f32>) { store(y + arange(0, 4)[(None, ..)], cumsum(zeros::<f32>([1, 4]), axis = 2)); }";
    cases.push(refused("no-such-axis", Source::new(text), "axis"));
    cases
}

/// Extents that are no powers of two.
pub(crate) fn scan_odd() -> Vec<Case> {
    let mut cases = Vec::new();
    for what in [Cumsum, Cumprod, First, Recurrence, Cummax, Roll] {
        for (dtype, num_warps) in [(Dtype::I64, 1), (Dtype::F16, 4), (Dtype::F64, 8)] {
            for extents in [[3, 5], [7, 96], [33, 10], [1, 100]] {
                for (axis, reverse) in [(0, false), (0, true), (1, false), (1, true)] {
                    cases.push(Scan { what, dtype, shape: Shape::new(&extents), axis, reverse, num_warps }.case());
                }
            }
        }
    }
    cases
}

/// Vectors of every length and type that a scan of one axis takes.
pub(crate) fn scan_1d() -> Vec<Case> {
    let extents = [1, 2, 32, 64, 128, 100, 1024];
    extents
        .map(|extent| Scan { what: Cumsum, dtype: Dtype::I32, shape: Shape::new(&[extent]), axis: 0, reverse: false, num_warps: 4 }.case())
        .into()
}

/// A running sum has the type of its elements; in another type it is one of casts.
pub(crate) fn cumsum_dtype() -> Vec<Case> {
    let source =
        Source::new("fn kernel(x: Ptr<bool>, y: PtrMut<i32>) { let at = arange(0, 64); store(y + at, cumsum(load(x + at) as i32)); }");
    vec![Case::new("bool-i32", move |lab| {
        let x = lab.any(Dtype::Bool, 64);
        let mut y = lab.any(Dtype::I32, 64);
        lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
        y.check(Tolerance::Exact, |i| Number::Int(x.bits[..=i].iter().sum::<u64>().into()))
    })]
}
