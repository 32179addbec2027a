//! `mma.sync`: a product of small matrices, distributed over a warp (PTX ISA, 9.7.14.5.14).

use crate::counters;
use crate::fault::Trap;
use crate::instructions::matrix::fragment;
use crate::instructions::{Convergence, Form, Instruction, Progress, Register, Unsupported, Value};
use crate::lanes::{Row, WARP};
use crate::machine::Cx;
use crate::numerics::matrix::{Kind, Shape};
use crate::ptx::Type;

/// A matrix product, decoded.
struct Product {
    kind: Kind,
    shape: Shape,
    /// The type of the elements of A. Elements of B have the same width.
    factor: Type,
    result: Type,
    destinations: Vec<Option<Register>>,
    a: Vec<Value>,
    b: Vec<Value>,
    c: Vec<Value>,
}

/// The shapes for each factor type.
fn shapes(factor: Type) -> &'static [&'static str] {
    match factor {
        Type::F16 | Type::Bf16 => &["m16n8k8", "m16n8k16"],
        Type::Tf32 => &["m16n8k4", "m16n8k8"],
        Type::F64 => &["m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"],
        Type::E4m3 | Type::E5m2 => &["m16n8k16", "m16n8k32"],
        Type::S8 | Type::U8 => &["m8n8k16", "m16n8k16", "m16n8k32"],
        Type::S4 | Type::U4 => &["m8n8k32", "m16n8k32", "m16n8k64"],
        Type::B1 => &["m8n8k128", "m16n8k128", "m16n8k256"],
        _ => &[],
    }
}

/// Decodes `mma.sync`.
pub(crate) fn decode(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    for sparse in ["sp", "sp::ordered_metadata"] {
        if form.flag(sparse) {
            return Err(form.error(format!("the simulator does not multiply sparse matrices: `mma.{sparse}`")));
        }
    }
    need(form, "sync")?;
    need(form, "aligned")?;
    let name = form
        .modifier_where(|modifier| parse_shape(modifier).is_some())
        .ok_or_else(|| form.error("`mma` needs a shape, such as `.m16n8k16`"))?;
    let saturate = form.flag("satfinite");
    let (row, column) = (form.flag("row"), form.flag("col"));
    let [result, a, b, c] = [form.ty()?, form.ty()?, form.ty()?, form.ty()?];
    let bits = form.one_of(&[("xor", true), ("and", false)]);
    if bits.is_some() {
        need(form, "popc")?;
    }
    if !shapes(a).contains(&name) {
        let older =
            if (a, name) == (Type::F16, "m8n8k4") { "; that one was made for `sm_70`, and its layout is not simulated" } else { "" };
        return Err(form.error(format!("there is no `mma.{name}` with factors of type `{a}`{older}")));
    }
    if !(row && column) {
        return Err(form.error(format!("`mma.{name}` takes A by rows and B by columns: `.row.col`")));
    }
    let kind = match (a, b) {
        (Type::B1, Type::B1) => bits.filter(|_| result == Type::S32 && !saturate).map(|xor| Kind::Bits { xor }),
        _ if bits.is_some() => None,
        _ => Kind::mma(a, b, result, saturate),
    };
    let kind = kind.filter(|_| result == c).ok_or_else(|| {
        form.error(format!(
            "there is no such `mma` of `{a}` by `{b}` plus `{c}` to `{result}`{}",
            if saturate { " with `.satfinite`" } else { "" }
        ))
    })?;
    let shape = parse_shape(name).ok_or_else(|| form.error(format!("`.{name}` is no shape")))?;
    let product = |count: usize, ty: Type| count / (register(ty).bits() / ty.bits()) as usize / WARP;
    let [of_a, of_b, of_c] = [(shape.m * shape.k, a), (shape.n * shape.k, b), (shape.m * shape.n, c)].map(|(count, ty)| product(count, ty));
    Ok(Box::new(Product {
        kind,
        shape,
        factor: a,
        result,
        destinations: form.destinations(of_c, register(result))?,
        a: form.sources(of_a, register(a))?,
        b: form.sources(of_b, register(b))?,
        c: form.sources(of_c, register(c))?,
    }))
}

fn need(form: &mut Form<'_>, modifier: &str) -> Result<(), Unsupported> {
    if form.flag(modifier) { Ok(()) } else { Err(form.error(format!("`mma` needs `.{modifier}` here"))) }
}

/// Parses a shape such as `m16n8k16`.
pub(super) fn parse_shape(text: &str) -> Option<Shape> {
    let (m, rest) = text.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some(Shape { m: m.parse().ok()?, n: n.parse().ok()?, k: k.parse().ok()? })
}

/// The type of registers that hold elements of this type.
pub(super) fn register(ty: Type) -> Type {
    match ty {
        Type::F64 | Type::F32 => ty,
        _ => Type::B32,
    }
}

impl Product {
    fn elements(&self, cx: &Cx<'_>, values: &[Value], ty: Type, mut visit: impl FnMut(usize, usize, usize, u64)) -> Result<(), Trap> {
        let per_register = (register(ty).bits() / ty.bits()) as usize;
        let mask = u64::MAX >> (64 - ty.bits());
        for (number, &value) in values.iter().enumerate() {
            let row = cx.read(value)?;
            for (lane, bits) in row.iter().enumerate() {
                for element in 0..per_register {
                    visit(lane, number, element, bits >> (element as u32 * ty.bits()) & mask);
                }
            }
        }
        Ok(())
    }
}

impl Instruction for Product {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let Shape { m, n, k } = self.shape;
        let per_factor = (register(self.factor).bits() / self.factor.bits()) as usize;
        let per_result = (register(self.result).bits() / self.result.bits()) as usize;
        let (mut a, mut b, mut d) = (vec![0; m * k], vec![0; n * k], vec![0; m * n]);
        self.elements(cx, &self.a, self.factor, |lane, number, element, bits| {
            let at = if m == 8 { fragment::a8 } else { fragment::a16 };
            let (row, column) = at(lane, number, element, per_factor);
            a[row * k + column] = bits;
        })?;
        self.elements(cx, &self.b, self.factor, |lane, number, element, bits| {
            let (row, column) = fragment::b(lane, number, element, per_factor);
            b[column * k + row] = bits;
        })?;
        self.elements(cx, &self.c, self.result, |lane, number, element, bits| {
            let (row, column) = fragment::accumulator(lane, number * per_result + element);
            d[row * n + column] = bits;
        })?;
        self.kind.multiply(self.shape, &a, &b, &mut d);
        let line = cx.line;
        cx.counters().matrix(line, 2 * (m * n * k) as u64);
        for (number, &destination) in self.destinations.iter().enumerate() {
            let word = |lane: usize| {
                (0..per_result).fold(0, |word, element| {
                    let (row, column) = fragment::accumulator(lane, number * per_result + element);
                    word | d[row * n + column] << (element as u32 * self.result.bits())
                })
            };
            let row: Row = std::array::from_fn(word);
            cx.write(destination, &row);
        }
        Ok(Progress::Done)
    }

    fn convergence(&self) -> Convergence {
        Convergence::Aligned
    }

    fn class(&self) -> counters::Class {
        counters::Class::Matrix
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions::harness::{Harness, refusal};

    /// Defines the registers `%a0`, `%b0` and so on from whole matrices, and returns the registers `%d0`.. as a matrix.
    fn product(
        text: &str,
        shape: Shape,
        ty: Type,
        a: impl Fn(usize, usize) -> u64,
        b: impl Fn(usize, usize) -> u64,
        c: impl Fn(usize, usize) -> u64,
    ) -> Vec<u64> {
        let mut harness = Harness::new();
        let per_register = (32 / ty.bits()) as usize;
        let word =
            |element: &dyn Fn(usize) -> u64| (0..per_register).fold(0, |word, part| word | element(part) << (part as u32 * ty.bits()));
        for number in 0..shape.m * shape.k / per_register / WARP {
            harness.define(&format!("%a{number}"), Type::B32, |lane| {
                word(&|part| {
                    let (row, k) = fragment::a16(lane, number, part, per_register);
                    a(row, k)
                })
            });
        }
        for number in 0..shape.n * shape.k / per_register / WARP {
            harness.define(&format!("%b{number}"), Type::B32, |lane| {
                word(&|part| {
                    let (k, column) = fragment::b(lane, number, part, per_register);
                    b(k, column)
                })
            });
        }
        for number in 0..4 {
            harness.define(&format!("%c{number}"), Type::B32, |lane| {
                let (row, column) = fragment::accumulator(lane, number);
                c(row, column)
            });
        }
        harness.run(text).expect("it executes");
        let mut d = vec![0; shape.m * shape.n];
        for number in 0..4 {
            for (lane, &bits) in harness.value(&format!("%c{number}")).iter().enumerate() {
                let (row, column) = fragment::accumulator(lane, number);
                d[row * shape.n + column] = bits;
            }
        }
        d
    }

    #[test]
    fn the_identity_gives_the_other_matrix() {
        let shape = Shape { m: 16, n: 8, k: 16 };
        let text = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%c0, %c1, %c2, %c3}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {%c0, %c1, %c2, %c3};";
        let half = |x: f32| u64::from(half::f16::from_f32(x).to_bits());
        let identity = |row, k| half(if row == k { 1.0 } else { 0.0 });
        let d = product(text, shape, Type::F16, identity, |k, column| half((k * 8 + column) as f32), |_, _| u64::from(0.5f32.to_bits()));
        let expected: Vec<u64> = (0..128).map(|index| u64::from((index as f32 + 0.5).to_bits())).collect();
        assert_eq!(d, expected);
    }

    #[test]
    fn bytes_of_both_signs_are_multiplied_exactly() {
        let shape = Shape { m: 16, n: 8, k: 32 };
        let registers = "{%c0, %c1, %c2, %c3}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {%c0, %c1, %c2, %c3};";
        let a = |row: usize, k: usize| ((row * 37 + k * 91 + row * k) % 256) as u64;
        let b = |k: usize, column: usize| ((column * 53 + k * 29 + column * k * 3) % 256) as u64;
        let c = |row: usize, column: usize| ((row * 8 + column) as u64) << 24;
        for (types, saturate) in [("s8.u8", false), ("u8.s8", true)] {
            let flag = if saturate { ".satfinite" } else { "" };
            let text = format!("mma.sync.aligned.m16n8k32.row.col{flag}.s32.{types}.s32 {registers}");
            let d = product(&text, shape, Type::B8, a, b, c);
            for (index, &bits) in d.iter().enumerate() {
                let (row, column) = (index / 8, index % 8);
                let value = |bits: u64, signed: bool| if signed { i128::from(bits as u8 as i8) } else { i128::from(bits as u8) };
                let products: i128 =
                    (0..32).map(|k| value(a(row, k), types.starts_with('s')) * value(b(k, column), types.ends_with("s8"))).sum();
                let exact = products + i128::from(c(row, column) as u32 as i32);
                let expected = if saturate { exact.clamp(i32::MIN.into(), i32::MAX.into()) } else { exact } as u32;
                assert_eq!(bits, u64::from(expected), "{types} row {row} column {column}");
            }
        }
    }

    #[test]
    fn forms_that_do_not_exist_are_refused() {
        let operands = "{%r0, %r1, %r2, %r3}, {%r4, %r5}, {%r6}, {%r0, %r1, %r2, %r3};";
        for (modifiers, reason) in [
            ("sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "the simulator does not multiply sparse matrices: `mma.sp`"),
            ("aligned.m16n8k8.row.col.f32.f16.f16.f32", "`mma` needs `.sync` here"),
            ("sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "there is no `mma.m16n8k32` with factors of type `.f16`"),
            ("sync.aligned.m16n8k8.row.row.f32.f16.f16.f32", "`mma.m16n8k8` takes A by rows and B by columns: `.row.col`"),
            ("sync.aligned.m16n8k8.row.col.f16.bf16.bf16.f16", "there is no such `mma` of `.bf16` by `.bf16` plus `.f16` to `.f16`"),
            ("sync.aligned.m16n8k8.row.col.f32.f16.f16.f16", "there is no such `mma` of `.f16` by `.f16` plus `.f16` to `.f32`"),
            (
                "sync.aligned.m8n8k4.row.col.f16.f16.f16.f16",
                "there is no `mma.m8n8k4` with factors of type `.f16`; that one was made for `sm_70`, and its layout is not simulated",
            ),
        ] {
            assert_eq!(refusal(&format!("mma.{modifiers} {operands}")).as_deref(), Some(reason));
        }
        let wrong = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 ";
        assert_eq!(refusal(&format!("{wrong}{operands}")).as_deref(), Some("4 registers are wanted, not 2"));
    }
}
