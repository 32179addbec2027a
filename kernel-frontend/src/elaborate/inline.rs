//! Calls of functions written in the language: device functions and library functions.
//!
//! A call is inlined: its body is elaborated at the call, in a scope that contains only the parameters. Types are those of the arguments, and
//! constant arguments stay constant in the body.

use std::rc::Rc;

use super::Elaborator;
use super::arguments::{as_method, option_help};
use super::generics::CallSite;
use super::meaning::{Constant, FunctionValue, Meaning};
use super::scope::{Origin, Variable};
use crate::ast::{Call, Expr, ExprKind, Generic, Name, Pattern, TypeName};
use crate::builtins;
use crate::device::{DeviceFn, Home, OptionDefault};
use crate::library_files;
use crate::param_type::ParamType;
use crate::span::{Shown, SourceSpan};
use kernel_lang::ir::Elem;
use kernel_lang::location::Loc;

/// Maximum number of calls of functions and closures in a kernel, nested calls included.
const MOST_CALLS: usize = 10_000;

/// A function whose body is being elaborated, with its generic arguments in this call.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) func: Rc<DeviceFn>,
    pub(super) types: Vec<(String, Elem)>,
    pub(super) consts: Vec<(String, Meaning)>,
    /// The number of open scopes at the call; their variables are not visible in the body.
    pub(super) scopes: usize,
}

/// An argument of a call: its meaning and its span.
pub(super) type Arg = (Meaning, SourceSpan);

impl Elaborator<'_> {
    /// The function that a name refers to in the current body.
    pub(super) fn device_function(&mut self, name: &str) -> Option<Rc<DeviceFn>> {
        match self.frames.last().map(|frame| frame.func.home.clone()) {
            Some(Home::Library(family)) => self.library_function(family, name),
            Some(Home::User { key, .. }) => self.devices.find(Some(&key), name).cloned(),
            None => self.devices.find(None, name).cloned(),
        }
    }

    pub(super) fn library_function(&mut self, family: &'static str, name: &str) -> Option<Rc<DeviceFn>> {
        self.library.entry((family, name.to_string())).or_insert_with(|| library_files::function(family, name)).clone()
    }

    /// Elaborates a call of a function written in the language.
    pub(super) fn call_function(&mut self, func: &Rc<DeviceFn>, call: &Call, span: SourceSpan) -> Meaning {
        self.call_with(func, call, None, span)
    }

    /// Elaborates a call whose receiver, if it is a method call, has been elaborated.
    pub(super) fn call_with(&mut self, func: &Rc<DeviceFn>, call: &Call, receiver: Option<Meaning>, span: SourceSpan) -> Meaning {
        let name = func.name.text.as_str();
        if let Some(first) = self.frames.iter().position(|frame| Rc::ptr_eq(&frame.func, func)) {
            let names = self.frames[first..].iter().map(|frame| frame.func.name.text.as_str()).chain([name]);
            let chain = names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" calls ");
            self.errors.push_help(
                call.name.span,
                format!("`{name}` calls itself: {chain}"),
                "a device function becomes a part of its caller, so that it cannot recurse; write a loop",
            );
            return Meaning::Poison;
        }
        if func.is_broken {
            return Meaning::Poison;
        }
        if !self.counts_call(call) {
            return Meaning::Poison;
        }
        let before = self.errors.len();
        let Some(args) = self.arguments(func, call, receiver) else { return Meaning::Poison };
        if self.errors.len() > before || args.iter().any(|arg| arg.as_ref().is_some_and(|(meaning, _)| meaning.is_poison())) {
            return Meaning::Poison;
        }
        if !self.are_of_kind(func, &args) || self.is_library(func) && self.shapes_differ(func, call, &args, span) {
            return Meaning::Poison;
        }
        let Some(frame) = self.frame(&CallSite { func, call, args: &args, span }, &[]) else { return Meaning::Poison };
        let (mut values, mut spans) = (Vec::new(), Vec::new());
        for (param, arg) in func.params.iter().zip(args) {
            spans.push(arg.as_ref().map(|(_, span)| self.errors.seen(*span).0));
            values.push(arg.map(|arg| self.argument(&frame, param.name.text.as_str(), &param.ty, arg)));
        }
        if self.errors.len() > before {
            return Meaning::Poison;
        }
        self.enter_function(frame, span);
        for ((param, value), argument) in func.params.iter().zip(values).zip(spans) {
            let (meaning, origin) = match (value, &param.option) {
                (Some(value), _) => (value, Origin::Parameter),
                (None, Some(OptionDefault::Value(value))) => (self.expr(value), Origin::Parameter),
                (None, _) => (Meaning::Poison, Origin::LeftOut),
            };
            let (name, mutable) = (param.name.text.clone(), param.mutable && origin == Origin::Parameter);
            self.declare(Variable { name, meaning, mutable, origin, argument });
        }
        let meaning = self.function_body(func);
        self.leave_function();
        if self.is_library(func) {
            // Library bodies are correct, so later errors are consequences of the first one.
            self.errors.truncate(before + 1);
        }
        meaning
    }

    /// Elaborates the body of a function whose parameters are declared.
    pub(super) fn function_body(&mut self, func: &DeviceFn) -> Meaning {
        let elem = match &func.output {
            ParamType::Scalar(name) | ParamType::Value(name) => self.elem(name),
            _ => None,
        };
        let meaning = self.block_as(&func.body, elem.as_ref());
        let end = func.body.value.as_ref().map_or(SourceSpan::at(func.body.span.end), |value| value.span);
        self.output("the function", &meaning, &func.output, end)
    }

    /// Counts a call and returns whether it is within the limit. Without a limit, functions that each call another one twice would grow
    /// exponentially with depth.
    fn counts_call(&mut self, call: &Call) -> bool {
        self.calls += 1;
        if self.calls == MOST_CALLS + 1 {
            let message = format!("this kernel has more than {MOST_CALLS} calls of functions, each of which becomes a part of it");
            self.errors.push_help(
                call.name.span,
                message,
                "call fewer of them, in a loop that is not written out, or make several kernels of it",
            );
        }
        self.calls <= MOST_CALLS
    }

    pub(super) fn is_library(&self, func: &DeviceFn) -> bool {
        matches!(func.home, Home::Library(_))
    }

    /// Reports arguments whose shapes do not match: library builtins are elementwise.
    fn shapes_differ(&mut self, func: &DeviceFn, call: &Call, args: &[Option<Arg>], span: SourceSpan) -> bool {
        let values = func.params.iter().zip(args).filter(|(param, _)| param.option.is_none()).filter_map(|(_, arg)| arg.as_ref());
        let values: Vec<(&Meaning, &Expr)> = values.map(|(meaning, _)| meaning).zip(&call.args).collect();
        self.like_shape(&func.name.text, &values, span).is_none()
    }

    fn enter_function(&mut self, frame: Frame, call: SourceSpan) {
        let name = &frame.func.name.text;
        match &frame.func.home {
            Home::Library(_) => {
                let remark = format!("inside `{name}`");
                self.errors.enter(call, remark, Shown::Call);
            }
            Home::User { foreign: Some(krate), .. } => {
                let within = format!("inside `{name}` of the crate `{krate}`");
                self.errors.enter(call, format!("`{name}` is called here"), Shown::CallAnd(within));
            }
            Home::User { file, .. } => {
                let known = self.func.files.iter().position(|known| **known == **file);
                let index = known.unwrap_or_else(|| {
                    self.func.files.push(file.as_str().into());
                    self.func.files.len() - 1
                });
                let remark = format!("`{name}` is called here");
                self.errors.enter(call, remark, Shown::Body(u16::try_from(index).unwrap_or(0)));
            }
        }
        self.frames.push(frame);
        self.scopes.push(Vec::new());
    }

    fn leave_function(&mut self) {
        self.scopes.pop();
        self.frames.pop();
        self.errors.leave();
    }

    /// The arguments in the order of the parameters; `None` for an omitted option.
    fn arguments(&mut self, func: &DeviceFn, call: &Call, receiver: Option<Meaning>) -> Option<Vec<Option<Arg>>> {
        let name = func.name.text.as_str();
        let wanted = func.params.iter().filter(|param| param.option.is_none()).count();
        let options: Vec<&str> = func.params.iter().filter(|param| param.option.is_some()).map(|param| param.name.text.as_str()).collect();
        let types: Vec<&ParamType> = func.params.iter().filter(|param| param.option.is_none()).map(|param| &param.ty).collect();
        let before = self.errors.len();
        let computed = usize::from(receiver.is_some());
        let mut given: Vec<Arg> = receiver.into_iter().zip(&call.args).map(|(meaning, arg)| (meaning, arg.span)).collect();
        for (index, arg) in call.args.iter().enumerate().skip(computed) {
            given.push((self.value_argument(arg, types.get(index).copied()), arg.span));
        }
        let mut named: Vec<(&str, Arg)> = Vec::new();
        for (option, value) in &call.named {
            if options.contains(&option.text.as_str()) {
                // An omitted option that is passed on is omitted there too.
                if self.is_left_out(value) {
                    continue;
                }
                let ty = func.params.iter().find(|param| param.name.text == option.text).map(|param| &param.ty);
                named.push((option.text.as_str(), (self.value_argument(value, ty), value.span)));
                continue;
            }
            let help = option_help(option, &options, &self.usage_of(func, call));
            self.errors.push_help(option.span, format!("`{name}` has no option `{}`", option.text), help);
        }
        if self.errors.len() > before {
            return None;
        }
        if given.len() != wanted {
            let usage = self.usage_of(func, call);
            let help = if given.len() > wanted && !options.is_empty() {
                format!("options have names: `{usage}`")
            } else {
                format!("write `{usage}`")
            };
            self.wrong_count(&format!("`{name}`"), wanted, call, help);
            return None;
        }
        let mut given = given.into_iter();
        let list = func.params.iter().map(|param| match param.option {
            None => given.next(),
            Some(_) => named.iter().find(|(name, _)| *name == param.name.text).map(|(_, arg)| arg.clone()),
        });
        Some(list.collect())
    }

    /// The usage of the function, as a function or a method, as the user wrote the call.
    fn usage_of(&self, func: &DeviceFn, call: &Call) -> String {
        let usage = match builtins::find(&func.name.text).filter(|_| self.is_library(func)) {
            Some(row) => row.usage.to_string(),
            None => usage(func),
        };
        if call.is_method { as_method(&usage) } else { usage }
    }

    fn value_argument(&mut self, arg: &Expr, ty: Option<&ParamType>) -> Meaning {
        let (params, body) = match &arg.kind {
            ExprKind::Closure(params, body) => (params.clone(), (**body).clone()),
            _ => return self.expr(arg),
        };
        let signature = match ty {
            Some(ParamType::Function(takes, gives)) => (takes.clone(), (**gives).clone()),
            // The signature does not declare a closure.
            _ => (Vec::new(), ParamType::Wrong),
        };
        self.function_value(params, body, Some(signature))
    }

    /// A closure that can use all names visible at this point.
    pub(super) fn function_value(&self, params: Vec<Pattern>, body: Expr, signature: Option<(Vec<ParamType>, ParamType)>) -> Meaning {
        let (frames, scopes, visible) = (self.frames.len(), self.scopes.len(), self.scopes.last().map_or(0, Vec::len));
        Meaning::Function(Rc::new(FunctionValue { params, body, signature, frames, scopes, visible }))
    }

    /// Calls a closure parameter or a named closure. Its body can use the names visible at its definition.
    pub(super) fn call_closure(&mut self, closure: &Rc<FunctionValue>, call: &Call) -> Meaning {
        if !self.counts_call(call) {
            return Meaning::Poison;
        }
        let name = call.name.text.as_str();
        let args: Vec<Arg> = call.args.iter().map(|arg| (self.expr(arg), arg.span)).collect();
        let takes = closure.signature.as_ref().map_or(closure.params.len(), |(takes, _)| takes.len());
        if args.len() != takes || !call.named.is_empty() || !call.generics.is_empty() {
            let given = if args.len() == takes { String::new() } else { format!(", not {}", args.len()) };
            let message = format!("`{name}` takes {} and nothing else{given}", count(takes));
            let help = match closure.signature {
                Some(_) => "call it as its type says: `f: impl Fn(A, B) -> C`",
                None => "a closure is called with a value for each of its parameters; options and generics are for a `#[device] fn`",
            };
            self.errors.push_help(call.name.span, message, help);
            return Meaning::Poison;
        }
        let values: Vec<Meaning> = match (&closure.signature, self.frames.last().cloned()) {
            (Some((takes, _)), Some(frame)) => takes.iter().zip(args).map(|(ty, arg)| self.argument(&frame, name, ty, arg)).collect(),
            _ => args.into_iter().map(|(meaning, _)| meaning).collect(),
        };
        if values.iter().any(Meaning::is_poison) {
            return Meaning::Poison;
        }
        let (frames, scopes) = (self.frames.split_off(closure.frames), self.scopes.split_off(closure.scopes));
        // The closure cannot use variables declared after it.
        let later = self.scopes.last_mut().map_or_else(Vec::new, |scope| scope.split_off(closure.visible));
        let outside = self.errors.step_out(closure.frames);
        let before = self.meanings();
        let meaning = self.scoped(|cx| {
            for (param, value) in closure.params.iter().zip(values) {
                cx.bind_meaning(param, value);
            }
            cx.expr(&closure.body)
        });
        self.check_assignments(&before, closure.body.span);
        self.restore(&before);
        if let Some(scope) = self.scopes.last_mut() {
            scope.extend(later);
        }
        self.frames.extend(frames);
        self.scopes.extend(scopes);
        // Errors in the result belong to the closure and are reported at its span.
        let meaning = match &closure.signature {
            Some((_, gives)) => self.output("the closure", &meaning, gives, closure.body.span),
            None => meaning,
        };
        self.errors.step_in(outside);
        meaning
    }

    /// The element type for a name in a function's signature.
    pub(super) fn elem_in(&mut self, frame: &Frame, name: &TypeName) -> Option<Elem> {
        let text = name.text.as_deref()?;
        if let Some((_, elem)) = frame.types.iter().find(|(known, _)| known == text) {
            return Some(elem.clone());
        }
        if frame.func.types.iter().any(|generic| generic.name.text == text) {
            return None;
        }
        self.elem(name)
    }

    /// Converts an argument to a value of the parameter's type.
    pub(super) fn argument(&mut self, frame: &Frame, param: &str, ty: &ParamType, (meaning, span): Arg) -> Meaning {
        let func = frame.func.name.text.as_str();
        match (ty, &meaning) {
            (ParamType::Wrong, _) | (_, Meaning::Poison) => Meaning::Poison,
            (ParamType::Scalar(name) | ParamType::Value(name), Meaning::Value(_) | Meaning::Constant(_)) => {
                let Some(elem) = self.elem_in(frame, name) else { return Meaning::Poison };
                if matches!(ty, ParamType::Scalar(_)) && !self.shape_of(&meaning).is_empty() {
                    let found = self.describe(&meaning);
                    let message = format!("`{func}` takes one `{elem}` for `{param}`, not {found}");
                    let what = if frame.func.is_constructor() { "a field that holds" } else { "a parameter that takes" };
                    let help = format!("{what} scalars and tiles is declared `{param}: Value<{}>`", name.text.as_deref().unwrap_or("T"));
                    self.errors.push_help(span, message, help);
                    return Meaning::Poison;
                }
                self.converted(&meaning, &elem, span).unwrap_or_else(|found| {
                    let message = format!("`{func}` takes `{elem}` for `{param}`, not {found}");
                    self.errors.push_help(span, message, format!("cast it: `(..) as {elem}`"));
                    Meaning::Poison
                })
            }
            (ParamType::Pointer(name, mutable), Meaning::Pointer { base, .. }) => {
                let Some(elem) = self.elem_in(frame, name) else { return Meaning::Poison };
                let kernel_lang::ir::Type::Pointer { elem: own, mutable: own_mutable } = self.func.ty(*base).clone() else {
                    return meaning;
                };
                if own != elem {
                    let found = self.describe(&meaning);
                    let message = format!("`{func}` takes a pointer to `{elem}` for `{param}`, not {found}");
                    self.errors.push_help(span, message, "pointers are not converted; what is loaded is: `load(x + i) as f32`");
                    return Meaning::Poison;
                }
                if *mutable && !own_mutable {
                    let found = self.describe(&meaning);
                    let message = format!("`{func}` writes through `{param}`, and this is {found}");
                    self.errors.push_help(span, message, "declare the kernel's parameter as `PtrMut`");
                    return Meaning::Poison;
                }
                meaning
            }
            (ParamType::View(name, rank, mutable), Meaning::View(view)) if view.extents.len() == *rank => {
                let Some(elem) = self.elem_in(frame, name) else { return Meaning::Poison };
                let kernel_lang::ir::Type::Pointer { elem: own, mutable: own_mutable } = self.func.ty(view.base).clone() else {
                    return meaning;
                };
                if own != elem || *mutable && !own_mutable {
                    self.wrong_kind(&frame.func, param, ty, &(meaning, span));
                    return Meaning::Poison;
                }
                meaning
            }
            (ParamType::Function(takes, gives), Meaning::Function(closure)) => {
                if takes.len() != closure.params.len() {
                    let message =
                        format!("`{func}` calls `{param}` with {}, and this closure takes {}", count(takes.len()), closure.params.len());
                    self.errors.push_help(span, message, "a closure has a name for each argument: `|a, b| a + b`");
                    return Meaning::Poison;
                }
                let FunctionValue { params, body, frames, scopes, visible, .. } = &**closure;
                let (params, body, signature) = (params.clone(), body.clone(), Some((takes.clone(), (**gives).clone())));
                let (frames, scopes, visible) = (*frames, *scopes, *visible);
                Meaning::Function(Rc::new(FunctionValue { params, body, signature, frames, scopes, visible }))
            }
            (ParamType::Tuple(types), Meaning::Tuple(None, parts)) if types.len() == parts.len() => {
                let parts = types.iter().zip(parts).map(|(ty, part)| self.argument(frame, param, ty, (part.clone(), span)));
                Meaning::Tuple(None, parts.collect())
            }
            (ParamType::Struct(owner), Meaning::Tuple(Some(of), fields)) => {
                self.struct_as(frame, owner, (of, fields), span).unwrap_or_else(|| {
                    self.wrong_kind(&frame.func, param, ty, &(meaning.clone(), span));
                    Meaning::Poison
                })
            }
            _ => {
                self.wrong_kind(&frame.func, param, ty, &(meaning, span));
                Meaning::Poison
            }
        }
    }

    /// Checks that arguments have the kinds that the parameters take, regardless of element types.
    pub(super) fn are_of_kind(&mut self, func: &DeviceFn, args: &[Option<Arg>]) -> bool {
        let mut reported: Vec<Loc> = Vec::new();
        for (param, arg) in func.params.iter().zip(args) {
            if let Some(arg) = arg.as_ref().filter(|(meaning, _)| !self.is_of_kind(&func.home, &param.ty, meaning)) {
                // The arguments of a function that is passed to `reduce` share one span.
                if !reported.contains(&arg.1.loc()) {
                    self.wrong_kind(func, param.name.text.as_str(), &param.ty, arg);
                }
                reported.push(arg.1.loc());
            }
        }
        reported.is_empty()
    }

    /// Does a parameter of the type take an argument of this kind, regardless of element types?
    fn is_of_kind(&self, home: &Home, ty: &ParamType, meaning: &Meaning) -> bool {
        match (ty, meaning) {
            (ParamType::Wrong, _) | (_, Meaning::Poison) => true,
            (ParamType::Scalar(_) | ParamType::Value(_), Meaning::Value(_) | Meaning::Constant(_)) => true,
            (ParamType::Pointer(..), Meaning::Pointer { .. }) | (ParamType::Function(..), Meaning::Function(_)) => true,
            (ParamType::View(_, rank, _), Meaning::View(view)) => view.extents.len() == *rank,
            (ParamType::Tuple(types), Meaning::Tuple(None, parts)) => types.len() == parts.len(),
            (ParamType::Struct(owner), Meaning::Tuple(Some(of), _)) => {
                self.struct_in(Some(home), &owner.path.text).is_some_and(|def| Rc::ptr_eq(&def, &of.def))
            }
            _ => false,
        }
    }

    /// Reports an argument of the wrong kind, regardless of its element type.
    fn wrong_kind(&mut self, func: &DeviceFn, param: &str, ty: &ParamType, (meaning, span): &Arg) {
        if self.is_library(func) && matches!(ty, ParamType::Value(_)) {
            // The same message as for any other builtin.
            self.value(meaning, *span);
            return;
        }
        let found = self.describe(meaning);
        let message = format!("`{}` takes {} for `{param}`, not {found}", func.name.text, kind(ty));
        let help = match (meaning, ty) {
            (Meaning::Pointer { .. }, ParamType::Scalar(_) | ParamType::Value(_)) => "read the elements first: `load(x + offsets)`",
            (_, ParamType::Function(..)) => "give a closure: `|x| f(x)`",
            (_, ParamType::View(..)) => "a view is a parameter of the kernel, or `view(x, [m, n], [n, 1])`",
            (_, ParamType::Pointer(..)) => "a pointer is a parameter of the kernel, `x`, or `x + offsets`",
            _ if func.is_constructor() => "give what the struct's definition says",
            _ => "give what the function's signature says",
        };
        self.errors.push_help(*span, message, help);
    }

    /// Converts a scalar, a tile or a constant to that element type; `Err` has a description of the meaning if this needs `as`.
    fn converted(&mut self, meaning: &Meaning, elem: &Elem, span: SourceSpan) -> Result<Meaning, String> {
        match meaning {
            Meaning::Constant(constant) if constant.elem.is_none() => Ok(self.typed(constant.clone(), elem.clone(), span)),
            Meaning::Constant(Constant { elem: Some(own), .. }) if own == elem => Ok(meaning.clone()),
            _ => match self.with_elem(meaning, elem, span) {
                Ok(value) => Ok(value.into()),
                Err(()) => Err(self.describe(meaning)),
            },
        }
    }

    /// Converts the result of a function to the type in its signature.
    fn output(&mut self, what: &str, meaning: &Meaning, ty: &ParamType, span: SourceSpan) -> Meaning {
        match (ty, meaning) {
            (ParamType::Wrong, _) | (_, Meaning::Poison) => Meaning::Poison,
            (ParamType::Scalar(name) | ParamType::Value(name), Meaning::Value(_) | Meaning::Constant(_)) => {
                let Some(elem) = self.elem(name) else { return Meaning::Poison };
                if matches!(ty, ParamType::Scalar(_)) && !self.shape_of(meaning).is_empty() {
                    let found = self.describe(meaning);
                    let written = name.text.as_deref().unwrap_or("T");
                    let help = format!("a function that gives a tile is declared `-> Value<{written}>`");
                    self.errors.push_help(span, format!("one `{elem}` is expected here, not {found}"), help);
                    return Meaning::Poison;
                }
                self.converted(meaning, &elem, span).unwrap_or_else(|found| {
                    let message = format!("{what} gives {found}, and its signature says `{elem}`");
                    self.errors.push_help(span, message, format!("cast it: `(..) as {elem}`"));
                    Meaning::Poison
                })
            }
            (ParamType::Tuple(types), Meaning::Tuple(None, parts)) if types.len() == parts.len() => {
                Meaning::Tuple(None, types.iter().zip(parts).map(|(ty, part)| self.output(what, part, ty, span)).collect())
            }
            (ParamType::Struct(owner), Meaning::Tuple(Some(of), fields))
                if let Some(frame) = self.frames.last().cloned()
                    && let Some(given) = self.struct_as(&frame, owner, (of, fields), span) =>
            {
                given
            }
            (ParamType::Pointer(..), Meaning::Pointer { .. }) => meaning.clone(),
            (ParamType::View(_, rank, _), Meaning::View(view)) if view.extents.len() == *rank => meaning.clone(),
            // A value that is not part of the signature is dropped, as in a statement.
            (ParamType::Tuple(types), _) if types.is_empty() => Meaning::UNIT,
            _ => {
                let found = self.describe(meaning);
                let help = if *meaning == Meaning::UNIT {
                    "the last line without a semicolon is what the function gives"
                } else {
                    "give what the signature says, or change the signature"
                };
                self.errors.push_help(span, format!("{what} gives {found}, and its signature says {}", kind(ty)), help);
                Meaning::Poison
            }
        }
    }
}

/// The usage of the function.
pub(super) fn usage(func: &DeviceFn) -> String {
    let is_inferred = |name: &Name| func.params.iter().any(|param| mentions(&param.ty, &name.text));
    let types = func.types.iter().map(|generic| &generic.name);
    let is_told = types.chain(func.consts.iter().map(|generic| &generic.name)).all(is_inferred);
    let named = |generics: Vec<&str>| match generics.is_empty() || is_told {
        true => String::new(),
        false => format!("::<{}>", generics.join(", ")),
    };
    let of_block: Vec<&str> = func.this.iter().flat_map(|this| &this.generics).filter_map(Generic::name).collect();
    let (of_struct, own) = func.generics.iter().map(|kind| func.generic_name(*kind)).partition(|name| of_block.contains(name));
    let generics = named(own);
    let params = func.params.iter().map(|param| match param.option {
        None => param.name.text.clone(),
        Some(_) => format!("{} = ..", param.name.text),
    });
    let (name, params) = (&func.name.text, params.collect::<Vec<_>>());
    match &func.this {
        // The parameters of a constructor are the fields of the struct.
        None if func.is_constructor() => format!("{name}{generics} {{ {} }}", params.join(", ")),
        None => format!("{name}{generics}({})", params.join(", ")),
        Some(_) if params.first().is_some_and(|first| first == "self") => format!("w.{name}{generics}({})", params[1..].join(", ")),
        Some(this) => format!("{}{}::{name}{generics}({})", this.path.text, named(of_struct), params.join(", ")),
    }
}

pub(super) fn mentions(ty: &ParamType, generic: &str) -> bool {
    match ty {
        ParamType::Wrong | ParamType::Function(..) => false,
        ParamType::Scalar(name) | ParamType::Value(name) | ParamType::Pointer(name, _) | ParamType::View(name, ..) => {
            name.text.as_deref() == Some(generic)
        }
        ParamType::Struct(owner) => owner.generics.iter().any(|named| named.name() == Some(generic)),
        ParamType::Tuple(list) => list.iter().any(|ty| mentions(ty, generic)),
    }
}

/// A type, as a phrase for messages.
fn kind(ty: &ParamType) -> String {
    let name = |name: &TypeName| name.text.clone().unwrap_or_default();
    match ty {
        ParamType::Wrong => "something else".to_string(),
        ParamType::Scalar(elem) => format!("`{}`", name(elem)),
        ParamType::Value(elem) => format!("`Value<{}>`", name(elem)),
        ParamType::Pointer(elem, false) => format!("`Ptr<{}>`", name(elem)),
        ParamType::Pointer(elem, true) => format!("`PtrMut<{}>`", name(elem)),
        ParamType::View(elem, rank, mutable) => format!("`View{}<{}, {rank}>`", if *mutable { "Mut" } else { "" }, name(elem)),
        ParamType::Struct(owner) => {
            let generics: Vec<String> = owner.generics.iter().map(describe_generic).collect();
            let generics = if generics.is_empty() { String::new() } else { format!("<{}>", generics.join(", ")) };
            format!("`{}{generics}`", owner.path.text)
        }
        ParamType::Function(takes, _) => format!("a closure of {}", count(takes.len())),
        ParamType::Tuple(list) if list.is_empty() => "`()`".to_string(),
        ParamType::Tuple(list) => format!("a tuple of {}", list.len()),
    }
}

fn describe_generic(generic: &Generic) -> String {
    match generic {
        Generic::Type(ty) => ty.text.clone().unwrap_or_default(),
        Generic::Const(expr) => super::operator::written(expr),
    }
}

fn count(arguments: usize) -> String {
    if arguments == 1 { "1 argument".to_string() } else { format!("{arguments} arguments") }
}
