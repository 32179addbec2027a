//! `inline_ptx!`: the closure on the CPU, the PTX text on a GPU.
//!
//! ```text
//! static_if (target == 0) { the closure's body, on the operands } else { inline_ptx }
//! ```
//!
//! On the CPU, every pass and the backend see only the language's own ops.

use super::convert::shapes_help;
use super::meaning::{Constant, Kind, Meaning};
use super::{Elaborator, Region, Value};
use crate::ast::{Expr, ExprKind, InlinePtx, Name, Pattern};
use crate::span::SourceSpan;
use kernel_lang::ir::assembly::{self, Piece};
use kernel_lang::ir::{Builder, ConstBinary, ConstExpr, Elem, Op, Shape, TARGET, Type};

/// The names and the types of a text's results.
struct Results<'a> {
    names: Vec<&'a Name>,
    elems: Vec<Elem>,
    shape: Shape,
}

impl Elaborator<'_> {
    pub(super) fn inline_ptx(&mut self, inline: &InlinePtx, span: SourceSpan) -> Meaning {
        let before = self.errors.len();
        let operands = self.text_operands(inline, span);
        let elems: Vec<Elem> = inline.results.iter().filter_map(|(_, ty)| self.elem(ty)).collect();
        let closure = self.cpu_closure(inline);
        let (Some((inputs, shape)), Some((params, body)), true) = (operands, closure, elems.len() == inline.results.len()) else {
            return Meaning::Poison;
        };
        let known: Vec<Elem> = elems.iter().cloned().chain(inputs.iter().map(|input| self.func.ty(*input).elem().clone())).collect();
        let text = self.numbered(inline, &known);
        if self.errors.len() > before {
            return Meaning::Poison;
        }
        let results = Results { names: inline.results.iter().map(|(name, _)| name).collect(), elems, shape };
        let types: Vec<Type> = results.elems.iter().map(|elem| Type::tile(elem.clone(), results.shape.clone())).collect();
        let loc = self.loc(span);
        let Some(on_cpu) = self.on_cpu(inline, params, body, &inputs, &results) else { return Meaning::Poison };
        let on_gpu = self.func.add_region();
        let isa = inline.isa;
        let op = Op::InlinePtx { inputs, text, pack: if inline.pack > 1 { inline.pack } else { 0 }, isa, volatile: inline.volatile };
        let values = match Builder::new(&mut self.func, on_gpu, loc).try_op(op, &types) {
            Ok(inst) => self.func.inst(inst).results.to_vec(),
            Err(message) => {
                self.errors.push(span, message);
                return Meaning::Poison;
            }
        };
        self.func.append(on_gpu, Op::Yield { values }, [], loc);
        let cond = ConstExpr::binary(ConstBinary::Eq, ConstExpr::Param(TARGET.into()), ConstExpr::Int(0));
        let inst = self.func.append(self.region, Op::StaticIf { cond, then_region: on_cpu, else_region: on_gpu }, types, loc);
        let mut meanings: Vec<Meaning> = self.func.inst(inst).results.iter().map(|value| Meaning::Value(*value)).collect();
        if meanings.len() == 1 { meanings.remove(0) } else { Meaning::Tuple(None, meanings) }
    }

    /// The operands, broadcast to one shape.
    fn text_operands(&mut self, inline: &InlinePtx, span: SourceSpan) -> Option<(Vec<Value>, Shape)> {
        let mut meanings = Vec::new();
        for (name, expr) in &inline.operands {
            let meaning = self.expr(expr);
            if let Meaning::Constant(Constant { elem: None, kind: Kind::Int | Kind::Float, .. }) = meaning {
                let found = self.describe(&meaning);
                let help = "say its type: `3u32`, or `N as u32`";
                self.errors.push_help(expr.span, format!("an operand of `inline_ptx!` has a type, and `{}` is {found}", name.text), help);
                meanings.push(Meaning::Poison);
            } else {
                meanings.push(meaning);
            }
        }
        let values: Vec<Option<Value>> =
            meanings.iter().zip(&inline.operands).map(|(meaning, (_, expr))| self.value(meaning, expr.span)).collect();
        let values = values.into_iter().collect::<Option<Vec<Value>>>()?;
        let shown: Vec<Meaning> = values.iter().map(|value| Meaning::Value(*value)).collect();
        let shape = match self.common_shape(&shown.iter().collect::<Vec<_>>()) {
            Ok(shape) => shape,
            Err((x, y)) => {
                let found: Vec<String> = meanings.iter().map(|meaning| self.describe(meaning)).collect();
                let help = shapes_help(&x, &y, "the text runs for each element: its operands have one extent, or are scalars");
                self.errors.push_help(span, format!("the operands of `inline_ptx!` differ in shape: {}", found.join(", ")), help);
                return None;
            }
        };
        let spread = values.iter().zip(&inline.operands).map(|(value, (_, expr))| self.with_shape(*value, &shape, expr.span));
        Some((spread.collect::<Option<Vec<Value>>>()?, shape))
    }

    /// The parameters and the body of the `cpu` closure.
    fn cpu_closure<'e>(&mut self, inline: &'e InlinePtx) -> Option<(&'e [Pattern], &'e Expr)> {
        let names: Vec<&str> = inline.operands.iter().map(|(name, _)| name.text.as_str()).collect();
        let help = format!("write `cpu = |{}| ..`", names.join(", "));
        let ExprKind::Closure(params, body) = &inline.cpu.kind else {
            self.errors.push_help(inline.cpu.span, "`cpu` is a closure that computes what the text computes", help);
            return None;
        };
        if params.len() != names.len() {
            let message = format!("this closure has {}, and the text {}", count(params.len(), "parameter"), count(names.len(), "operand"));
            self.errors.push_help(inline.cpu.span, message, help);
            return None;
        }
        Some((params, body))
    }

    /// The text with names replaced by numbers. Checks its placeholders and its statements.
    fn numbered(&mut self, inline: &InlinePtx, elems: &[Elem]) -> String {
        let names: Vec<&Name> = inline.results.iter().map(|(name, _)| name).chain(inline.operands.iter().map(|(name, _)| name)).collect();
        let pack = inline.pack as usize;
        for (name, elem) in names.iter().zip(elems) {
            if let Some(Err(message)) = elem.dtype().map(|dtype| assembly::registers(dtype, pack)) {
                self.errors.push_help(name.span, message, "write `pack = 4` for 8 bits, `pack = 2` for 16 bits, or multiples of them");
                return String::new();
            }
        }
        let mut pieces = assembly::parse(&inline.text).expect("the parser took the text apart");
        if !self.check_statements(inline, &pieces) {
            return String::new();
        }
        let mut used = vec![false; names.len()];
        for piece in &mut pieces {
            let written = piece.clone();
            let Piece::Register { name, part } = piece else { continue };
            let Some(index) = names.iter().position(|known| known.text == *name) else {
                let help = "name what stands there: `{y}` with `y: f32` for a result, `{x}` with `x = value` for an operand";
                self.errors.push_help(inline.span, format!("`{written}` names no result and no operand"), help);
                return String::new();
            };
            used[index] = true;
            if let Some(Err(message)) = elems[index].dtype().map(|dtype| assembly::check_part(&written, dtype, pack, *part)) {
                let help = format!("the registers of `{name}` are `{{{name}[0]}}` and so on, where `pack` gives it several");
                self.errors.push_help(inline.span, message, help);
                return String::new();
            }
            *name = index.to_string();
        }
        for (name, _) in names.iter().zip(used).filter(|(_, used)| !used) {
            let help = format!("write `{{{}}}` where its register belongs, or leave it out", name.text);
            self.errors.push_help(name.span, format!("the text does not use `{}`", name.text), help);
        }
        pieces.iter().map(Piece::to_string).collect()
    }

    /// Checks that this kernel allows the statements of the text.
    fn check_statements(&mut self, inline: &InlinePtx, pieces: &[Piece]) -> bool {
        let before = self.errors.len();
        let results: Vec<&str> = inline.results.iter().map(|(name, _)| name.text.as_str()).collect();
        let reaches = match assembly::statements(pieces, &results) {
            Ok(reaches) => reaches,
            Err((message, help)) => {
                self.errors.push_help(inline.span, message, help);
                return false;
            }
        };
        if let Some(reach) = reaches.first().filter(|_| !self.func.unchecked) {
            let message = format!("`{}` does more than compute from registers, which a safe kernel cannot allow", reach.name);
            let help = "mark the kernel `#[kernel(unchecked)]`: it is an `unsafe fn` then, and the text is its caller's matter";
            self.errors.push_help(inline.span, message, help);
        } else if let Some(reach) = reaches.iter().find(|reach| reach.acts && !inline.volatile) {
            let message =
                format!("`{}` does more than give results, and a text without `volatile` may run once, twice or not at all", reach.name);
            self.errors.push_help(inline.span, message, "say so: `volatile = true`");
        } else if inline.results.is_empty() && !inline.volatile {
            let help = "name a result, `y: f32`, or say that it does something else: `volatile = true`";
            self.errors.push_help(inline.span, "a text without results does nothing", help);
        }
        self.errors.len() == before
    }

    /// Elaborates the closure to a region that yields the results.
    fn on_cpu(&mut self, inline: &InlinePtx, params: &[Pattern], body: &Expr, inputs: &[Value], results: &Results<'_>) -> Option<Region> {
        let mistakes = self.errors.len();
        let before = self.meanings();
        let region = self.func.add_region();
        let outer = std::mem::replace(&mut self.region, region);
        self.static_branches += 1;
        let values = self.scoped(|cx| {
            for (param, input) in params.iter().zip(inputs) {
                cx.bind_meaning(param, Meaning::Value(*input));
            }
            let elem = if let [elem] = &results.elems[..] { Some(elem) } else { None };
            let meaning = cx.expr_as(body, elem);
            cx.given_by_cpu(&meaning, body.span, results)
        });
        self.static_branches -= 1;
        self.region = outer;
        self.check_assignments(&before, body.span);
        self.restore(&before);
        let values = values?;
        let loc = self.loc(body.span);
        self.func.append(region, Op::Yield { values }, [], loc);
        self.check_elementwise(region, inline.volatile, body.span);
        (self.errors.len() == mistakes).then_some(region)
    }

    /// Converts the closure's values to the types and the shape of the results.
    fn given_by_cpu(&mut self, meaning: &Meaning, span: SourceSpan, results: &Results<'_>) -> Option<Vec<Value>> {
        let parts = match meaning {
            Meaning::Poison => return None,
            Meaning::Tuple(_, parts) if results.names.len() != 1 && parts.len() == results.names.len() => parts.clone(),
            Meaning::Tuple(..) => Vec::new(),
            other => vec![other.clone()],
        };
        if parts.len() != results.names.len() {
            let found = self.describe(meaning);
            let names: Vec<&str> = results.names.iter().map(|name| name.text.as_str()).collect();
            let help = match names[..] {
                [] => "leave its last value out: `cpu = |x| {}`".to_string(),
                [name] => format!("it gives `{name}` alone"),
                _ => format!("it gives `({})`", names.join(", ")),
            };
            self.errors.push_help(span, format!("the closure gives {found}, and the text {}", count(names.len(), "result")), help);
            return None;
        }
        let mut values = Vec::new();
        for ((part, elem), name) in parts.iter().zip(&results.elems).zip(&results.names) {
            let fits = self.fits_shape(part, &results.shape);
            match if fits { self.spread(part, elem, &results.shape, span) } else { Err(()) } {
                Ok(value) => values.push(value?),
                Err(()) => {
                    let (found, wanted) = (self.describe(part), Type::tile(elem.clone(), results.shape.clone()));
                    let help = if fits {
                        format!("cast it: `(..) as {elem}`")
                    } else {
                        "it computes element by element, as the text does".to_string()
                    };
                    self.errors.push_help(span, format!("the closure gives {found} for `{}`, which is `{wanted}`", name.text), help);
                    return None;
                }
            }
        }
        Some(values)
    }

    /// A text has access to one element of each operand only, unless it is volatile.
    fn check_elementwise(&mut self, region: Region, volatile: bool, span: SourceSpan) {
        let mut insts = Vec::new();
        self.func.for_each_inst(region, &mut |inst| insts.push(inst));
        for inst in insts {
            let data = self.func.inst(inst);
            let at = self.spans.get(data.loc).unwrap_or(span);
            let (message, help) = match &data.op {
                op if op.looks_across() => (
                    "the closure of `inline_ptx!` computes element by element, as the text does",
                    "combine the elements before or after it",
                ),
                Op::Load { .. }
                | Op::Store { .. }
                | Op::Atomic { .. }
                | Op::Barrier {}
                | Op::GdcWait {}
                | Op::GdcLaunchDependents {}
                | Op::Print { .. }
                    if !volatile =>
                {
                    (
                        "the closure of an `inline_ptx!` without `volatile` only computes",
                        "read and write before or after it, or say `volatile = true` of the text",
                    )
                }
                _ => continue,
            };
            return self.errors.push_help(at, message, help);
        }
    }
}

fn count(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
