//! Products of matrices: of every type, with operands stored in both orders, and with something done to the result.

use galatea::Dtype;

use crate::array::{Array, Tolerance};
use crate::case::{Case, Check};
use crate::lab::{Arg, Lab, Source};
use crate::number::{Number, round};

/// The types of the operands and of the sums, and how exact products are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kind {
    pub(super) factors: [Dtype; 2],
    pub(super) sum: Dtype,
    pub(super) precision: &'static str,
}

pub(super) const fn kind(a: Dtype, b: Dtype, sum: Dtype, precision: &'static str) -> Kind {
    Kind { factors: [a, b], sum, precision }
}

pub(super) const KINDS: [Kind; 10] = [
    kind(Dtype::F16, Dtype::F16, Dtype::F16, ""),
    kind(Dtype::F16, Dtype::F16, Dtype::F32, ""),
    kind(Dtype::Bf16, Dtype::Bf16, Dtype::F32, ""),
    kind(Dtype::F32, Dtype::F32, Dtype::F32, "ieee"),
    kind(Dtype::F32, Dtype::F32, Dtype::F32, "tf32"),
    kind(Dtype::F32, Dtype::F32, Dtype::F32, "tf32x3"),
    kind(Dtype::F64, Dtype::F64, Dtype::F64, ""),
    kind(Dtype::I8, Dtype::I8, Dtype::I32, ""),
    kind(Dtype::F8E4M3, Dtype::F8E4M3, Dtype::F32, ""),
    kind(Dtype::F8E5M2, Dtype::F8E4M3, Dtype::F32, ""),
];

impl Kind {
    pub(super) fn name(self) -> String {
        let [a, b] = self.factors;
        let precision = if self.precision.is_empty() { String::new() } else { format!("-{}", self.precision) };
        format!("{a}-{b}-{}{precision}", self.sum)
    }

    /// A product of tiles, as an expression of the language.
    pub(super) fn product(self, a: &str, b: &str) -> String {
        let precision = if self.precision.is_empty() { String::new() } else { format!(", precision = \"{}\"", self.precision) };
        format!("dot({a}, {b}, acc_type = {}{precision})", self.sum)
    }
}

/// What happens to the product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Epilogue {
    Nothing,
    Trans,
    AddMatrix,
    AddRows,
    AddColumns,
    Softmax,
    ChainDot,
}

use Epilogue::{AddColumns, AddMatrix, AddRows, ChainDot, Nothing, Softmax, Trans};

impl Epilogue {
    fn name(self) -> &'static str {
        match self {
            Nothing => "none",
            Trans => "trans",
            AddMatrix => "add-matrix",
            AddRows => "add-rows",
            AddColumns => "add-cols",
            Softmax => "softmax",
            ChainDot => "chain-dot",
        }
    }
}

struct Dot {
    kind: Kind,
    batch: usize,
    extents: [usize; 3],
    /// Are the operands stored by columns?
    by_columns: [bool; 2],
    epilogue: Epilogue,
    num_warps: u32,
}

impl Dot {
    fn case(self) -> Case {
        let [m, n, k] = self.extents;
        let batch = if self.batch > 0 { format!("{}x", self.batch) } else { String::new() };
        let order = self.by_columns.map(|by_columns| if by_columns { "col" } else { "row" }).join("-");
        let name = format!("{}-{batch}{m}x{n}x{k}-{order}-{}-warps{}", self.kind.name(), self.epilogue.name(), self.num_warps);
        Case::new(name, move |lab| self.run(lab))
    }

    fn source(&self) -> Source {
        let Dot { kind, batch, extents: [m, n, k], by_columns, epilogue, num_warps } = self;
        let ([a, b], sum) = (kind.factors, kind.sum);
        // Without a batch, the axis of it is left out of all indices.
        let (row, column) = if *batch > 0 { ("None, .., None", "None, None, ..") } else { (".., None", "None, ..") };
        let index = |name: &str, extent: usize, axes: &str| format!("let {name} = arange(0, {extent})[({axes})]; ");
        let mut text = format!("fn kernel(x: Ptr<{a}>, y: Ptr<{b}>, w: Ptr<{sum}>, z: PtrMut<{sum}>) {{ ");
        if *batch > 0 {
            text += &index("g", *batch, ".., None, None");
        } else {
            text += "let g = 0; ";
        }
        text += &(index("r", *m, row) + &index("c", *n, column) + &index("kr", *k, column) + &index("kc", *k, row));
        let of_a = if by_columns[0] { format!("(g * {k} + kr) * {m} + r") } else { format!("(g * {m} + r) * {k} + kr") };
        let of_b = if by_columns[1] { format!("(g * {n} + c) * {k} + kc") } else { format!("(g * {k} + kc) * {n} + c") };
        text += &format!("let (a, b) = (load(x + {of_a}), load(y + {of_b})); let at = (g * {m} + r) * {n} + c; ");
        let product = kind.product("a", "b");
        text += &match epilogue {
            Nothing => format!("let v = {product};"),
            Trans => format!("let v = {};", kind.product("trans(trans(a))", "trans(trans(b))")),
            AddMatrix => format!("let mut v = load(w + at); v += {product};"),
            AddRows => format!("let v = {product} + load(w + r);"),
            AddColumns => format!("let v = load(w + c) + {product};"),
            Softmax => format!(
                "let p = {product}; let e = exp(p - max(p, axis = 1, keep_dims = true)); let v = e / sum(e, axis = 1, keep_dims = true);"
            ),
            ChainDot => {
                let square = format!("load(w + arange(0, {n})[(.., None)] * {n} + c)");
                format!("let v = {};", kind.product(&format!("({product} as {a})"), &format!("({square} as {b})")))
            }
        };
        Source::new(text + " store(z + at, v); }").warps(*num_warps)
    }

    fn run(&self, lab: &mut Lab) -> Check {
        let Dot { kind, extents: [m, n, k], by_columns, epilogue, .. } = self;
        let batch = self.batch.max(1);
        // Sums are exact in any order, and those of a chain in the type of an operand.
        let most = if *epilogue == ChainDot { 1 } else { 4 };
        let draw = |lab: &mut Lab, dtype: Dtype, len: usize| match dtype {
            Dtype::I8 if *epilogue != ChainDot => lab.any(dtype, len),
            _ => lab.ints(dtype, len, -most, most + 1),
        };
        let (x, y) = (draw(lab, kind.factors[0], batch * m * k), draw(lab, kind.factors[1], batch * k * n));
        let w = lab.ints(kind.sum, (batch * m * n).max(n * n), -1, 2);
        let mut z = lab.any(kind.sum, batch * m * n);
        lab.launch(&self.source(), [1; 3], &mut [Arg::In(&x), Arg::In(&y), Arg::In(&w), Arg::Out(&mut z)])?;

        let wide = |array: &Array, at: usize| match array.get(at) {
            Number::Int(value) => value as f64,
            number => number.float(),
        };
        let product = |group: usize, row: usize, column: usize| -> f64 {
            let terms = (0..*k).map(|at| {
                let left = if by_columns[0] { (group * k + at) * m + row } else { (group * m + row) * k + at };
                let right = if by_columns[1] { (group * n + column) * k + at } else { (group * k + at) * n + column };
                wide(&x, left) * wide(&y, right)
            });
            terms.sum()
        };
        let is_int = kind.sum == Dtype::I32;
        let as_factor = |sum: f64| if is_int { sum } else { round(sum, kind.factors[0]) };
        for (group, row) in (0..batch).flat_map(|group| (0..*m).map(move |row| (group, row))) {
            let sums: Vec<f64> = (0..*n).map(|column| product(group, row, column)).collect();
            let largest = sums.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = sums.iter().map(|sum| (sum - largest).exp()).sum();
            for column in 0..*n {
                let at = (group * m + row) * n + column;
                let want = match epilogue {
                    Nothing | Trans => sums[column],
                    AddMatrix => sums[column] + wide(&w, at),
                    AddRows => sums[column] + wide(&w, row),
                    AddColumns => sums[column] + wide(&w, column),
                    Softmax => (sums[column] - largest).exp() / total,
                    ChainDot => (0..*n).map(|inner| as_factor(sums[inner]) * wide(&w, inner * n + column)).sum(),
                };
                let tolerance = if *epilogue == Softmax { Tolerance::Ulps(64.0) } else { Tolerance::Exact };
                let want = if is_int { Number::Int(want as i128) } else { Number::Float(want + 0.0) };
                z.check_at(at, tolerance, want).map_err(|error| format!("{error}, row {row}, column {column}"))?;
            }
        }
        Ok(())
    }
}

pub(super) fn dot() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in KINDS {
        let is_softmax = |epilogue: &Epilogue| *epilogue == Softmax;
        let takes = |epilogue: &Epilogue| !is_softmax(epilogue) || matches!(kind.sum, Dtype::F32 | Dtype::F64);
        for epilogue in [Nothing, Trans, AddMatrix, AddRows, AddColumns, Softmax, ChainDot].into_iter().filter(takes) {
            let extent = if epilogue == Nothing { 64 } else { 32 };
            cases.push(Dot { kind, batch: 0, extents: [extent; 3], by_columns: [false; 2], epilogue, num_warps: 4 });
        }
        for (extents, num_warps) in [([32, 16, 32], 2), ([32, 128, 32], 8), ([16, 16, 128], 1), ([128, 32, 32], 4), ([32, 32, 64], 16)] {
            for by_columns in [[false, false], [false, true], [true, false], [true, true]] {
                cases.push(Dot { kind, batch: 0, extents, by_columns, epilogue: Nothing, num_warps });
            }
        }
    }
    cases.into_iter().map(Dot::case).collect()
}

pub(super) fn dot3d() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in KINDS {
        for (batch, num_warps) in [(1, 1), (1, 4), (2, 1), (2, 4), (4, 2), (4, 8), (8, 4), (8, 16)] {
            cases.push(Dot { kind, batch, extents: [16, 32, 32], by_columns: [false, batch % 4 == 0], epilogue: Nothing, num_warps });
        }
    }
    cases.into_iter().map(Dot::case).collect()
}
