//! Instructions that compute each lane separately from `N` operands. They are most of PTX.
//!
//! The computation is a closure over raw bits. The compiler specialises only the loop over the lanes for each closure. The loop runs over
//! all 32 lanes, including inactive ones, so the closure must accept any bits.
//!
//! If an operand is unknown, the result is unknown, unless another operand determines the result alone.

use crate::counters::Class;
use crate::fault::Trap;
use crate::instructions::{Form, Instruction, Progress, Register, Unsupported, Value};
use crate::lanes::{Lanes, Row, WARP};
use crate::machine::{Cx, Unknowns};
use crate::ptx::Type;

/// Computes the results of all lanes from the operands of all lanes.
type Compute<const N: usize, R> = Box<dyn Fn(&[Row; N]) -> R + Send + Sync>;

/// An instruction with `N` operands and one result.
struct Lanewise<const N: usize> {
    class: Class,
    destination: Option<Register>,
    sources: [Value; N],
    /// For each operand, the absorbing value: it determines the result, whatever the other operands are.
    absorbing: [Option<u64>; N],
    compute: Compute<N, Row>,
}

impl<const N: usize> Instruction for Lanewise<N> {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let (rows, unknown) = read(cx, &self.sources, &self.absorbing)?;
        cx.write(self.destination, &(self.compute)(&rows));
        cx.write_unknown(self.destination, &unknown);
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        self.class
    }
}

/// An instruction with `N` operands and two results.
struct Paired<const N: usize> {
    class: Class,
    destinations: [Option<Register>; 2],
    sources: [Value; N],
    absorbing: [Option<u64>; N],
    compute: Compute<N, [Row; 2]>,
}

impl<const N: usize> Instruction for Paired<N> {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let (rows, unknown) = read(cx, &self.sources, &self.absorbing)?;
        for (destination, result) in self.destinations.into_iter().zip((self.compute)(&rows)) {
            cx.write(destination, &result);
            cx.write_unknown(destination, &unknown);
        }
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        self.class
    }
}

/// The operands of one lane.
fn column<const N: usize>(rows: &[Row; N], lane: usize) -> [u64; N] {
    let mut column = [0; N];
    for (operand, row) in column.iter_mut().zip(rows) {
        *operand = row[lane];
    }
    column
}

/// An instruction that may read and write the carry flag.
struct Carrying<const N: usize, F> {
    destination: Option<Register>,
    sources: [Value; N],
    reads_carry: bool,
    writes_carry: bool,
    compute: F,
}

impl<const N: usize, F: Fn([u64; N], bool) -> (u64, bool) + Send + Sync> Instruction for Carrying<N, F> {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let mut rows = [[0; 32]; N];
        for (row, source) in rows.iter_mut().zip(self.sources) {
            *row = cx.read(source)?;
        }
        let mut result: Row = [0; 32];
        let mut carry = cx.warp.carry;
        for lane in cx.lanes {
            let carry_in = self.reads_carry && carry.has(lane);
            let (bits, carry_out) = (self.compute)(column(&rows, lane), carry_in);
            result[lane] = bits;
            if self.writes_carry {
                carry = if carry_out { carry.or(Lanes::of(lane)) } else { carry.without(Lanes::of(lane)) };
            }
        }
        cx.warp.carry = carry;
        cx.write(self.destination, &result);
        Ok(Progress::Done)
    }

    fn class(&self) -> Class {
        Class::Integer
    }
}

/// The result of a decoder.
pub(crate) type Decoded = Result<Box<dyn Instruction>, Unsupported>;

/// An instruction with these decoded operands.
pub(crate) fn lanewise<const N: usize>(
    class: Class,
    destination: Option<Register>,
    sources: [Value; N],
    compute: impl Fn([u64; N]) -> u64 + Send + Sync + 'static,
) -> Decoded {
    absorbed(class, destination, sources, [None; N], compute)
}

/// As [`lanewise`], with the absorbing value of each operand.
pub(crate) fn absorbed<const N: usize>(
    class: Class,
    destination: Option<Register>,
    sources: [Value; N],
    absorbing: [Option<u64>; N],
    compute: impl Fn([u64; N]) -> u64 + Send + Sync + 'static,
) -> Decoded {
    let compute = move |rows: &[Row; N]| {
        let mut result = [0; WARP];
        for (lane, result) in result.iter_mut().enumerate() {
            *result = compute(column(rows, lane));
        }
        result
    };
    Ok(Box::new(Lanewise { class, destination, sources, absorbing, compute: Box::new(compute) }))
}

/// An instruction with two results.
pub(crate) fn paired<const N: usize>(
    class: Class,
    destinations: [Option<Register>; 2],
    sources: [Value; N],
    compute: impl Fn([u64; N]) -> [u64; 2] + Send + Sync + 'static,
) -> Decoded {
    paired_absorbed(class, destinations, sources, [None; N], compute)
}

/// As [`paired`], with the value of each operand that determines both results.
pub(crate) fn paired_absorbed<const N: usize>(
    class: Class,
    destinations: [Option<Register>; 2],
    sources: [Value; N],
    absorbing: [Option<u64>; N],
    compute: impl Fn([u64; N]) -> [u64; 2] + Send + Sync + 'static,
) -> Decoded {
    let compute = move |rows: &[Row; N]| {
        let (mut first, mut second) = ([0; WARP], [0; WARP]);
        for (lane, (first, second)) in first.iter_mut().zip(&mut second).enumerate() {
            [*first, *second] = compute(column(rows, lane));
        }
        [first, second]
    };
    Ok(Box::new(Paired { class, destinations, sources, absorbing, compute: Box::new(compute) }))
}

/// Whether an instruction reads and writes the carry flag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Carry {
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

/// An instruction with the carry flag. Takes the destination and `N` operands of this type. `compute` receives the flag, or false if the
/// instruction does not read it, and returns the new flag.
pub(crate) fn carrying<const N: usize>(
    form: &mut Form<'_>,
    ty: Type,
    carry: Carry,
    compute: impl Fn([u64; N], bool) -> (u64, bool) + Send + Sync + 'static,
) -> Decoded {
    let destination = form.destination(ty)?;
    let sources = sources(form, [ty; N])?;
    Ok(Box::new(Carrying { destination, sources, reads_carry: carry.reads, writes_carry: carry.writes, compute }))
}

/// Takes `d, a`.
pub(crate) fn unary(form: &mut Form<'_>, class: Class, [d, a]: [Type; 2], compute: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Decoded {
    let destination = form.destination(d)?;
    lanewise(class, destination, sources(form, [a])?, move |[a]| compute(a))
}

/// Takes `d, a, b`.
pub(crate) fn binary(
    form: &mut Form<'_>,
    class: Class,
    [d, a, b]: [Type; 3],
    compute: impl Fn(u64, u64) -> u64 + Send + Sync + 'static,
) -> Decoded {
    let destination = form.destination(d)?;
    lanewise(class, destination, sources(form, [a, b])?, move |[a, b]| compute(a, b))
}

/// Takes `d, a, b, c`.
pub(crate) fn ternary(
    form: &mut Form<'_>,
    class: Class,
    [d, a, b, c]: [Type; 4],
    compute: impl Fn(u64, u64, u64) -> u64 + Send + Sync + 'static,
) -> Decoded {
    let destination = form.destination(d)?;
    lanewise(class, destination, sources(form, [a, b, c])?, move |[a, b, c]| compute(a, b, c))
}

/// Takes source operands of exactly these types.
pub(crate) fn sources<const N: usize>(form: &mut Form<'_>, types: [Type; N]) -> Result<[Value; N], Unsupported> {
    let mut sources = [Value::Bits(0); N];
    for (source, ty) in sources.iter_mut().zip(types) {
        *source = form.source(ty)?;
    }
    Ok(sources)
}

/// Takes the instruction's type, which must be one of these.
pub(crate) fn type_of(form: &mut Form<'_>, known: &[Type]) -> Result<Type, Unsupported> {
    let ty = form.ty()?;
    if known.contains(&ty) { Ok(ty) } else { Err(no_type(form, ty)) }
}

/// The error for a type that the instruction does not support.
pub(crate) fn no_type(form: &Form<'_>, ty: Type) -> Unsupported {
    form.error(format!("`{}` has no type `{ty}` in this form", form.opcode()))
}

/// The low `bits` bits.
pub(crate) fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// The value as an integer: sign-extended or zero-extended from the type's width.
pub(crate) fn number(value: u64, ty: Type) -> i128 {
    let bits = ty.bits();
    let low = value & mask(bits);
    if ty.is_signed() { i128::from((low << (64 - bits)) as i64 >> (64 - bits)) } else { i128::from(low) }
}

fn read<const N: usize>(cx: &Cx<'_>, sources: &[Value; N], absorbing: &[Option<u64>; N]) -> Result<([Row; N], Unknowns), Trap> {
    let mut rows = [[0; 32]; N];
    let mut unknown = Unknowns::new();
    for (row, source) in rows.iter_mut().zip(sources) {
        *row = cx.read_through(cx.lanes, *source, &mut unknown)?;
    }
    unknown.retain(|(lane, _)| {
        let decides = |index: usize| absorbing[index] == Some(rows[index][*lane]) && cx.knows(*lane, sources[index]);
        !(0..N).any(decides)
    });
    Ok((rows, unknown))
}
