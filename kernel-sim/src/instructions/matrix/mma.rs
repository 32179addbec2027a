//! `mma.sync`: one product of small matrices, spread over a warp (PTX ISA, 9.7.14.5.14).

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
    /// The type of the elements of A; those of B have the same width.
    factor: Type,
    result: Type,
    destinations: Vec<Option<Register>>,
    a: Vec<Value>,
    b: Vec<Value>,
    c: Vec<Value>,
}

/// The shapes for each type of factors.
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
    let name =
        form.modifier_where(|modifier| shape(modifier).is_some()).ok_or_else(|| form.error("`mma` needs a shape, such as `.m16n8k16`"))?;
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
    let shape = shape(name).ok_or_else(|| form.error(format!("`.{name}` is no shape")))?;
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

/// `m16n8k16`
fn shape(text: &str) -> Option<Shape> {
    let (m, rest) = text.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some(Shape { m: m.parse().ok()?, n: n.parse().ok()?, k: k.parse().ok()? })
}

/// The type of the registers that hold elements of this type.
fn register(ty: Type) -> Type {
    match ty {
        Type::F64 | Type::F32 => ty,
        _ => Type::B32,
    }
}

impl Product {
    fn elements(&self, cx: &Cx<'_>, values: &[Value], ty: Type, mut place: impl FnMut(usize, usize, usize, u64)) -> Result<(), Trap> {
        let per_register = (register(ty).bits() / ty.bits()) as usize;
        let mask = u64::MAX >> (64 - ty.bits());
        for (number, &value) in values.iter().enumerate() {
            let row = cx.read(value)?;
            for (lane, bits) in row.iter().enumerate() {
                for element in 0..per_register {
                    place(lane, number, element, bits >> (element as u32 * ty.bits()) & mask);
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
