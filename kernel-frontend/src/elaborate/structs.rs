//! Structs: tuples of their fields, together with a name.
//!
//! Construction is a call of the constructor, and methods are ordinary functions. This module therefore only resolves names: structs, fields
//! and methods.

use std::rc::Rc;

use super::generics::CallSite;
use super::inline::Arg;
use super::meaning::{Constant, Instance, Kind, Meaning};
use super::{Elaborator, Frame};
use crate::ast::{Call, Expr, ExprKind, Generic, Name, Owner, Pattern, StructLiteral};
use crate::builtins;
use crate::device::{DeviceFn, GenericKind, Home};
use crate::device_struct::DeviceStruct;
use crate::param_type::ParamType;
use crate::span::SourceSpan;
use kernel_lang::diagnostic::did_you_mean;
use kernel_lang::ir::Elem;

impl Elaborator<'_> {
    /// The struct that a path names in the source of such a function, or of the kernel.
    pub(super) fn struct_in(&self, home: Option<&Home>, path: &str) -> Option<Rc<DeviceStruct>> {
        let from = match home {
            Some(Home::Library(_)) => return None,
            Some(Home::User { key, .. }) => Some(key.as_str()),
            None => None,
        };
        self.devices.find_struct(from, path).cloned()
    }

    /// The struct that a path names in the current body; reports an error if there is none, or returns nothing for a broken one.
    fn named_struct(&mut self, path: &Name) -> Option<Rc<DeviceStruct>> {
        let def = self.struct_in(self.frames.last().map(|frame| &frame.func.home), &path.text);
        if def.is_none() && !self.is_alone {
            let help = "a struct of kernels is marked: `#[device] struct Name { x: Value<f32>, .. }`";
            self.errors.push_help(path.span, format!("there is no device struct `{}` here", path.text), help);
        }
        def.filter(|def| !def.is_broken)
    }

    /// `Welford { mean, m2: 0.0, ..base }`.
    pub(super) fn struct_literal(&mut self, literal: &StructLiteral, span: SourceSpan) -> Meaning {
        let before = self.errors.len();
        let def = self.named_struct(&literal.owner.path);
        let values: Vec<Arg> = literal.fields.iter().map(|(_, value)| (self.expr(value), value.span)).collect();
        let base = literal.base.as_ref().map(|base| (self.expr(base), base.span));
        let Some(def) = def else { return Meaning::Poison };
        let mut args: Vec<Option<Arg>> = vec![None; def.fields.len()];
        for ((name, _), value) in literal.fields.iter().zip(values) {
            match def.field(&name.text) {
                None => self.unknown_field(&def, name),
                Some(index) if args[index].is_some() => {
                    self.errors.push_help(name.span, format!("the field `{}` is given twice", name.text), "remove one of them");
                }
                Some(index) => {
                    self.check_visible(&def, def.fields[index].is_public, name);
                    args[index] = Some(value);
                }
            }
        }
        match &base {
            Some((meaning, span)) => match meaning.as_struct() {
                Some((of, fields)) if Rc::ptr_eq(&of.def, &def) => {
                    let rest = args.iter_mut().zip(fields).filter(|(arg, _)| arg.is_none());
                    rest.for_each(|(arg, field)| *arg = Some((field.clone(), *span)));
                }
                _ if meaning.is_poison() => return Meaning::Poison,
                _ => {
                    let found = self.describe(meaning);
                    let message = format!("the other fields come from `{}`, not from {found}", def.name.text);
                    self.errors.push_help(*span, message, format!("name them: `{}`", def.written()));
                }
            },
            None if self.errors.len() == before => {
                let missing: Vec<&str> =
                    def.fields.iter().zip(&args).filter(|(_, arg)| arg.is_none()).map(|(field, _)| field.name.text.as_str()).collect();
                if !missing.is_empty() {
                    let message = format!("`{}` lacks {}", def.name.text, listed(&missing));
                    self.errors.push_help(literal.owner.path.span, message, format!("write `{}`", def.written()));
                }
            }
            None => {}
        }
        if self.errors.len() > before {
            return Meaning::Poison;
        }
        let given = match base.as_ref().and_then(|(meaning, _)| meaning.as_struct()) {
            Some((of, _)) => of.consts.iter().cloned().map(Some).collect(),
            None => self.expected_consts(&def),
        };
        self.constructed(&def, &literal.owner, args, &given, span).unwrap_or(Meaning::Poison)
    }

    /// The constants of a struct according to the result type of the surrounding function, or the type of its `impl` block.
    fn expected_consts(&mut self, def: &Rc<DeviceStruct>) -> Vec<Option<Meaning>> {
        let Some(frame) = self.frames.last().cloned() else { return Vec::new() };
        let output = if let ParamType::Struct(owner) = &frame.func.output { Some(owner) } else { None };
        let is_same =
            |owner: &&Owner| self.struct_in(Some(&frame.func.home), &owner.path.text).is_some_and(|other| Rc::ptr_eq(&other, def));
        let Some(owner) = [output, frame.func.this.as_ref()].into_iter().flatten().find(is_same) else { return Vec::new() };
        let positions = def.constructor.generics.iter().enumerate();
        let consts = positions.filter(|(_, kind)| matches!(kind, GenericKind::Const(_)));
        consts.map(|(position, _)| self.constant_in(&frame, owner.generics.get(position)?)).collect()
    }

    /// Elaborates a call of the constructor.
    fn constructed(
        &mut self,
        def: &Rc<DeviceStruct>,
        owner: &Owner,
        args: Vec<Option<Arg>>,
        given: &[Option<Meaning>],
        span: SourceSpan,
    ) -> Option<Meaning> {
        let func = &def.constructor;
        if args.iter().flatten().any(|(meaning, _)| meaning.is_poison()) || !self.are_of_kind(func, &args) {
            return None;
        }
        let generics = self.generics_of(owner);
        let call = Call {
            name: owner.path.clone(),
            owner: None,
            types: Vec::new(),
            generics,
            args: Vec::new(),
            named: Vec::new(),
            is_method: false,
        };
        let is_named: Vec<bool> = func.generics.iter().enumerate().map(|(index, _)| call.generics.len() > index).collect();
        let frame = self.frame(&CallSite { func, call: &call, args: &args, span }, given)?;
        // Constants alone do not determine a type: they take the type of the other operand, as those in a tuple do.
        let mut open: Vec<(&str, Kind)> = Vec::new();
        for (kind, _) in func.generics.iter().zip(is_named).filter(|(_, is_named)| !is_named) {
            let GenericKind::Type(index) = kind else { continue };
            let generic = func.types[*index].name.text.as_str();
            let (mut pointees, mut values) = (Vec::new(), Vec::new());
            for (param, (meaning, _)) in func.params.iter().zip(args.iter().flatten()) {
                self.collect(&param.ty, generic, meaning, &mut pointees, &mut values);
            }
            if pointees.is_empty() && values.iter().all(Self::is_open) {
                let is_float = values.iter().any(|value| matches!(value, Meaning::Constant(Constant { kind: Kind::Float, .. })));
                open.push((generic, if is_float { Kind::Float } else { Kind::Int }));
            }
        }
        let mut fields = Vec::new();
        for (param, arg) in func.params.iter().zip(args.into_iter().flatten()) {
            let kind = match &param.ty {
                ParamType::Scalar(name) | ParamType::Value(name) => open.iter().find(|(open, _)| name.text.as_deref() == Some(*open)),
                _ => None,
            };
            fields.push(match (kind, arg) {
                (Some((_, kind)), (Meaning::Constant(constant), _)) => {
                    Meaning::Constant(Constant { expr: constant.expr_of(*kind), kind: *kind, ..constant })
                }
                (_, arg) => self.argument(&frame, &param.name.text, &param.ty, arg),
            });
        }
        if fields.iter().any(Meaning::is_poison) {
            return None;
        }
        let consts = frame.consts.into_iter().map(|(_, value)| value).collect();
        Some(Meaning::Tuple(Some(Rc::new(Instance { def: def.clone(), consts })), fields))
    }

    /// The generic arguments of a struct; for `Self` those of the `impl` block.
    fn generics_of(&self, owner: &Owner) -> Vec<Generic> {
        let this = self.frames.last().and_then(|frame| frame.func.this.as_ref()).filter(|_| owner.path.text == "Self");
        this.unwrap_or(owner).generics.clone()
    }

    /// `t.0`, `w.mean`.
    pub(super) fn field(&mut self, x: &Expr, name: &Name, span: SourceSpan) -> Meaning {
        let meaning = self.expr(x);
        self.part(&meaning, name, span).unwrap_or(Meaning::Poison)
    }

    /// An element of a tuple or a field of a struct; `None` if an error has been reported.
    fn part(&mut self, meaning: &Meaning, name: &Name, span: SourceSpan) -> Option<Meaning> {
        if let Some((of, _)) = meaning.as_struct()
            && let Some(index) = of.def.field(&name.text)
        {
            self.check_visible(&of.def, of.def.fields[index].is_public, name);
        }
        if let Some(part) = meaning.part(&name.text) {
            return Some(part.clone());
        }
        match meaning {
            Meaning::Poison => {}
            Meaning::Tuple(Some(of), _) => self.unknown_field(&of.def.clone(), name),
            Meaning::Tuple(None, list) => {
                let message = format!("there is no field `{}` in a tuple of {}", name.text, list.len());
                self.errors.push_help(span, message, "the first field is `.0`");
            }
            other => {
                let (message, help) = builtins::of_a_tensor(&name.text).unwrap_or_else(|| {
                    let help = match name.text.as_str() {
                        "T" => "the transpose is `trans(x)`",
                        _ => "only tuples and structs have fields: `t.0`, `w.mean`",
                    };
                    (format!("{} has no fields", self.describe(other)), help.to_string())
                });
                self.errors.push_help(span, message, help);
            }
        }
        None
    }

    fn unknown_field(&mut self, def: &DeviceStruct, name: &Name) {
        let names: Vec<&str> = def.fields.iter().map(|field| field.name.text.as_str()).collect();
        let help = if def.method(&name.text).is_some() {
            format!("it is a function: `w.{}(..)`", name.text)
        } else if let Some(near) = did_you_mean(&name.text, names.iter().copied()) {
            format!("did you mean `{near}`?")
        } else {
            format!("its fields are {}", listed(&names))
        };
        self.errors.push_help(name.span, format!("`{}` has no field `{}`", def.name.text, name.text), help);
    }

    /// Reports a field or a function of another crate that is not `pub`.
    fn check_visible(&mut self, def: &DeviceStruct, is_public: bool, name: &Name) {
        let krate = |home: &Home| if let Home::User { foreign, .. } = home { foreign.clone() } else { None };
        let here = self.frames.last().and_then(|frame| krate(&frame.func.home));
        let there = krate(&def.constructor.home);
        if !is_public && here != there {
            let of = there.map_or_else(String::new, |krate| format!(" of the crate `{krate}`"));
            let message = format!("`{}` of `{}` is private", name.text, def.name.text);
            self.errors.push_help(name.span, message, format!("use what is `pub` in the struct{of}"));
        }
    }

    /// The fields that a pattern names, in its order.
    pub(super) fn fields_of(&mut self, meaning: Meaning, pattern: (&Name, &[(Name, Pattern)], bool), span: SourceSpan) -> Vec<Meaning> {
        let (path, names, is_partial) = pattern;
        let nothing = vec![Meaning::Poison; names.len()];
        let Some(def) = self.named_struct(path).filter(|_| !meaning.is_poison()) else { return nothing };
        if !meaning.as_struct().is_some_and(|(of, _)| Rc::ptr_eq(&of.def, &def)) {
            let found = self.describe(&meaning);
            let help = match meaning.as_struct() {
                Some((of, _)) => format!("write `let {} = ..;`", of.def.written()),
                None => "the pattern names the struct that the value is one of".to_string(),
            };
            self.errors.push_help(span, format!("`{}` is taken apart here, but the value is {found}", def.name.text), help);
            return nothing;
        }
        let missing: Vec<&str> = def
            .fields
            .iter()
            .map(|field| field.name.text.as_str())
            .filter(|field| names.iter().all(|(name, _)| name.text != *field))
            .collect();
        let is_known = names.iter().all(|(name, _)| def.field(&name.text).is_some());
        if !is_partial && is_known && !missing.is_empty() {
            let help = "name all fields, or end the pattern with `..`";
            self.errors.push_help(span, format!("the pattern leaves out {} of `{}`", listed(&missing), def.name.text), help);
        }
        let mut parts = Vec::new();
        for (index, (name, _)) in names.iter().enumerate() {
            if names[..index].iter().any(|(earlier, _)| earlier.text == name.text) {
                self.errors.push_help(name.span, format!("the field `{}` is named twice", name.text), "remove one of them");
            }
            parts.push(self.part(&meaning, name, span).unwrap_or(Meaning::Poison));
        }
        parts
    }

    /// `w.mean = value;`.
    pub(super) fn assign_field(&mut self, variable: &Name, fields: &[Name], meaning: Meaning, span: SourceSpan) {
        let whole = self.name(&variable.text, variable.span);
        let Some(index) = self.find(&variable.text) else { return };
        let (mut old, mut written) = (whole.clone(), variable.text.clone());
        for field in fields {
            let Some(part) = self.part(&old, field, variable.span.to(field.span)) else { return };
            old = part;
            written = format!("{written}.{}", field.text);
        }
        self.check_mutable(index, variable);
        let new = self.keep_type(&written, &old, meaning, span);
        let mut target = &mut self.variables[index].meaning;
        for field in fields {
            let Some(part) = target.part_mut(&field.text) else { return };
            target = part;
        }
        *target = new;
    }

    /// `w.combine(other)`; `None` if the call is a builtin's.
    pub(super) fn method(&mut self, call: &Call, span: SourceSpan) -> Option<Meaning> {
        let name = call.name.text.as_str();
        let receiver = &call.args[0];
        let is_builtin = builtins::find(name).is_some_and(|row| row.method) || matches!(name, "load" | "store");
        if is_builtin && self.struct_of(receiver).is_none_or(|def| def.method(name).is_none()) {
            return None;
        }
        let is_value = !matches!(receiver.kind, ExprKind::Shape(_) | ExprKind::Text(_) | ExprKind::Closure(..)) && !self.is_type(receiver);
        let meaning = if is_value { self.expr(receiver) } else { Meaning::UNIT };
        if let Some(def) = meaning.as_struct().map(|(of, _)| of.def.clone()) {
            if let Some(func) = def.method(name).cloned() {
                return Some(self.call_of_struct(&def, &func, call, Some(meaning), span));
            }
            self.check_rest(call);
            self.unknown_method(&def, call);
            return Some(Meaning::Poison);
        }
        self.check_rest(call);
        if !meaning.is_poison() {
            let (message, help) = match builtins::find(name) {
                Some(row) => (format!("`{name}` is not a method"), format!("write `{}`", row.usage)),
                None => builtins::unknown(name, true),
            };
            self.errors.push_help(call.name.span, message, help);
        }
        Some(Meaning::Poison)
    }

    /// `Welford::new(x)`.
    pub(super) fn associated(&mut self, owner: &Owner, call: &Call, span: SourceSpan) -> Meaning {
        let Some(def) = self.named_struct(&owner.path) else {
            self.check_arguments(call);
            return Meaning::Poison;
        };
        match def.method(&call.name.text).cloned() {
            Some(func) => self.call_of_struct(&def, &func, call, None, span),
            None => {
                self.check_arguments(call);
                self.unknown_method(&def, call);
                Meaning::Poison
            }
        }
    }

    /// A call of a struct's function. Its generics are those of the struct, given after the struct's name, and its own.
    fn call_of_struct(
        &mut self,
        def: &DeviceStruct,
        func: &Rc<DeviceFn>,
        call: &Call,
        receiver: Option<Meaning>,
        span: SourceSpan,
    ) -> Meaning {
        self.check_visible(def, func.is_public, &call.name);
        if receiver.is_some() && func.params.first().is_none_or(|param| param.name.text != "self") {
            self.check_rest(call);
            let help = format!("write `{}`", super::inline::usage(func));
            self.errors.push_help(call.name.span, format!("`{}` has no `self`: it is not a method", func.name.text), help);
            return Meaning::Poison;
        }
        let of_struct = call.owner.as_ref().map_or_else(Vec::new, |owner| self.generics_of(owner));
        let of_block = func.this.as_ref().map_or(&[][..], |this| &this.generics);
        let mut own = call.generics.iter().cloned();
        let mut generics: Vec<_> = func
            .generics
            .iter()
            .map(|kind| {
                let name = func.generic_name(*kind);
                let open = || Generic::open(call.name.span);
                match of_block.iter().position(|generic| generic.name() == Some(name)) {
                    Some(index) => of_struct.get(index).cloned().unwrap_or_else(open),
                    None => own.next().unwrap_or_else(open),
                }
            })
            .collect();
        generics.extend(own);
        let call = Call { generics, ..call.clone() };
        self.call_with(func, &call, receiver, span)
    }

    fn unknown_method(&mut self, def: &DeviceStruct, call: &Call) {
        let name = call.name.text.as_str();
        let names: Vec<&str> = def.methods.iter().map(|method| method.name.text.as_str()).collect();
        let help = if def.field(name).is_some() {
            format!("it is a field: `w.{name}`")
        } else if let Some(near) = did_you_mean(name, names.iter().copied()) {
            format!("did you mean `{near}`?")
        } else if names.is_empty() {
            "its functions stand in an `impl` block, in one `#[device] mod` with the struct".to_string()
        } else {
            format!("its functions are {}", listed(&names))
        };
        self.errors.push_help(call.name.span, format!("`{}` has no function `{name}`", def.name.text), help);
    }

    /// Reports the errors in the arguments after the receiver.
    fn check_rest(&mut self, call: &Call) {
        let args = call.args[1..].to_vec();
        self.check_arguments(&Call { args, ..call.clone() });
    }

    /// The struct type of an expression, as far as its syntax determines it; the expression is not elaborated.
    fn struct_of(&mut self, expr: &Expr) -> Option<Rc<DeviceStruct>> {
        let home = self.frames.last().map(|frame| frame.func.home.clone());
        let given = |cx: &Self, func: &DeviceFn| match &func.output {
            ParamType::Struct(owner) => cx.struct_in(Some(&func.home), &owner.path.text),
            _ => None,
        };
        match &expr.kind {
            ExprKind::Name(_) | ExprKind::Field(..) => Some(self.known_part(expr)?.as_struct()?.0.def.clone()),
            ExprKind::Struct(literal) => self.struct_in(home.as_ref(), &literal.owner.path.text),
            ExprKind::Call(call) => {
                let func = match &call.owner {
                    Some(owner) => self.struct_in(home.as_ref(), &owner.path.text)?.method(&call.name.text)?.clone(),
                    None if call.is_method => self.struct_of(&call.args[0])?.method(&call.name.text)?.clone(),
                    None => self.device_function(&call.name.text)?,
                };
                given(self, &func)
            }
            _ => None,
        }
    }

    /// The meaning of a variable or a part of one.
    fn known_part(&self, expr: &Expr) -> Option<&Meaning> {
        match &expr.kind {
            ExprKind::Name(name) => Some(&self.variables[self.find(name)?].meaning),
            ExprKind::Field(x, name) => self.known_part(x)?.part(&name.text),
            _ => None,
        }
    }

    /// A frame of the struct's constructor, with the generics that a function's signature gives the struct; `None` if it is another struct.
    fn struct_frame(&mut self, frame: &Frame, owner: &Owner, (of, fields): (&Rc<Instance>, &[Meaning])) -> Option<Frame> {
        let def = self.struct_in(Some(&frame.func.home), &owner.path.text).filter(|def| Rc::ptr_eq(def, &of.def))?;
        let func = def.constructor.clone();
        let (mut types, mut consts) = (Vec::new(), Vec::new());
        for (position, kind) in func.generics.iter().enumerate() {
            let named = owner.generics.get(position);
            let name = func.generic_name(*kind).to_string();
            match kind {
                GenericKind::Type(_) => {
                    let given = match named {
                        Some(Generic::Type(ty)) => self.elem_in(frame, ty),
                        _ => None,
                    };
                    types.extend(given.or_else(|| self.elem_of_generic(&func, &name, fields)).map(|elem| (name, elem)));
                }
                GenericKind::Const(index) => {
                    let own = of.consts[*index].clone();
                    let given = named.and_then(|named| self.constant_in(frame, named));
                    if given.is_some_and(|given| given != own) {
                        return None;
                    }
                    consts.push((name, own));
                }
            }
        }
        Some(Frame { func, types, consts, scopes: self.scopes.len() })
    }

    /// Converts a struct to the type in a signature; `None` if its fields differ.
    pub(super) fn struct_as(
        &mut self,
        frame: &Frame,
        owner: &Owner,
        (of, fields): (&Rc<Instance>, &[Meaning]),
        span: SourceSpan,
    ) -> Option<Meaning> {
        let inner = self.struct_frame(frame, owner, (of, fields))?;
        let before = self.errors.len();
        let meaning = self.fields_in(&inner, of, fields, span);
        // One error, not one error per field.
        let is_another = self.errors.len() > before;
        self.errors.truncate(before);
        (!is_another).then_some(meaning)
    }

    fn fields_in(&mut self, inner: &Frame, of: &Rc<Instance>, fields: &[Meaning], span: SourceSpan) -> Meaning {
        let params = inner.func.clone();
        let fields = params.params.iter().zip(fields);
        let fields: Vec<Meaning> =
            fields.map(|(param, field)| self.argument(inner, &param.name.text, &param.ty, (field.clone(), span))).collect();
        if fields.iter().any(Meaning::is_poison) { Meaning::Poison } else { Meaning::Tuple(Some(of.clone()), fields) }
    }

    /// A constant in a function's signature.
    fn constant_in(&mut self, frame: &Frame, generic: &Generic) -> Option<Meaning> {
        self.frames.push(Frame { scopes: self.scopes.len(), ..frame.clone() });
        let value = match generic {
            Generic::Type(ty) => frame.consts.iter().find(|(name, _)| ty.text.as_deref() == Some(name)).map(|(_, value)| value.clone()),
            Generic::Const(expr) => Some(self.expr(expr)).filter(|meaning| !meaning.is_poison()),
        };
        self.frames.pop();
        value
    }

    fn elem_of_generic(&self, func: &DeviceFn, generic: &str, fields: &[Meaning]) -> Option<Elem> {
        let (mut pointees, mut values) = (Vec::new(), Vec::new());
        for (param, field) in func.params.iter().zip(fields) {
            self.collect(&param.ty, generic, field, &mut pointees, &mut values);
        }
        match pointees.first() {
            Some(elem) => Some(elem.clone()),
            None if values.is_empty() => None,
            None => self.common_elem(&values.iter().collect::<Vec<_>>()).ok(),
        }
    }

    /// A struct type, as a phrase for messages: `Welford<f32, 64>`.
    pub(super) fn describe_struct(&self, of: &Instance, fields: &[Meaning]) -> String {
        let func = &of.def.constructor;
        let generics: Vec<String> = func
            .generics
            .iter()
            .map(|kind| match kind {
                GenericKind::Type(index) => {
                    let elem = self.elem_of_generic(func, &func.types[*index].name.text, fields);
                    elem.map_or_else(|| "_".to_string(), |elem| elem.to_string())
                }
                GenericKind::Const(index) => match &of.consts[*index] {
                    Meaning::Constant(constant) => super::meaning::shown(&constant.expr),
                    _ => "_".to_string(),
                },
            })
            .collect();
        if generics.is_empty() { of.def.name.text.clone() } else { format!("{}<{}>", of.def.name.text, generics.join(", ")) }
    }
}

/// Formats a list: `a`, `b` and `c`, each in backticks.
fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => "none".to_string(),
    }
}
