//! A kernel that is being written: what is in scope, what was written so far, and the dice.

use galatea::Dtype;

use crate::kernel::{Kernel, ROOM, Sizes, Tensor};
use crate::lab::Lab;
use crate::tile::{Value, exact_below, flat, index, is_float};
use crate::{accesses, control, elements, flat, pairs, products, ragged, rows, shapes, sweeps, transposes, walks};

pub(crate) struct Writer<'a> {
    pub(crate) lab: &'a mut Lab,
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) scope: Vec<Value>,
    pub(crate) lines: Vec<String>,
    /// How many blocks are open.
    pub(crate) depth: usize,
    /// May an access not leave its tensor?
    pub(crate) is_unchecked: bool,
    /// Do several CTAs share a program, between which single elements do not move?
    pub(crate) is_cluster: bool,
    /// The atomic that all programs apply to one shared tensor, and its element type, if the kernel has one.
    pub(crate) combined: Option<(&'static str, Dtype)>,
    names: usize,
}

/// A function that writes a statement. It returns `None`, and writes nothing, if there is nothing in scope to write it with.
type Statement = fn(&mut Writer<'_>) -> Option<()>;

/// All statements, the frequent ones more than once.
const STATEMENTS: [Statement; 29] = [
    elements::binary,
    elements::binary,
    elements::binary,
    elements::unary,
    elements::cast,
    elements::compare,
    elements::select,
    shapes::reshape,
    shapes::merge,
    shapes::permute,
    shapes::flip,
    shapes::repeat,
    shapes::pair,
    shapes::split,
    shapes::gather,
    rows::reduce,
    rows::reduce,
    rows::scan,
    rows::closure,
    rows::sort,
    accesses::load,
    accesses::block,
    accesses::transfer,
    accesses::update,
    sweeps::sweep,
    sweeps::combine,
    sweeps::exchange,
    control::branch,
    control::repeat,
];

/// Those that the CTAs of a cluster can share.
const SHARED_STATEMENTS: [Statement; 12] = [
    elements::binary,
    elements::binary,
    elements::unary,
    elements::cast,
    elements::compare,
    elements::select,
    shapes::reshape,
    rows::reduce,
    accesses::load,
    accesses::block,
    sweeps::sweep,
    sweeps::combine,
];

/// The elements of a tile that no statement goes beyond.
const LARGEST: usize = 512;

/// Is a tile of that shape small enough?
pub(crate) fn fits(shape: &[usize]) -> bool {
    shape.len() <= 4 && shape.iter().map(|extent| extent.next_power_of_two()).product::<usize>() <= LARGEST
}

/// A kernel of its own for each state of the dice.
pub(crate) fn write(lab: &mut Lab) -> Kernel {
    let (is_unchecked, num_ctas) = match lab.below(8) {
        0 => (true, 1),
        1 => (false, 2),
        2 => (false, 4),
        _ => (false, 1),
    };
    let mut writer = Writer { is_unchecked, is_cluster: num_ctas > 1, ..Writer::new(lab) };
    match writer.below(16) {
        0..=3 => return flat::write(writer),
        4 => return transposes::write(writer),
        5 => return pairs::write(writer),
        6 | 7 => return ragged::write(writer),
        _ => {}
    }
    writer.declare();
    for _ in 0..2 {
        accesses::load(&mut writer);
    }
    for _ in 0..1 + writer.below(3) {
        while walks::walk(&mut writer).is_none() {}
    }
    for _ in 0..writer.below(2) {
        while sweeps::sweep(&mut writer).is_none() {}
    }
    for _ in 0..writer.below(7) {
        writer.statement();
    }
    writer.results();
    let mut schedule = kernel_lang::Schedule::DEFAULT;
    schedule.num_warps = writer.pick(&[1, 2, 4, 8]);
    schedule.num_stages = writer.pick(&[1, 2, 3, 4]);
    schedule.num_ctas = num_ctas;
    let launches = vec![writer.sizes(), writer.sizes()];
    Kernel { tensors: writer.tensors, lines: writer.lines, schedule, is_unchecked, is_aligned: false, launches }
}

/// The same with matrix products.
pub(crate) fn write_products(lab: &mut Lab) -> Kernel {
    products::write(Writer::new(lab))
}

impl Writer<'_> {
    fn new(lab: &mut Lab) -> Writer<'_> {
        Writer {
            lab,
            tensors: Vec::new(),
            scope: Vec::new(),
            lines: Vec::new(),
            depth: 0,
            is_unchecked: false,
            is_cluster: false,
            combined: None,
            names: 0,
        }
    }

    /// The kernel of all lines, with three launches of up to so many programs, whose sizes are extents of this list.
    pub(crate) fn into_kernel(mut self, extents: &[usize], most_programs: usize) -> Kernel {
        let mut schedule = kernel_lang::Schedule::DEFAULT;
        schedule.num_warps = self.pick(&[1, 2, 4, 8]);
        let mut launches = Vec::new();
        for _ in 0..3 {
            let [n, stride, last] = [0; 3].map(|_| self.pick(extents));
            launches.push(Sizes { programs: 1 + self.below(most_programs), n, stride, first: self.below(4), last });
        }
        Kernel { tensors: self.tensors, lines: self.lines, schedule, is_unchecked: false, is_aligned: false, launches }
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.lab.below(end)
    }

    /// True so often out of a hundred times.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }

    /// A value in scope, more often a late one, so that what is computed is computed with.
    pub(crate) fn value(&mut self, fits: impl Fn(&Value) -> bool) -> Option<Value> {
        let fitting: Vec<Value> = self.scope.iter().filter(|value| fits(value)).cloned().collect();
        let late = if self.chance(60) { fitting.len().saturating_sub(4) } else { 0 };
        let fitting = &fitting[late..];
        if fitting.is_empty() { None } else { Some(self.pick(fitting)) }
    }

    pub(crate) fn tile(&mut self, fits: impl Fn(&Value) -> bool) -> Option<Value> {
        self.value(|value| value.is_tile() && fits(value))
    }

    pub(crate) fn line(&mut self, text: impl Into<String>) {
        self.lines.push(text.into());
    }

    /// A name that nothing has.
    pub(crate) fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    /// Puts a variable into scope that the text declares.
    pub(crate) fn declare_value(&mut self, name: String, dtype: Dtype, shape: &[usize], whole: Option<f64>) -> Value {
        let whole = whole.filter(|most| is_float(dtype) && *most <= exact_below(dtype));
        let value = Value { name, dtype, shape: shape.to_vec(), whole };
        self.scope.push(value.clone());
        value
    }

    /// `let v7 = expression;`
    pub(crate) fn bind(&mut self, dtype: Dtype, shape: &[usize], whole: Option<f64>, expression: &str) -> Value {
        let name = self.name();
        self.line(format!("let {name} = {expression};"));
        self.declare_value(name, dtype, shape, whole)
    }

    /// Writes statements whose values nobody sees behind them.
    pub(crate) fn inside<T>(&mut self, write: impl FnOnce(&mut Self) -> T) -> T {
        let known = self.scope.len();
        self.depth += 1;
        let written = write(self);
        self.depth -= 1;
        self.scope.truncate(known);
        written
    }

    pub(crate) fn statement(&mut self) {
        for _ in 0..50 {
            let statement = if self.is_cluster { self.pick(&SHARED_STATEMENTS) } else { self.pick(&STATEMENTS) };
            if statement(self).is_some() {
                return;
            }
        }
    }

    /// A shape, half of them with extents that are no powers of two.
    pub(crate) fn shape(&mut self) -> Vec<usize> {
        let rank = self.pick(&[1, 1, 2, 2, 2, 3]);
        let extents: &[usize] =
            if self.chance(50) { &[1, 2, 4, 8, 16, 32, 64, 128, 256] } else { &[1, 3, 5, 6, 7, 11, 12, 17, 24, 33, 48, 100, 200] };
        loop {
            let shape: Vec<usize> = (0..rank).map(|_| self.pick(extents)).collect();
            if fits(&shape) {
                return shape;
            }
        }
    }

    /// A number of that type as the language writes it.
    pub(crate) fn literal(&mut self, dtype: Dtype) -> (String, f64) {
        if dtype == Dtype::Bool {
            return (self.chance(50).to_string(), 1.0);
        }
        let negative = is_float(dtype) || dtype.is_signed_int();
        let number = self.below(20) as i64 - if negative { 6 } else { 0 };
        let text = if is_float(dtype) { format!("({number}.0)") } else { format!("({number})") };
        (text, number.unsigned_abs() as f64)
    }

    /// One of the tensors.
    pub(crate) fn tensor(&mut self, fits: impl Fn(&Tensor) -> bool) -> Option<Tensor> {
        let fitting: Vec<Tensor> = self.tensors.iter().filter(|tensor| fits(tensor)).cloned().collect();
        if fitting.is_empty() { None } else { Some(self.pick(&fitting)) }
    }

    /// The address of elements in an output tensor that only this program and this statement write: `y1 + pid * 4096 + 96`.
    pub(crate) fn destination(&mut self, elements: usize) -> Option<(String, Dtype)> {
        let written: Vec<usize> = (0..self.tensors.len()).filter(|&at| self.tensors[at].is_own()).collect();
        let (chosen, padding) = (self.pick(&written), self.pick(&[0, 0, 0, 1, 5]));
        let tensor = &mut self.tensors[chosen];
        let offset = tensor.len;
        if offset + elements + padding > ROOM {
            return None;
        }
        tensor.len += elements + padding;
        Some((format!("{} + pid * {ROOM} + {offset}", tensor.name), tensor.dtype))
    }

    /// The same address, sometimes by an address that a kernel without bounds checks has loaded: `y1_alias + pid * 4096 + 96`.
    pub(crate) fn alias(&mut self, destination: &str) -> String {
        match destination.split_once(' ') {
            Some((name, rest)) if self.is_unchecked && self.chance(50) => format!("{name}_alias {rest}"),
            _ => destination.to_string(),
        }
    }

    /// Indices from 0 on, which a kernel without bounds checks keeps in the tensor.
    pub(crate) fn bounded(&self, tensor: &Tensor, indices: String) -> String {
        if self.is_unchecked { format!("({indices}) % {}", tensor.len) } else { indices }
    }

    fn declare(&mut self) {
        use Dtype::{Bf16, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32};
        for (name, dtypes) in [("x0", &[F16, Bf16, F32, F32][..]), ("x1", &[U8, I8, I16, I32, U32, I64]), ("x2", &Dtype::ALL)] {
            let (dtype, len) = (self.pick(dtypes), self.pick(&[300, 1000, 2048]));
            let is_whole = self.chance(70);
            self.tensors.push(Tensor { is_whole, ..Tensor::input(name, dtype, len) });
        }
        for (name, dtypes) in [("y0", &[F16, Bf16, F32, F64][..]), ("y1", &[I16, I32, U32, I64]), ("y2", &[U8, I8, U16, F16, F32, I32])] {
            let dtype = self.pick(dtypes);
            self.tensors.push(Tensor::output(name, dtype));
        }
        if self.chance(50) {
            let dtype = self.pick(&[I32, U32, I64, F32]);
            let word = if dtype == F32 { "add" } else { self.pick(&["add", "add", "max", "min", "and", "or", "xor"]) };
            self.combined = Some((word, dtype));
            let len = sweeps::SHARED + 8;
            self.tensors.push(Tensor { is_shared: true, len, ..Tensor::output("z", dtype) });
        }
        self.declare_value("n".to_string(), Dtype::I64, &[], None);
    }

    /// Stores what was computed last.
    fn results(&mut self) {
        let late = self.scope.len().saturating_sub(6).max(1);
        for value in self.scope.split_off(late) {
            let Some((destination, dtype)) = self.destination(value.shape.iter().product()) else { return };
            let mask = if value.is_tile() && self.chance(20) {
                let axis = self.below(value.shape.len());
                format!(", mask = {} < n", index(&value.shape, axis))
            } else {
                String::new()
            };
            self.line(format!("store({destination} + ({}), {}{mask});", flat(&value.shape), value.cast(dtype).0));
        }
    }

    fn sizes(&mut self) -> Sizes {
        let first = self.pick(&[0, 0, 0, 1, 5]);
        Sizes {
            programs: 1 + self.below(3),
            n: self.pick(&[1, 7, 16, 31, 33, 64, 100, 128, 200, 513]),
            stride: self.pick(&[0, 1, 1, 2, 3, 16, 33, 64, 128]),
            first,
            last: first + self.pick(&[0, 1, 5, 16, 17, 40, 64]),
        }
    }
}
