//! `wmma.load`, `wmma.mma` and `wmma.store`: the older matrix instructions, with opaque fragments (PTX ISA, 9.7.14.1 to 9.7.14.4).
//!
//! In the simulator, lane `l` holds the `l`-th part of the matrix: A and D in row-major order, B in column-major order, for every type.
//! Programs can therefore combine fragments of the same shape element by element.
//!
//! A Hopper GPU executes these instructions as `mma`; products of `.tf32` are added four at a time.

use crate::counters;
use crate::fault::Trap;
use crate::instructions::matrix::mma::{parse_shape, register};
use crate::instructions::{Address, Convergence, Form, Instruction, Progress, Register, Unsupported, Value};
use crate::lanes::{Row, WARP};
use crate::machine::{Access, Cx};
use crate::numerics::matrix::{Kind, Shape};
use crate::ptx::{Space, Type};

/// The matrices of a product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    A,
    B,
    C,
    D,
}

/// The distribution of a matrix over the lanes. A line is a row of A, C or D, or a column of B.
#[derive(Clone, Copy, Debug)]
struct Fragment {
    /// The number of lines.
    lines: usize,
    /// The number of elements of a line.
    length: usize,
    ty: Type,
    /// The number of registers of a lane. Registers beyond the necessary ones repeat the elements.
    registers: usize,
}

/// A matrix in memory.
struct MatrixInMemory {
    fragment: Fragment,
    /// Whether the elements of a line are contiguous.
    along: bool,
    address: Address,
    stride: Option<Value>,
}

struct Load {
    matrix: MatrixInMemory,
    destinations: Vec<Option<Register>>,
}

struct Store {
    matrix: MatrixInMemory,
    sources: Vec<Value>,
}

struct Product {
    kind: Kind,
    /// The shape of one step. If the fragments have a larger `k`, the product takes several steps.
    shape: Shape,
    /// The type of the sum, which can differ from the types of C and D.
    sum: Type,
    fragments: [Fragment; 4],
    destinations: Vec<Option<Register>>,
    sources: [Vec<Value>; 3],
}

/// Decodes `wmma`.
pub(crate) fn decode(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    match form.next_modifier() {
        Some("load") => load(form),
        Some("store") => store(form),
        Some("mma") => product(form),
        _ => Err(form.error("`wmma` is `wmma.load`, `wmma.mma` or `wmma.store`")),
    }
}

fn load(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let parts = [("a", Part::A), ("b", Part::B), ("c", Part::C)];
    let part = form.one_of(&parts).ok_or_else(|| form.error("`wmma.load` needs `.a`, `.b` or `.c`"))?;
    let (fragment, along, space) = decode_matrix(form, part)?;
    let destinations = form.destinations(fragment.registers, register(fragment.ty))?;
    let address = form.address(space)?;
    Ok(Box::new(Load { matrix: MatrixInMemory { fragment, along, address, stride: stride(form)? }, destinations }))
}

fn store(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    if !form.flag("d") {
        return Err(form.error("`wmma.store` needs `.d`"));
    }
    let (fragment, along, space) = decode_matrix(form, Part::D)?;
    let address = form.address(space)?;
    let sources = form.sources(fragment.registers, register(fragment.ty))?;
    Ok(Box::new(Store { matrix: MatrixInMemory { fragment, along, address, stride: stride(form)? }, sources }))
}

fn product(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    need_aligned(form)?;
    layout(form)?;
    layout(form)?;
    let shape = shape(form)?;
    let saturate = form.flag("satfinite");
    // `.rn` is the only rounding mode.
    form.flag("rn");
    let types: Vec<Type> = std::iter::from_fn(|| form.maybe_ty()).collect();
    let [d, a, b, c] = match types[..] {
        [d, c] => [d, Type::F16, Type::F16, c],
        [d, a, b, c] => [d, a, b, c],
        _ => return Err(form.error("`wmma.mma` needs the types of its parts")),
    };
    let sum = if (d, c) == (Type::F16, Type::F32) { c } else { d };
    let is_mixed = a == Type::F16 && matches!((d, c), (Type::F16, Type::F32) | (Type::F32, Type::F16));
    let kind = Kind::mma(a, b, sum, saturate).filter(|_| a == b && (c == d || is_mixed));
    let kind = kind.ok_or_else(|| form.error(format!("there is no such `wmma.mma` of `{a}` by `{b}` plus `{c}` to `{d}`")))?;
    let fragments = [(Part::A, a), (Part::B, b), (Part::C, c), (Part::D, d)].map(|(part, ty)| fragment(form, shape, part, ty));
    let [of_a, of_b, of_c, of_d] = fragments;
    let fragments = [of_a?, of_b?, of_c?, of_d?];
    let destinations = form.destinations(fragments[3].registers, register(d))?;
    let mut source = |fragment: Fragment| form.sources(fragment.registers, register(fragment.ty));
    let sources = [source(fragments[0])?, source(fragments[1])?, source(fragments[2])?];
    let step = if a == Type::Tf32 { 4 } else { shape.k };
    Ok(Box::new(Product { kind, shape: Shape { k: step, ..shape }, sum, fragments, destinations, sources }))
}

fn decode_matrix(form: &mut Form<'_>, part: Part) -> Result<(Fragment, bool, Space), Unsupported> {
    need_aligned(form)?;
    let is_row = layout(form)?;
    let shape = shape(form)?;
    let space = match form.space() {
        space @ (Space::Global | Space::Shared | Space::Generic) => space,
        space => return Err(form.error(format!("`wmma` accesses global or shared memory, not {space} memory"))),
    };
    let ty = form.ty()?;
    let along = is_row != (part == Part::B);
    Ok((fragment(form, shape, part, ty)?, along, space))
}

fn need_aligned(form: &mut Form<'_>) -> Result<(), Unsupported> {
    if form.flag("sync") && form.flag("aligned") { Ok(()) } else { Err(form.error("`wmma` needs `.sync.aligned`")) }
}

/// Takes the layout; true for `.row`.
fn layout(form: &mut Form<'_>) -> Result<bool, Unsupported> {
    let layout = form.modifier_where(|modifier| matches!(modifier, "row" | "col"));
    layout.map(|name| name == "row").ok_or_else(|| form.error("`wmma` needs a layout: `.row` or `.col`"))
}

fn shape(form: &mut Form<'_>) -> Result<Shape, Unsupported> {
    let name = form.modifier_where(|modifier| parse_shape(modifier).is_some());
    name.and_then(parse_shape).ok_or_else(|| form.error("`wmma` needs a shape, such as `.m16n16k16`"))
}

/// Decodes the optional stride.
fn stride(form: &mut Form<'_>) -> Result<Option<Value>, Unsupported> {
    if form.operands_left() == 0 { Ok(None) } else { form.source(Type::U32).map(Some) }
}

fn fragment(form: &Form<'_>, shape: Shape, part: Part, ty: Type) -> Result<Fragment, Unsupported> {
    let Shape { m, n, k } = shape;
    let is_factor = matches!(part, Part::A | Part::B);
    let exists = match (m, n, k) {
        (16, 16, 16) | (32, 8, 16) | (8, 32, 16) if is_factor => matches!(ty, Type::F16 | Type::Bf16 | Type::S8 | Type::U8),
        (16, 16, 16) | (32, 8, 16) | (8, 32, 16) => matches!(ty, Type::F16 | Type::F32 | Type::S32),
        (16, 16, 8) => ty == if is_factor { Type::Tf32 } else { Type::F32 },
        (8, 8, 4) => ty == Type::F64,
        _ => false,
    };
    if !exists {
        return Err(form.error(format!("the simulator does not know `wmma` of the shape `.m{m}n{n}k{k}` with `{ty}`")));
    }
    let (lines, length) = match part {
        Part::A => (m, k),
        Part::B => (n, k),
        Part::C | Part::D => (m, n),
    };
    let needed = lines * length / WARP / (register(ty).bits() / ty.bits()) as usize;
    Ok(Fragment { lines, length, ty, registers: if is_factor && ty == Type::F16 { 8 } else { needed } })
}

impl Fragment {
    /// The number of elements of a lane.
    fn count(&self) -> usize {
        self.lines * self.length / WARP
    }

    fn per_register(&self) -> usize {
        (register(self.ty).bits() / self.ty.bits()) as usize
    }

    fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.ty.bits())
    }

    /// The whole matrix, line by line.
    fn gather(&self, cx: &Cx<'_>, sources: &[Value]) -> Result<Vec<u64>, Trap> {
        let mut matrix = vec![0; self.lines * self.length];
        for (number, &source) in sources.iter().take(self.count() / self.per_register()).enumerate() {
            let row = cx.read(source)?;
            for (lane, bits) in row.iter().enumerate() {
                for element in 0..self.per_register() {
                    let index = lane * self.count() + number * self.per_register() + element;
                    matrix[index] = bits >> (element as u32 * self.ty.bits()) & self.mask();
                }
            }
        }
        Ok(matrix)
    }

    fn scatter(&self, cx: &mut Cx<'_>, destinations: &[Option<Register>], matrix: &[u64]) {
        for (number, &destination) in destinations.iter().enumerate() {
            let number = number % (self.count() / self.per_register());
            let word = |lane: usize| {
                let first = lane * self.count() + number * self.per_register();
                let elements = &matrix[first..first + self.per_register()];
                elements
                    .iter()
                    .rev()
                    .fold(0, |word, &element| if self.ty.bits() == 64 { element } else { word << self.ty.bits() | element })
            };
            let row: Row = std::array::from_fn(word);
            cx.write(destination, &row);
        }
    }
}

impl MatrixInMemory {
    /// The number of contiguous elements of a lane in one access.
    fn run(&self) -> usize {
        let most = 16 / self.fragment.ty.bytes() as usize;
        if self.along { most.min(self.fragment.count()).min(self.fragment.length) } else { 1 }
    }

    fn access(&self, name: &'static str) -> Access {
        Access::plain(name, self.address.space, self.run() as u32 * self.fragment.ty.bytes())
    }

    /// The addresses of each lane for the given access.
    fn addresses(&self, cx: &Cx<'_>) -> Result<impl Fn(usize) -> Row + use<>, Trap> {
        let addresses = cx.addresses(self.address)?;
        let first = cx.lanes.lowest().unwrap_or(0);
        if let Some(lane) = cx.lanes.into_iter().find(|&lane| addresses[lane] != addresses[first]) {
            return Err(cx.illegal(lane, "the address of a `wmma` differs between the threads of the warp"));
        }
        let Fragment { lines, length, ty, .. } = self.fragment;
        let stride = match self.stride {
            Some(value) => cx.read_uniform(value, "the stride of a `wmma`")?,
            None if self.along => length as u64,
            None => lines as u64,
        };
        let (base, run, count, along) = (addresses[first], self.run(), self.fragment.count(), self.along);
        Ok(move |number: usize| {
            std::array::from_fn(|lane| {
                let index = lane * count + number * run;
                let (line, element) = ((index / length) as u64, (index % length) as u64);
                let elements = if along { line * stride + element } else { element * stride + line };
                base.wrapping_add(elements * u64::from(ty.bytes()))
            })
        })
    }
}

impl Instruction for Load {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let fragment = &self.matrix.fragment;
        let addresses = self.matrix.addresses(cx)?;
        let access = self.matrix.access("wmma.load");
        let run = self.matrix.run();
        let mut matrix = vec![0; fragment.lines * fragment.length];
        for number in 0..fragment.count() / run {
            let loaded = cx.load(access, &addresses(number))?;
            for (lane, bits) in loaded.iter().enumerate() {
                for element in 0..run {
                    let index = lane * fragment.count() + number * run + element;
                    matrix[index] = (bits >> (element as u32 * fragment.ty.bits())) as u64 & fragment.mask();
                }
            }
        }
        fragment.scatter(cx, &self.destinations, &matrix);
        Ok(Progress::Done)
    }

    fn convergence(&self) -> Convergence {
        Convergence::Aligned
    }

    fn class(&self) -> counters::Class {
        if self.matrix.address.space == Space::Shared { counters::Class::Shared } else { counters::Class::Memory }
    }
}

impl Instruction for Store {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let fragment = &self.matrix.fragment;
        let addresses = self.matrix.addresses(cx)?;
        let access = self.matrix.access("wmma.store");
        let run = self.matrix.run();
        let matrix = fragment.gather(cx, &self.sources)?;
        for number in 0..fragment.count() / run {
            let value = |lane: usize| {
                let first = lane * fragment.count() + number * run;
                let elements = matrix[first..first + run].iter().enumerate();
                elements.fold(0, |value, (element, &bits)| value | u128::from(bits) << (element as u32 * fragment.ty.bits()))
            };
            cx.store(access, &addresses(number), &std::array::from_fn(value))?;
        }
        Ok(Progress::Done)
    }

    fn convergence(&self) -> Convergence {
        Convergence::Aligned
    }

    fn class(&self) -> counters::Class {
        if self.matrix.address.space == Space::Shared { counters::Class::Shared } else { counters::Class::Memory }
    }
}

impl Instruction for Product {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let [of_a, of_b, of_c, of_d] = &self.fragments;
        let a = of_a.gather(cx, &self.sources[0])?;
        let b = of_b.gather(cx, &self.sources[1])?;
        let mut d = of_c.gather(cx, &self.sources[2])?;
        d.iter_mut().for_each(|bits| *bits = converted(*bits, of_c.ty, self.sum));
        for first in (0..of_a.length).step_by(self.shape.k) {
            let part = |matrix: &[u64]| {
                matrix.chunks(of_a.length).flat_map(|line| &line[first..first + self.shape.k]).copied().collect::<Vec<_>>()
            };
            self.kind.multiply(self.shape, &part(&a), &part(&b), &mut d);
        }
        d.iter_mut().for_each(|bits| *bits = converted(*bits, self.sum, of_d.ty));
        let line = cx.line;
        cx.counters().matrix(line, 2 * (self.shape.m * self.shape.n * of_a.length) as u64);
        of_d.scatter(cx, &self.destinations, &d);
        Ok(Progress::Done)
    }

    fn convergence(&self) -> Convergence {
        Convergence::Aligned
    }

    fn class(&self) -> counters::Class {
        counters::Class::Matrix
    }
}

/// Converts between `.f16` and `.f32`.
fn converted(bits: u64, from: Type, to: Type) -> u64 {
    match (from, to) {
        (Type::F16, Type::F32) => half::f16::from_bits(bits as u16).to_f32().to_bits().into(),
        (Type::F32, Type::F16) => {
            let half = half::f16::from_f32(f32::from_bits(bits as u32));
            if half.is_nan() { 0x7fff } else { half.to_bits().into() }
        }
        _ => bits,
    }
}

#[cfg(test)]
mod tests {
    use crate::fault::FaultKind;
    use crate::instructions::harness::{Failure, refusal, with_registers};

    #[test]
    fn forms_that_do_not_exist_are_refused() {
        for (text, reason) in [
            (
                "wmma.load.a.sync.aligned.row.m16n16k8.f16 {%r0}, [%d0];",
                "the simulator does not know `wmma` of the shape `.m16n16k8` with `.f16`",
            ),
            ("wmma.load.d.sync.aligned.row.m16n16k16.f16 {%r0}, [%d0];", "`wmma.load` needs `.a`, `.b` or `.c`"),
            ("wmma.load.a.sync.aligned.m16n16k16.f16 {%r0}, [%d0];", "`wmma` needs a layout: `.row` or `.col`"),
            ("wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r0}, [%d0];", "8 registers are wanted, not 1"),
            (
                "wmma.load.a.sync.aligned.row.m16n16k16.local.s8 {%r0, %r1}, [%d0];",
                "`wmma` accesses global or shared memory, not local memory",
            ),
            (
                "wmma.mma.sync.aligned.row.col.m8n8k4.f32.f64.f64.f32 {%r0};",
                "there is no such `wmma.mma` of `.f64` by `.f64` plus `.f32` to `.f32`",
            ),
        ] {
            assert_eq!(refusal(text).as_deref(), Some(reason));
        }
    }

    #[test]
    fn the_warp_must_agree_on_the_address() {
        let mut harness = with_registers();
        harness.define("%d0", crate::ptx::Type::B64, |lane| lane as u64 / 31 * 16);
        let fault = harness.run("wmma.load.a.sync.aligned.row.m16n16k16.shared.s8 {%r0, %r1}, [%d0];");
        let reason = "the address of a `wmma` differs between the threads of the warp".to_owned();
        assert_eq!(fault, Err(Failure::Trap(31, FaultKind::Illegal { reason })));
    }
}
