//! Calls of builtins.

use super::convert::shapes_help;
use super::meaning::{Constant, Kind, Meaning};
use super::{Elaborator, Value};
use crate::ast::{Call, Expr, ExprKind, Operator};
use crate::builtins::{self, Builtin, Row};
use crate::span::SourceSpan;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{BinaryOp, CompareOp, ConstBinary, ConstExpr, Domain, Elem, Op, TARGET, Type, UnaryOp, padding};

impl Elaborator<'_> {
    pub(super) fn call(&mut self, call: &Call, span: SourceSpan) -> Meaning {
        let name = call.name.text.as_str();
        if let Some(owner) = &call.owner {
            return self.associated(owner, call, span);
        }
        if let Some(meaning) = call.is_method.then(|| self.method(call, span)).flatten() {
            return meaning;
        }
        if call.is_method && matches!(name, "load" | "store") {
            return self.view_access(call, span);
        }
        if let Some(index) = self.find(name).filter(|_| !call.is_method)
            && let Meaning::Function(closure) = self.variables[index].meaning.clone()
        {
            return self.call_closure(&closure, call);
        }
        if let Some(row) = builtins::find(name).filter(|row| if call.is_method { row.method } else { !row.builtin.is_only_method() }) {
            return self.builtin(row, call, span);
        }
        match self.device_function(name) {
            Some(func) => self.call_function(&func, call, span),
            None => self.unknown_function(call),
        }
    }

    /// Reports a call of an unknown function.
    fn unknown_function(&mut self, call: &Call) -> Meaning {
        self.check_arguments(call);
        let name = call.name.text.as_str();
        let (message, help) = match (self.find(name), builtins::find(name)) {
            (Some(index), _) if self.variables[index].meaning.is_poison() => return Meaning::Poison,
            // rustc resolves the device function of that name.
            (None, None) if self.is_alone && !builtins::is_reserved(name) => return Meaning::Poison,
            (Some(_), _) => {
                let help = "a kernel calls the builtins of `galatea::dsl` and `#[device]` functions";
                (format!("`{name}` is a value and cannot be called"), help.to_string())
            }
            (None, Some(row)) => (format!("`{name}` is a method"), format!("write `{}`", row.usage)),
            (None, None) => builtins::unknown(name, false),
        };
        self.errors.push_help(call.name.span, message, help);
        Meaning::Poison
    }

    fn builtin(&mut self, row: &Row, call: &Call, span: SourceSpan) -> Meaning {
        if self.frames.is_empty() {
            self.builtins.push((row.name, call.name.span.start));
        }
        if let Builtin::Library(family) = row.builtin {
            self.check_types(row, call);
            let func = self.library_function(family, row.name).expect("a test compares the table of builtins with the library");
            return self.call_function(&func, call, span);
        }
        if !self.check_call(row, call) {
            return Meaning::Poison;
        }
        match row.builtin {
            Builtin::ProgramId | Builtin::NumPrograms => self.program(row, &call.args[0], span),
            Builtin::Arange => self.arange(&call.args[0], &call.args[1], span),
            Builtin::Cdiv => self.cdiv(&call.args[0], &call.args[1], span),
            Builtin::Zeros | Builtin::Ones => self.zeros_or_ones(row.builtin, call, span),
            Builtin::Full => self.full(call),
            Builtin::ZerosLike => self.zeros_like(&call.args[0], span),
            Builtin::FullLike => self.full_like(&call.args[0], &call.args[1]),
            Builtin::Load => self.load(call, span),
            Builtin::Store => self.store(call, span),
            Builtin::View => self.view(&call.args, span),
            Builtin::Atomic(op) => self.atomic(op, call, span),
            Builtin::Barrier => self.effect(Op::Barrier {}, span),
            Builtin::GdcWait => self.effect(Op::GdcWait {}, span),
            Builtin::GdcLaunchDependents => self.effect(Op::GdcLaunchDependents {}, span),
            Builtin::Target => Meaning::constant(ConstExpr::Param(TARGET.into()), Kind::Int, None),
            Builtin::Assume => self.assume(&call.args[0], span),
            Builtin::Gather => self.gather(call, span),
            Builtin::Dot => self.dot(call, span),
            Builtin::Histogram => self.histogram(call, span),
            Builtin::Sort => self.sort(call, span),
            Builtin::Topk => self.topk(call, span),
            Builtin::Select => self.select(&call.args, span),
            Builtin::Fma => self.fma(&call.args, span),
            Builtin::Clamp => self.clamp(&call.args, span),
            Builtin::Bitcast | Builtin::To => self.with_type(row.builtin, call, span),
            Builtin::Range => self.range_as_value(row, span),
            Builtin::Unary(op) => self.unary(row.name, op, &call.args[0], span),
            Builtin::Umulhi => self.umulhi(&call.args, span),
            Builtin::Binary(op) if call.args.len() == 1 => self.extreme(op, call, span),
            Builtin::Binary(op) => self.binary(op, &call.args[0], &call.args[1], span),
            Builtin::NewAxis(axis) => self.new_axis(row, axis, &call.args[0], span),
            Builtin::ExpandDims => self.expand_dims(&call.args[0], &call.args[1], span),
            Builtin::BroadcastTo => self.broadcast_to(&call.args[0], &call.args[1], span),
            Builtin::Reshape => self.reshape(&call.args[0], &call.args[1], span),
            Builtin::Permute => self.permute(&call.args[0], &call.args[1], span),
            Builtin::Trans => self.trans(&call.args[0], span),
            Builtin::Flip => self.flip(call, span),
            Builtin::Squeeze => self.squeeze(&call.args[0], &call.args[1], span),
            Builtin::Join => self.join_tiles(&call.args[0], &call.args[1], span),
            Builtin::Split => self.split(&call.args[0], span),
            Builtin::Interleave => self.interleave(&call.args[0], &call.args[1], span),
            Builtin::Cat => self.cat(call, span),
            Builtin::Extent => self.extent(&call.args[0], &call.args[1]),
            Builtin::Rank | Builtin::Numel => self.count(row, &call.args[0]),
            Builtin::Fold(op) => self.fold_tile(op, call, span),
            Builtin::Predicate(op) => self.predicate(op, call, span),
            Builtin::Arg(op) => self.arg_extreme(op, call, span),
            Builtin::Cumulative(op) => self.cumulative(op, call, span),
            Builtin::Reduce | Builtin::Scan => self.custom(row, call, span),
            Builtin::Library(_) => Meaning::Poison,
        }
    }

    /// Appends an op without results.
    fn effect(&mut self, op: Op, span: SourceSpan) -> Meaning {
        self.append(op, span);
        Meaning::UNIT
    }

    fn with_type(&mut self, builtin: Builtin, call: &Call, span: SourceSpan) -> Meaning {
        let meaning = self.expr(&call.args[0]);
        let Some(elem) = self.elem(&call.types[0]) else { return Meaning::Poison };
        match builtin {
            Builtin::To => self.cast(&meaning, &elem, call.args[0].span, span),
            _ => self.bitcast(&meaning, &elem, call.args[0].span, span),
        }
    }

    fn range_as_value(&mut self, row: &Row, span: SourceSpan) -> Meaning {
        let help = format!("ranges are for loops: `for i in {}(a, b)`; a tile of indices is `arange(0, N)`", row.name);
        self.errors.push_help(span, "a range has no value", help);
        Meaning::Poison
    }

    fn program(&mut self, row: &Row, axis: &Expr, span: SourceSpan) -> Meaning {
        let axis = match self.expr(axis) {
            Meaning::Poison => return Meaning::Poison,
            Meaning::Constant(Constant { expr: ConstExpr::Int(axis @ 0..=2), .. }) => axis as u32,
            other => {
                let found = self.describe(&other);
                self.errors.push_help(
                    axis.span,
                    format!("the axis of `{}` is 0, 1 or 2, not {found}", row.name),
                    "a grid has up to three axes; the first is 0",
                );
                return Meaning::Poison;
            }
        };
        let op = if row.builtin == Builtin::ProgramId { Op::ProgramId { axis } } else { Op::NumPrograms { axis } };
        self.emit(op, &[], span).into()
    }

    fn arange(&mut self, start: &Expr, end: &Expr, span: SourceSpan) -> Meaning {
        let (from, to) = (self.expr(start), self.expr(end));
        if let Meaning::Value(value) = from
            && self.check_domain(value, Domain::Int)
        {
            let message = format!("the start of `arange` must be constant, but this is {} computed at run time", self.describe(&from));
            self.errors.push_help(start.span, message, "add it to a range that starts at 0: `start + arange(0, N)`");
            return Meaning::Poison;
        }
        let from = self.const_int(&from, "the start of `arange`", start.span);
        let to = self.const_int(&to, "the end of `arange`", end.span);
        let (Some(from), Some(to)) = (from, to) else { return Meaning::Poison };
        let extent = ConstExpr::binary(ConstBinary::Sub, to.clone(), from.clone());
        if !self.check_extent(&extent, &format!("`arange({from}, {to})`"), span) {
            return Meaning::Poison;
        }
        self.emit(Op::Arange { start: from, end: to }, &[], span).into()
    }

    /// Checks an extent. One that is not known yet is checked at specialisation.
    pub(super) fn check_extent(&mut self, extent: &ConstExpr, what: &str, span: SourceSpan) -> bool {
        match extent.as_int() {
            None | Some(1..=MAX_EXTENT) => return true,
            Some(extent @ 1..) => {
                self.errors.push_help(
                    span,
                    format!("{what} has {extent} elements, more than the {MAX_EXTENT} of the largest tile"),
                    "let more programs share the work, or loop",
                );
            }
            Some(extent) => {
                let help = match (what.contains("arange"), extent) {
                    (true, ..0) => "the end is greater than the start",
                    (false, -1) if what == "the tile" => "write the number of elements: `-1` does not stand for what is left",
                    _ => "a tile has at least one element",
                };
                self.errors.push_help(span, format!("{what} has no elements"), help);
            }
        }
        false
    }

    pub(super) fn shape(&mut self, expr: &Expr) -> Option<Vec<ConstExpr>> {
        let ExprKind::Shape(list) = &expr.kind else {
            let meaning = self.expr(expr);
            if !meaning.is_poison() {
                let found = self.describe(&meaning);
                self.errors.push_help(
                    expr.span,
                    format!("a shape is expected here, not {found}"),
                    "shapes stand in brackets: `[BLOCK_SIZE]`",
                );
            }
            return None;
        };
        if list.is_empty() {
            self.errors.push_help(expr.span, "a tile has at least one axis", "write its extents: `[BLOCK_SIZE]`");
            return None;
        }
        let extents: Vec<Option<ConstExpr>> = list
            .iter()
            .map(|extent| {
                let meaning = self.expr(extent);
                let value = self.const_int(&meaning, "the extent of a tile", extent.span)?;
                self.check_extent(&value, "the tile", extent.span).then_some(value)
            })
            .collect();
        let shape = extents.into_iter().collect::<Option<Vec<ConstExpr>>>()?;
        let product = |of: fn(i128) -> i128| shape.iter().try_fold(1i128, |numel, extent| numel.checked_mul(of(extent.as_int()?)));
        let kept = product(|extent| padding::padded(extent as usize) as i128);
        if let (Some(numel), Some(kept)) = (product(|extent| extent), kept.filter(|kept| *kept > MAX_EXTENT)) {
            let padding = if kept > numel { format!(", kept as {kept} because extents become powers of two") } else { String::new() };
            self.errors.push_help(
                expr.span,
                format!("the tile has {numel} elements{padding}, more than the {MAX_EXTENT} of the largest tile"),
                "let more programs share the work, or loop",
            );
            return None;
        }
        Some(shape)
    }

    fn zeros_or_ones(&mut self, builtin: Builtin, call: &Call, span: SourceSpan) -> Meaning {
        let (shape, elem) = (self.shape(&call.args[0]), self.elem(&call.types[0]));
        let (Some(shape), Some(elem)) = (shape, elem) else { return Meaning::Poison };
        let is_one = builtin == Builtin::Ones;
        let is_bool = elem == Elem::Dtype(Dtype::Bool);
        let value = if is_bool { Constant::bool(ConstExpr::Bool(is_one)) } else { Constant::int(is_one.into()) };
        self.materialize(&value, &elem, &shape, span).into()
    }

    fn full(&mut self, call: &Call) -> Meaning {
        let shape = self.shape(&call.args[0]);
        let value = self.expr(&call.args[1]);
        let at = call.args[1].span;
        let elem = match call.types.first() {
            Some(ty) => self.elem(ty),
            None => match self.elem_of(&value) {
                None if Self::is_open(&value) || Self::open_outer(&value).is_some() => {
                    let found = self.describe(&value);
                    self.errors.push_help(at, format!("{found} has no type of its own"), "name the type: `full::<f32>([N], value)`");
                    None
                }
                elem => elem,
            },
        };
        if !matches!(value, Meaning::Poison | Meaning::Value(_) | Meaning::Constant(_)) || !self.shape_of(&value).is_empty() {
            let found = self.describe(&value);
            self.errors.push_help(at, format!("`full` spreads one scalar, not {found}"), "a tile needs no `full`");
            return Meaning::Poison;
        }
        let (Some(shape), Some(elem), false) = (shape, elem, value.is_poison()) else { return Meaning::Poison };
        self.fill(&value, &Type::tile(elem, shape), &call.args[1]).into()
    }

    fn unary(&mut self, name: &str, op: UnaryOp, x: &Expr, span: SourceSpan) -> Meaning {
        let meaning = self.expr(x);
        // A bare integer where only floats are allowed is an error; it is not converted to a float.
        let Some(value) = self.value(&meaning, x.span) else { return Meaning::Poison };
        if !self.check_domain(value, op.domain()) {
            self.wrong_domain(name, op.domain(), &meaning, x);
            return Meaning::Poison;
        }
        self.emit(Op::Unary { op, x: value }, &[], span).into()
    }

    /// Reports an argument whose element type the builtin does not support.
    pub(super) fn wrong_domain(&mut self, name: &str, domain: Domain, meaning: &Meaning, x: &Expr) {
        let found = self.describe(meaning);
        let written = super::operator::written(x);
        let target = if domain == Domain::Float { "f32" } else { "i32" };
        let bound = match domain {
            Domain::Float | Domain::Float16 => "Float",
            Domain::Int | Domain::Bits => "Int",
            Domain::Number | Domain::Any => "Number",
        };
        let help = match (&x.kind, self.elem_of(meaning)) {
            (ExprKind::Int(value, None), _) if domain == Domain::Float => format!("write `{value}.0`"),
            (_, Some(Elem::Param(param))) => {
                let choices = self.choices(&Elem::Param(param.clone()));
                let outside = choices.iter().find(|dtype| !domain.contains(**dtype)).copied().unwrap_or(Dtype::Bool);
                let may_be = match outside {
                    Dtype::Bool => "`bool`",
                    dtype if dtype.is_float() => "a float",
                    _ => "an integer",
                };
                // If all allowed types are of the wrong kind, no narrower bound helps.
                match choices.iter().any(|dtype| domain.contains(*dtype)) {
                    true if domain == Domain::Number => format!("`{param}` may be {may_be}; bound it by `{bound}`"),
                    true => format!("`{param}` may be {may_be}; bound it by `{bound}`, or cast: `{written} as {target}`"),
                    false => format!("cast it: `{written} as {target}`"),
                }
            }
            (_, Some(Elem::Dtype(dtype))) if dtype.is_float8() => super::operator::float8_help(x),
            _ => format!("cast it: `{written} as {target}`"),
        };
        self.errors.push_help(x.span, format!("`{name}` takes {}, not {found}", domain.describe()), help);
    }

    fn binary(&mut self, op: BinaryOp, lhs: &Expr, rhs: &Expr, span: SourceSpan) -> Meaning {
        let (a, b) = (self.expr(lhs), self.expr(rhs));
        if let (BinaryOp::Max | BinaryOp::Min, ExprKind::Int(number, None)) = (op, &rhs.kind)
            && self.is_float(&a)
            // In a function that is generic over types, `max(x, 0)` is the only form that fits integers and floats.
            && self.frames.last().is_none_or(|frame| frame.func.types.is_empty() && !self.is_library(&frame.func))
            && (-(self.shape_of(&a).len() as i128)..self.shape_of(&a).len() as i128).contains(number)
        {
            // The number is an axis of `x`, so the user may mean a maximum along this axis.
            let (name, x) = (op.name(), super::operator::written(lhs));
            let help =
                format!("along an axis it is `{name}({x}, axis = {number})`, of each element and a number `{name}({x}, {number}.0)`");
            self.errors.push_help(rhs.span, format!("`{number}` could be an axis or a number here"), help);
            return Meaning::Poison;
        }
        self.operate(Operator::Binary(op), (&a, lhs), (&b, rhs), span)
    }

    /// The upper half of a product depends on the signedness, so only unsigned integers are allowed.
    fn umulhi(&mut self, args: &[Expr], span: SourceSpan) -> Meaning {
        let meanings: Vec<Meaning> = args.iter().map(|arg| self.expr(arg)).collect();
        for (meaning, arg) in meanings.iter().zip(args) {
            let Some(elem) = self.elem_of(meaning) else { continue };
            if self.choices(&elem).iter().all(|dtype| dtype.is_int() && !dtype.is_signed_int()) {
                continue;
            }
            let found = self.describe(meaning);
            let help = match &elem {
                Elem::Param(param) => format!("`{param}` may be signed; name a type: `{} as u32`", super::operator::written(arg)),
                Elem::Dtype(dtype) if dtype.is_signed_int() => {
                    format!("take its bits: `bitcast::<u{}>({})`", dtype.bits(), super::operator::written(arg))
                }
                Elem::Dtype(_) => format!("cast it: `{} as u32`", super::operator::written(arg)),
            };
            self.errors.push_help(arg.span, format!("`umulhi` takes an unsigned integer, not {found}"), help);
            return Meaning::Poison;
        }
        if meanings.iter().all(Self::is_open) {
            self.errors.push_help(span, "the arguments of `umulhi` have no type", "name one: `umulhi(x, 5u32)`");
            return Meaning::Poison;
        }
        self.operate(Operator::Binary(BinaryOp::MulHigh), (&meanings[0], &args[0]), (&meanings[1], &args[1]), span)
    }

    fn clamp(&mut self, args: &[Expr], span: SourceSpan) -> Meaning {
        let meanings: Vec<Meaning> = args.iter().map(|arg| self.expr(arg)).collect();
        let pairs: Vec<(&Meaning, &Expr)> = meanings.iter().zip(args).collect();
        // `clamp` is lowered to `max` and `min`, which the user did not write, so types and shapes are checked under its own name.
        let Some(elem) = self.like_elem("clamp", &pairs, span) else { return Meaning::Poison };
        if self.like_shape("clamp", &pairs, span).is_none() {
            return Meaning::Poison;
        }
        if !self.choices(&elem).iter().all(|dtype| Domain::Number.contains(*dtype)) {
            self.wrong_domain("clamp", Domain::Number, &meanings[0], &args[0]);
            return Meaning::Poison;
        }
        let low = self.operate(Operator::Binary(BinaryOp::Max), (&meanings[0], &args[0]), (&meanings[1], &args[1]), span);
        self.operate(Operator::Binary(BinaryOp::Min), (&low, &args[0]), (&meanings[2], &args[2]), span)
    }

    /// Converts several arguments to values of one type and shape.
    pub(super) fn alike(&mut self, name: &str, args: &[(&Meaning, &Expr)], span: SourceSpan) -> Option<Vec<Value>> {
        let elem = self.like_elem(name, args, span)?;
        let shape = self.like_shape(name, args, span)?;
        args.iter().map(|(meaning, expr)| self.spread(meaning, &elem, &shape, expr.span).ok().flatten()).collect()
    }

    /// The common element type of the arguments.
    fn like_elem(&mut self, name: &str, args: &[(&Meaning, &Expr)], span: SourceSpan) -> Option<Elem> {
        for (meaning, expr) in args {
            if !matches!(meaning, Meaning::Value(_) | Meaning::Constant(_)) {
                self.value(meaning, expr.span);
                return None;
            }
        }
        let meanings: Vec<&Meaning> = args.iter().map(|(meaning, _)| *meaning).collect();
        match self.common_elem(&meanings) {
            Ok(elem) => Some(elem),
            Err(pair) => {
                let elems: Vec<(Option<Elem>, &Expr)> = args.iter().map(|(meaning, expr)| (self.elem_of(meaning), *expr)).collect();
                self.types_differ_among(name, &elems, &pair, span);
                None
            }
        }
    }

    /// The common shape of the arguments.
    pub(super) fn like_shape(&mut self, name: &str, args: &[(&Meaning, &Expr)], span: SourceSpan) -> Option<Vec<ConstExpr>> {
        let meanings: Vec<&Meaning> = args.iter().map(|(meaning, _)| *meaning).collect();
        match self.common_shape(&meanings) {
            Ok(shape) => Some(shape),
            Err((x, y)) => {
                let found: Vec<String> = meanings.iter().map(|meaning| self.describe(meaning)).collect();
                let help = shapes_help(&x, &y, "all need the same extent, or are scalars");
                self.errors.push_help(span, format!("the arguments of `{name}` differ in shape: {}", found.join(", ")), help);
                None
            }
        }
    }

    fn fma(&mut self, args: &[Expr], span: SourceSpan) -> Meaning {
        let meanings: Vec<Meaning> = args.iter().map(|arg| self.expr(arg)).collect();
        let pairs: Vec<(&Meaning, &Expr)> = meanings.iter().zip(args).collect();
        let Some(values) = self.alike("fma", &pairs, span) else { return Meaning::Poison };
        if !self.check_domain(values[0], Domain::Float) {
            let worst = meanings.iter().position(|meaning| self.elem_of(meaning).is_some()).unwrap_or(0);
            self.wrong_domain("fma", Domain::Float, &meanings[worst], &args[worst]);
            return Meaning::Poison;
        }
        self.emit(Op::Fma { a: values[0], b: values[1], c: values[2] }, &[], span).into()
    }

    fn select(&mut self, args: &[Expr], span: SourceSpan) -> Meaning {
        let meanings: Vec<Meaning> = args.iter().map(|arg| self.expr(arg)).collect();
        let cond = &meanings[0];
        if !cond.is_poison() && self.elem_of(cond) != Some(Elem::Dtype(Dtype::Bool)) {
            let found = self.describe(cond);
            self.errors.push_help(
                args[0].span,
                format!("the condition of `select` is `bool`, not {found}"),
                "compare it: `select(x > 0.0, a, b)`",
            );
            return Meaning::Poison;
        }
        if let (Meaning::Pointer { .. }, _) | (_, Meaning::Pointer { .. }) = (&meanings[1], &meanings[2]) {
            self.errors.push_help(span, "`select` does not choose between pointers", "choose between offsets, or between what is loaded");
            return Meaning::Poison;
        }
        let Some(values) = self.alike("select", &[(&meanings[1], &args[1]), (&meanings[2], &args[2])], span) else {
            return Meaning::Poison;
        };
        if cond.is_poison() {
            return Meaning::Poison;
        }
        let all = [cond.clone(), Meaning::Value(values[0])];
        let shape = match self.common_shape(&[&all[0], &all[1]]) {
            Ok(shape) => shape,
            Err((x, y)) => {
                let (a, b) = (self.describe(cond), self.describe(&all[1]));
                let help = shapes_help(&x, &y, "all need the same extent, or are scalars");
                self.errors.push_help(span, format!("`select` chooses {b} by {a}: their shapes differ"), help);
                return Meaning::Poison;
            }
        };
        let Some(cond) = self.value(cond, args[0].span) else { return Meaning::Poison };
        let mut spread = |value: Value, span: SourceSpan| self.with_shape(value, &shape, span);
        let (cond, on_true, on_false) = (spread(cond, args[0].span), spread(values[0], args[1].span), spread(values[1], args[2].span));
        let (Some(cond), Some(on_true), Some(on_false)) = (cond, on_true, on_false) else { return Meaning::Poison };
        self.emit(Op::Select { cond, on_true, on_false }, &[], span).into()
    }

    /// The quotient rounded up: `a / b`, plus one if there is a remainder with the sign of the exact quotient.
    fn cdiv(&mut self, lhs: &Expr, rhs: &Expr, span: SourceSpan) -> Meaning {
        let (a, b) = (self.expr(lhs), self.expr(rhs));
        if let (Meaning::Constant(x), Meaning::Constant(y)) = (&a, &b)
            && let Some(meaning) = self.fold_op(ConstBinary::Cdiv, x, y, span)
        {
            return meaning;
        }
        let Some(values) = self.alike("cdiv", &[(&a, lhs), (&b, rhs)], span) else { return Meaning::Poison };
        let (a_value, b_value) = (values[0], values[1]);
        if !self.check_domain(a_value, Domain::Int) {
            let (worst, expr) = if self.is_float(&a) || !self.is_float(&b) { (&a, lhs) } else { (&b, rhs) };
            if self.is_float(worst) {
                let found = self.describe(worst);
                let help = "a float is rounded up with `ceil(a / b)`";
                self.errors.push_help(expr.span, format!("`cdiv` takes an integer, not {found}"), help);
            } else {
                self.wrong_domain("cdiv", Domain::Int, worst, expr);
            }
            return Meaning::Poison;
        }
        let ty = self.func.ty(a_value).clone();
        let unsigned = self.choices(ty.elem()).iter().all(|dtype| !dtype.is_signed_int());
        let divisor = match &b {
            Meaning::Constant(Constant { expr: ConstExpr::Int(value), kind: Kind::Int, .. }) => Some(*value),
            _ => None,
        };
        self.cdiv_values(a_value, b_value, &ty, unsigned, divisor, span).into()
    }

    fn cdiv_values(&mut self, lhs: Value, rhs: Value, ty: &Type, unsigned: bool, divisor: Option<i128>, span: SourceSpan) -> Option<Value> {
        let quotient = self.emit(Op::Binary { op: BinaryOp::Div, lhs, rhs }, &[], span)?;
        let remainder = self.emit(Op::Binary { op: BinaryOp::Rem, lhs, rhs }, &[], span)?;
        let zero = self.emit(Op::Const { value: ConstExpr::Int(0) }, std::slice::from_ref(ty), span)?;
        let more = if unsigned {
            self.emit(Op::Compare { op: CompareOp::Ne, lhs: remainder, rhs: zero }, &[], span)?
        } else if divisor.is_some_and(|divisor| divisor > 0) {
            self.emit(Op::Compare { op: CompareOp::Gt, lhs: remainder, rhs: zero }, &[], span)?
        } else {
            let is_rest = self.emit(Op::Compare { op: CompareOp::Ne, lhs: remainder, rhs: zero }, &[], span)?;
            let signs = self.emit(Op::Binary { op: BinaryOp::Xor, lhs: remainder, rhs }, &[], span)?;
            let same_sign = self.emit(Op::Compare { op: CompareOp::Ge, lhs: signs, rhs: zero }, &[], span)?;
            self.emit(Op::Binary { op: BinaryOp::And, lhs: is_rest, rhs: same_sign }, &[], span)?
        };
        let one = self.emit(Op::Cast { x: more }, std::slice::from_ref(ty), span)?;
        self.emit(Op::Binary { op: BinaryOp::Add, lhs: quotient, rhs: one }, &[], span)
    }
}

/// Maximum number of elements of a tile, as in Triton.
const MAX_EXTENT: i128 = 1 << 20;
