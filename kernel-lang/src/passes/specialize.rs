//! Specialisation: binds the parameters of a generic kernel. Types become dtypes, constants become numbers, and static conditions are
//! decided.
//!
//! ```text
//! ; before
//! ; bind T = f32, B = 64
//! kernel @k<T: f32 | f64, const B: i64>(%x: ptr<T>) {
//!     static_assert {cond = (B > 32), message = "B is large"}
//!     %0 = arange {start = 0, end = B} : tile<i64, [B]>
//!     %1 = load %x, %0 : tile<T, [B]>
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<f32>) {
//!     %0 = arange {start = 0, end = 64} : tile<i64, [64]>
//!     %1 = load %x, %0 : tile<f32, [64]>
//!     return
//! }
//! ```
//!
//! The pass replaces the static ops:
//!
//! - `static_if` keeps one region.
//! - `static_for` repeats its region, with the index as a number.
//! - `static_assert` is checked.
//! - `static_print` becomes a note of the function.
//! - `print` writes into a parameter of its own.
//!
//! Every type rule is checked again: some mistakes appear only for some values, such as a tile that is too large.
//!
//! Known arguments are bound, too. A scalar argument stays an argument, so that every variant takes the same arguments. The body uses its
//! known number, or an assumption that it is a multiple of a number.
//!
//! ```text
//! ; before
//! ; bind stride = 1
//! kernel @k(%x: ptr<f32>, %stride: i64) {
//!     %0 = arange {start = 0, end = 64} : tile<i64, [64]>
//!     %1 = broadcast %stride : tile<i64, [64]>
//!     %2 = mul %0, %1 : tile<i64, [64]>
//!     %3 = load %x, %2 : tile<f32, [64]>
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<f32>, %stride: i64) {
//!     %0 = const {value = 1} : i64
//!     %1 = arange {start = 0, end = 64} : tile<i64, [64]>
//!     %2 = broadcast %0 : tile<i64, [64]>
//!     %3 = mul %1, %2 : tile<i64, [64]>
//!     %4 = load %x, %3 : tile<f32, [64]>
//!     return
//! }
//! ```

mod prints;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::dtype::Dtype;
use crate::ir::{
    BinaryOp, Builder, CompareOp, ConstExpr, Elem, Function, MAX_NESTING, Op, Region, SideTable, TARGET, Type, Value, result_types,
    template,
};
use crate::location::{Loc, Name};
use crate::target::Asked;

pub(crate) use prints::NAME as PRINT_BUFFER;

/// The values that a specialisation fixes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Bindings {
    /// A dtype for each type parameter.
    pub types: Vec<(Name, Dtype)>,
    /// A number for each constant parameter (0 or 1 for a `bool`, the bits of a float), and for each scalar argument whose value is known.
    pub consts: Vec<(Name, i128)>,
    /// Integer arguments that are multiples of a number.
    pub multiples: Vec<(Name, i128)>,
}

impl Bindings {
    /// No bindings, for a kernel without generics.
    pub fn new() -> Bindings {
        Bindings::default()
    }

    /// Binds a type parameter.
    #[must_use]
    pub fn ty(mut self, name: &str, dtype: Dtype) -> Bindings {
        self.types.push((name.into(), dtype));
        self
    }

    /// Binds a constant parameter or a scalar argument.
    #[must_use]
    pub fn constant(mut self, name: &str, value: i128) -> Bindings {
        self.consts.push((name.into(), value));
        self
    }

    /// States that an integer argument is a multiple of `of`.
    #[must_use]
    pub fn multiple(mut self, name: &str, of: i128) -> Bindings {
        self.multiples.push((name.into(), of));
        self
    }
}

/// The largest number of iterations of `static_range`: beyond it, the code would not fit anywhere.
const MAX_ITERATIONS: i128 = 1 << 12;

/// The largest number of values in a kernel: beyond it, nested loops that are written out would take hours to compile.
pub const MAX_VALUES: usize = 1 << 17;

/// The largest number of elements of a tile, as in Triton.
const MAX_NUMEL: i128 = 1 << 20;

/// Binds the parameters of a kernel. Without a target, the result is for the CPU.
///
/// # Errors
/// If a parameter has no value or one that its bound forbids, if a `static_assert` fails, or if these values break a rule.
pub fn run(func: &Function, bindings: &Bindings, target: Option<&Asked>) -> Result<Function, Diagnostics> {
    let mut diagnostics = Diagnostics::new();
    if func.nesting() > MAX_NESTING {
        let message = format!("this kernel nests too deeply: the limit is {MAX_NESTING} loops and branches inside of each other");
        return Err(Diagnostic::new(Loc::NONE, message).help("make several kernels of it").into());
    }
    check_bindings(func, bindings, &mut diagnostics);
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let mut out = Function::new(func.name.clone());
    out.files = func.files.clone();
    out.unchecked = func.unchecked;
    out.contract = func.contract;
    out.requires = func.requires.clone();
    let mut cx =
        Specializer { func, bindings, target, out, map: SideTable::new(), diagnostics, mistakes: 0, indices: Vec::new(), undecided: false };
    for param in &func.params {
        let ty = cx.ty(func.ty(param.value), Loc::NONE);
        let value = cx.out.add_param(param.name.clone(), ty);
        cx.map[param.value] = Some(value);
    }
    let body = cx.out.body;
    known_arguments(func, bindings, &mut cx.out, &mut cx.map);
    cx.region(func.body, body);
    let mut out = cx.diagnostics.finish(cx.out)?;
    // Also if no `print` is left: the launcher knows only the generic kernel, and passes the buffer.
    if func.has_prints() {
        prints::write_prints(&mut out);
    }
    Ok(out)
}

fn check_bindings(func: &Function, bindings: &Bindings, diagnostics: &mut Diagnostics) {
    for param in &func.types {
        match bindings.types.iter().find(|(name, _)| *name == param.name) {
            None => diagnostics.push(
                Diagnostic::new(Loc::NONE, format!("`{}` has no type", param.name))
                    .help("every type parameter is bound to an element type"),
            ),
            Some((_, dtype)) if !param.choices.contains(dtype) => {
                let choices: Vec<String> = param.choices.iter().map(|choice| format!("`{choice}`")).collect();
                diagnostics.push(
                    Diagnostic::new(Loc::NONE, format!("`{}` cannot be `{dtype}`", param.name))
                        .help(format!("its bound allows {}", choices.join(", "))),
                );
            }
            Some(_) => {}
        }
    }
    for param in &func.consts {
        let found = bindings.consts.iter().find(|(name, _)| *name == param.name);
        // A float is bound to its bits.
        let (low, high) = param.dtype.int_range().unwrap_or((0, (1 << param.dtype.bits()) - 1));
        match found {
            None => diagnostics.push(
                Diagnostic::new(Loc::NONE, format!("`{}` has no value", param.name)).help("every constant parameter is bound to a number"),
            ),
            Some((_, value)) if !(low..=high).contains(value) => diagnostics.push(
                Diagnostic::new(Loc::NONE, format!("`{}` = {value} does not fit `{}`", param.name, param.dtype))
                    .help(format!("`{}` holds {low} to {high}", param.dtype)),
            ),
            Some(_) => {}
        }
    }
    for (name, number) in bindings.consts.iter().chain(&bindings.multiples) {
        let Some(param) = func.params.iter().find(|param| param.name == *name) else { continue };
        let ty = func.ty(param.value);
        let fits = match ty.elem() {
            Elem::Dtype(Dtype::Bool) => (0..=1).contains(number),
            Elem::Dtype(dtype) => dtype.int_range().is_some_and(|(low, high)| (low..=high).contains(number)),
            Elem::Param(_) => false,
        };
        if !ty.is_scalar() || !fits {
            let message = format!("nothing is known of `{name}` by `{number}`");
            diagnostics.push(Diagnostic::new(Loc::NONE, message).help("integers and booleans among the arguments can be known"));
        }
    }
    for (name, _) in bindings.multiples.iter().filter(|(_, of)| *of <= 0) {
        diagnostics
            .push(Diagnostic::new(Loc::NONE, format!("`{name}` is a multiple of no such number")).help("name a number greater than 0"));
    }
}

/// Prepends what is known of arguments to the body: the number, or an assumption.
fn known_arguments(func: &Function, bindings: &Bindings, out: &mut Function, map: &mut SideTable<Value, Option<Value>>) {
    for param in &func.params {
        let find = |list: &[(Name, i128)]| list.iter().find(|(name, _)| *name == param.name).map(|(_, number)| *number);
        let Some(value) = map[param.value] else { continue };
        let (ty, body) = (out.ty(value).clone(), out.body);
        let mut b = Builder::new(out, body, Loc::NONE);
        let mut number = |number: i128| {
            let value = if ty.dtype() == Dtype::Bool { ConstExpr::Bool(number != 0) } else { ConstExpr::Int(number) };
            b.constant(value, ty.clone())
        };
        if let Some(known) = find(&bindings.consts) {
            map[param.value] = Some(number(known));
        } else if let Some(of) = find(&bindings.multiples) {
            let (of, zero) = (number(of), number(0));
            let rest = b.binary(BinaryOp::Rem, value, of);
            let cond = b.compare(CompareOp::Eq, rest, zero);
            out.append(body, Op::Assert { cond, message: "assumption failed".to_owned(), assumed: true }, [], Loc::NONE);
        }
    }
}

struct Specializer<'a> {
    func: &'a Function,
    bindings: &'a Bindings,
    target: Option<&'a Asked>,
    out: Function,
    map: SideTable<Value, Option<Value>>,
    diagnostics: Diagnostics,
    /// The number of mistakes found, including repeated ones, which are not reported.
    mistakes: usize,
    /// The indices of the enclosing `static_for`s, the innermost last.
    indices: Vec<(String, i128)>,
    /// A `static_if` could not be decided, so the ops that follow would have no operands.
    undecided: bool,
}

impl Specializer<'_> {
    fn error(&mut self, loc: Loc, message: impl Into<String>, help: impl Into<String>) {
        self.push(Diagnostic::new(loc, message).help(help));
    }

    /// Reports a mistake, unless it is a repeated one: one value often breaks several ops in the same way.
    fn push(&mut self, diagnostic: Diagnostic) {
        self.mistakes += 1;
        if !self.diagnostics.iter().any(|known| known.message == diagnostic.message && known.help == diagnostic.help) {
            self.diagnostics.push(diagnostic);
        }
    }

    fn give_up(&mut self, loc: Loc, message: String, help: &str) {
        self.error(loc, message, help);
        self.undecided = true;
    }

    fn constant(&self, expr: &ConstExpr) -> Result<ConstExpr, String> {
        match self.target {
            Some(target) if expr.names(TARGET) => target.ask(|target| self.value(expr, target.number())),
            _ => self.value(expr, 0),
        }
    }

    /// The value of an expression if `target()` is `target`.
    fn value(&self, expr: &ConstExpr, target: u32) -> Result<ConstExpr, String> {
        expr.evaluate(&|name| {
            if let Some((_, index)) = self.indices.iter().rev().find(|(known, _)| known == name) {
                return Some(ConstExpr::Int(*index));
            }
            if name == TARGET {
                return Some(ConstExpr::Int(target.into()));
            }
            // `T == f32`: types are compared by their numbers.
            let elem = name.parse().map_or_else(|_| self.elem(&Elem::Param(name.into())), Elem::Dtype);
            if let Elem::Dtype(dtype) = elem {
                return Some(ConstExpr::Int(i128::from(dtype.code())));
            }
            let (_, value) = self.bindings.consts.iter().find(|(given, _)| **given == *name)?;
            let param = self.func.consts.iter().find(|param| *param.name == *name);
            Some(param.map_or(ConstExpr::Int(*value), |param| param.constant(*value)))
        })
    }

    fn elem(&self, elem: &Elem) -> Elem {
        match elem {
            Elem::Dtype(_) => elem.clone(),
            Elem::Param(name) => {
                self.bindings.types.iter().find(|(given, _)| given == name).map_or(elem.clone(), |(_, dtype)| (*dtype).into())
            }
        }
    }

    fn ty(&mut self, ty: &Type, loc: Loc) -> Type {
        let elem = self.elem(ty.elem());
        match ty {
            Type::Pointer { mutable, .. } => Type::Pointer { elem, mutable: *mutable },
            // A generic kernel has none.
            Type::Shared { shape, contiguous, .. } => Type::Shared { elem, shape: shape.clone(), contiguous: *contiguous },
            Type::Tile { shape, .. } => {
                let mut extents = Vec::new();
                for dim in shape {
                    let extent = self.constant(dim).unwrap_or_else(|message| {
                        self.error(loc, message, OTHER_VALUES);
                        ConstExpr::Int(1)
                    });
                    extents.push(self.check_extent(extent, loc));
                }
                let product = |of: fn(i128) -> i128| extents.iter().filter_map(ConstExpr::as_int).map(of).fold(1i128, i128::saturating_mul);
                let (numel, kept) = (product(|extent| extent), product(|extent| extent.unsigned_abs().next_power_of_two() as i128));
                if kept > MAX_NUMEL {
                    let padding = if kept > numel { format!(", kept as {kept},") } else { String::new() };
                    let message = format!("a tile of {numel} elements{padding} is too large: the limit is {MAX_NUMEL}");
                    self.push(Diagnostic::new(loc, message).help("let more programs share the work, or loop").beyond_gpu());
                }
                Type::tile(elem, extents)
            }
        }
    }

    fn check_extent(&mut self, extent: ConstExpr, loc: Loc) -> ConstExpr {
        if extent.as_int().is_some_and(|extent| extent > 0) {
            return extent;
        }
        self.error(loc, format!("the extent of a tile is a positive number, not {extent}"), "name values that leave at least one element");
        ConstExpr::Int(1)
    }

    fn region(&mut self, from: Region, to: Region) {
        let func = self.func;
        for inst in &func.region(from).insts {
            let data = func.inst(*inst);
            match &data.op {
                Op::StaticIf { cond, then_region, else_region } => match self.constant(cond) {
                    Ok(ConstExpr::Bool(holds)) => self.inline(if holds { *then_region } else { *else_region }, to, &data.results),
                    Ok(other) => {
                        let message = format!("the condition of this `if` is {other}, not `true` or `false`");
                        return self.give_up(data.loc, message, "compare: `if N > 0 { .. }`");
                    }
                    Err(message) => return self.give_up(data.loc, message, OTHER_VALUES),
                },
                Op::StaticFor { index, start, end, step, init, body } => {
                    let bounds = [start, end, step].map(|bound| self.constant(bound));
                    let [Ok(ConstExpr::Int(start)), Ok(ConstExpr::Int(end)), Ok(ConstExpr::Int(step))] = bounds else {
                        return self.give_up(data.loc, "the bounds of `static_range` have no values".to_string(), OTHER_VALUES);
                    };
                    self.repeat((index, start, end, step), init, *body, to, &data.results, data.loc);
                }
                Op::StaticAssert { cond, message } => match self.constant(cond) {
                    Ok(ConstExpr::Bool(true)) => {}
                    Ok(_) => {
                        let message = if message.is_empty() { format!("`{cond}` does not hold") } else { message.clone() };
                        self.error(data.loc, message, format!("the kernel is for values with {}", text(cond)));
                    }
                    Err(message) => self.error(data.loc, message, OTHER_VALUES),
                },
                Op::StaticPrint { format, values } => self.note(format, values, data.loc),
                op => self.inst(op.clone(), &data.results, data.loc, to),
            }
            if !self.undecided && self.out.value_count() > MAX_VALUES {
                let message = format!("this kernel computes more than {MAX_VALUES} values, what `static_range` repeats included");
                self.give_up(data.loc, message, "let a loop with `range` repeat it, which is not written out");
            }
            if self.undecided {
                return;
            }
        }
    }

    /// Records a template with constants as a note. Equal notes of several copies are recorded once.
    fn note(&mut self, format: &str, values: &[ConstExpr], loc: Loc) {
        let values: Result<Vec<ConstExpr>, String> = values.iter().map(|value| self.constant(value)).collect();
        let values = match values {
            Ok(values) => values,
            Err(message) => return self.error(loc, message, OTHER_VALUES),
        };
        let mut values = values.iter();
        let text = template::render(format, |hex| match values.next() {
            Some(ConstExpr::Int(value)) if hex => format!("{value:#x}"),
            value => value.map(ToString::to_string).unwrap_or_default(),
        });
        if !self.out.notes.contains(&(loc, text.clone())) {
            self.out.notes.push((loc, text));
        }
    }

    /// Inlines the chosen region of a `static_if`. The results are the values that the region yields.
    fn inline(&mut self, from: Region, to: Region, results: &[Value]) {
        self.region(from, to);
        if self.undecided {
            return;
        }
        let last = self.out.insts_mut(to).pop();
        let Some(Op::Yield { values }) = last.map(|inst| self.out.inst(inst).op.clone()) else { return };
        for (result, value) in results.iter().zip(values) {
            self.map[*result] = Some(value);
        }
    }

    /// Appends a copy of the body of a `static_for` for each index.
    fn repeat(
        &mut self,
        (index, start, end, step): (&str, i128, i128, i128),
        init: &[Value],
        body: Region,
        to: Region,
        results: &[Value],
        loc: Loc,
    ) {
        if step <= 0 {
            let help = "it counts upwards; compute the index in the body: `let j = n - 1 - i;`";
            return self.give_up(loc, format!("the step of `static_range` is positive, not {step}"), help);
        }
        let iterations = if end > start { (end - start - 1) / step + 1 } else { 0 };
        if iterations > MAX_ITERATIONS {
            let message = format!("`static_range` repeats its body {iterations} times, and {MAX_ITERATIONS} is the most");
            self.push(Diagnostic::new(loc, message).help("a loop that is not written out is `range`"));
            self.undecided = true;
            return;
        }
        let carried = |cx: &Self, values: &[Value]| values.iter().map(|value| cx.map[*value]).collect::<Vec<_>>();
        let mut values = carried(self, init);
        for iteration in 0..iterations {
            for (param, value) in self.func.region(body).params.iter().zip(&values) {
                self.map[*param] = *value;
            }
            self.indices.push((index.to_string(), start + iteration * step));
            self.region(body, to);
            self.indices.pop();
            if self.undecided {
                return;
            }
            let last = self.out.insts_mut(to).pop();
            let Some(Op::Yield { values: next }) = last.map(|inst| self.out.inst(inst).op.clone()) else { return };
            values = next.into_iter().map(Some).collect();
        }
        for (result, value) in results.iter().zip(values) {
            self.map[*result] = value;
        }
    }

    fn inst(&mut self, mut op: Op, results: &[Value], loc: Loc, to: Region) {
        op.map_operands(&mut |value| self.map[value].expect("a verified kernel defines values before their use"));
        if let Err(message) = op.map_constants(&mut |expr| self.constant(expr)) {
            self.error(loc, message, OTHER_VALUES);
            op.map_constants(&mut |_| Ok(ConstExpr::Int(1))).ok();
        }
        let mistakes = self.mistakes;
        let given: Vec<Type> = results.iter().map(|value| self.ty(self.func.ty(*value), loc)).collect();
        if let Op::Const { value } = &mut op {
            match value.to_dtype(given[0].dtype()) {
                Ok(typed) => *value = typed,
                Err(message) => self.error(loc, message, "use a wider type, or a smaller number"),
            }
        }
        let is_new_mistake = self.mistakes > mistakes;
        if !is_new_mistake && let Some(message) = result_types(&self.out, &op, &given.iter().collect::<Vec<_>>()).err() {
            let help = rule_help(&op);
            self.error(loc, message, help);
        }
        let mut copies = Vec::new();
        op.map_regions(&mut |region| {
            let copy = self.out.add_region();
            copies.push((region, copy));
            copy
        });
        for (region, copy) in copies {
            for param in &self.func.region(region).params {
                let ty = self.ty(self.func.ty(*param), loc);
                let value = self.out.add_region_param(copy, ty);
                self.map[*param] = Some(value);
            }
            self.region(region, copy);
            if self.undecided {
                return;
            }
        }
        let inst = self.out.append(to, op, given, loc);
        for (old, new) in results.iter().zip(self.out.inst(inst).results.clone()) {
            self.map[*old] = Some(new);
        }
    }
}

/// The help text for a mistake that only the values cause.
const OTHER_VALUES: &str = "name values with which this has one";

/// A condition as the user would write it.
fn text(cond: &ConstExpr) -> String {
    let text = cond.to_string();
    format!("`{}`", text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(&text))
}

/// The help text for an op whose rule these types and extents break.
fn rule_help(op: &Op) -> String {
    match op {
        Op::Atomic { op, .. } => {
            let some: Vec<&str> = op.dtypes().iter().rev().take(2).map(|dtype| dtype.name()).collect();
            return format!("name the types that the kernel is for, as in `#[kernel(T = [{}])]`", some.join(", "));
        }
        Op::Reshape { .. } => "a reshape keeps every element: name extents with one product",
        Op::Arange { .. } => "the end is greater than the start",
        Op::Bitcast { .. } => "name types of one width",
        Op::Dot { .. } => "name types and extents that `dot` takes, or write a `dot` for each: `if T == f32 { .. }`",
        _ => "name other values, or assert those that the kernel is for: `static_assert!(N >= 64, \"..\")`",
    }
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_breaks_many_ops_is_reported_once() {
        let func = crate::ir::parse(
            "kernel @k<T: f32 | f64, const N: i64>(%y: ptr_mut<T>) file \"k.rs\" {
                %0 = arange {start = 0, end = N} : tile<i64, [N]> @3:33
                %1 = load %y, %0 : tile<T, [N]> @4:18
                %2 = add %1, %1 : tile<T, [N]> @4:13
                store %y, %0, %2 @4:5
                return @5:1
            }",
        )
        .expect("it is well formed");
        let mistakes = run(&func, &Bindings::new().ty("T", Dtype::F32).constant("N", -3), None).expect_err("-3 is no extent");
        let text =
            "error: the extent of a tile is a positive number, not -3\n --> k.rs:3:33\nhelp: name values that leave at least one element\n";
        assert_eq!(mistakes.render(&func.files), text);
    }
}
