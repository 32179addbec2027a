//! Calls of functions that are written in the language: device functions, and the library's.
//!
//! A call is elaborated where it stands, in a scope that holds the parameters only. Types are those of the arguments, and what is
//! constant in a call stays constant in the body.

use std::rc::Rc;

use super::Elaborator;
use super::meaning::{Constant, FunctionValue, Meaning};
use super::scope::{Origin, Variable};
use crate::diagnostic::did_you_mean;
use crate::frontend::ast::{Call, Expr, ExprKind, Generic, TypeName};
use crate::frontend::device::{DeviceFn, GenericKind, Home, OptionDefault, ParamType};
use crate::frontend::library;
use crate::frontend::place::{Place, Shown};
use crate::frontend::signature::TypeGeneric;
use crate::ir::Elem;

/// A function whose body is being elaborated, and what its generics are in this call.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) func: Rc<DeviceFn>,
    pub(super) types: Vec<(String, Elem)>,
    pub(super) consts: Vec<(String, Meaning)>,
    /// The scopes that were open at the call: none of their variables is seen.
    pub(super) scopes: usize,
}

/// An argument of a call: what it means, and where it stands.
type Arg = (Meaning, Place);

impl Elaborator<'_> {
    /// The function that a name means at this point of the walk.
    pub(super) fn device_function(&mut self, name: &str) -> Option<Rc<DeviceFn>> {
        match self.frames.last().map(|frame| frame.func.home.clone()) {
            Some(Home::Library(family)) => self.library_function(family, name),
            Some(Home::User { key, .. }) => self.devices.find(Some(&key), name).cloned(),
            None => self.devices.find(None, name).cloned(),
        }
    }

    pub(super) fn library_function(&mut self, family: &'static str, name: &str) -> Option<Rc<DeviceFn>> {
        let functions = self.library.entry(family).or_insert_with(|| library::functions(family));
        functions.iter().find(|func| func.name.text == name).cloned()
    }

    /// A call of a function that is written in the language.
    pub(super) fn call_function(&mut self, func: &Rc<DeviceFn>, call: &Call, place: Place) -> Meaning {
        let name = func.name.text.as_str();
        if let Some(first) = self.frames.iter().position(|frame| Rc::ptr_eq(&frame.func, func)) {
            let names = self.frames[first..].iter().map(|frame| frame.func.name.text.as_str()).chain([name]);
            let chain = names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" calls ");
            self.errors.push_help(
                call.word.place,
                format!("`{name}` calls itself: {chain}"),
                "a device function becomes a part of its caller, so that it cannot recurse; write a loop",
            );
            return Meaning::Poison;
        }
        if func.is_broken {
            return Meaning::Poison;
        }
        let before = self.errors.len();
        let Some(args) = self.arguments(func, call) else { return Meaning::Poison };
        if self.errors.len() > before || args.iter().any(|arg| arg.as_ref().is_some_and(|(meaning, _)| meaning.is_poison())) {
            return Meaning::Poison;
        }
        let Some(frame) = self.frame(func, call, &args) else { return Meaning::Poison };
        let mut values = Vec::new();
        for (param, arg) in func.params.iter().zip(args) {
            values.push(arg.map(|arg| self.argument(&frame, param.name.text.as_str(), &param.ty, arg)));
        }
        if self.errors.len() > before {
            return Meaning::Poison;
        }
        self.enter_function(frame, place);
        for (param, value) in func.params.iter().zip(values) {
            let meaning = value.unwrap_or_else(|| match &param.option {
                Some(OptionDefault::Value(value)) => self.expr(value),
                _ => Meaning::UNIT,
            });
            let name = param.name.text.clone();
            self.declare(Variable { name, meaning, mutable: param.mutable, origin: Origin::Parameter });
        }
        let elem = match &func.output {
            ParamType::Scalar(name) | ParamType::Value(name) => self.elem(name),
            _ => None,
        };
        let meaning = self.block_as(&func.body, elem.as_ref());
        let end = func.body.value.as_ref().map_or(Place::at(func.body.place.end), |value| value.place);
        let meaning = self.output("the function", &meaning, &func.output, end);
        self.leave_function();
        meaning
    }

    fn enter_function(&mut self, frame: Frame, call: Place) {
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

    /// The arguments in the order of the parameters; an option that is left out is none.
    fn arguments(&mut self, func: &DeviceFn, call: &Call) -> Option<Vec<Option<Arg>>> {
        let name = func.name.text.as_str();
        let wanted = func.params.iter().filter(|param| param.option.is_none()).count();
        let options: Vec<&str> = func.params.iter().filter(|param| param.option.is_some()).map(|param| param.name.text.as_str()).collect();
        let types: Vec<&ParamType> = func.params.iter().filter(|param| param.option.is_none()).map(|param| &param.ty).collect();
        let given = call.args.iter().enumerate();
        let given: Vec<Arg> = given.map(|(index, arg)| (self.value_argument(arg, types.get(index).copied()), arg.place)).collect();
        let mut named: Vec<(&str, Arg)> = Vec::new();
        for (option, value) in &call.named {
            let ty = func.params.iter().find(|param| param.name.text == option.text).map(|param| &param.ty);
            let meaning = self.value_argument(value, ty);
            if options.contains(&option.text.as_str()) {
                named.push((option.text.as_str(), (meaning, value.place)));
                continue;
            }
            let help = match did_you_mean(&option.text, options.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if options.is_empty() => format!("write `{}`", usage(func)),
                None => format!("its options are `{}`", options.join("`, `")),
            };
            self.errors.push_help(option.place, format!("`{name}` has no option `{}`", option.text), help);
        }
        if given.len() != wanted {
            let (given, wanted) = if call.is_method { (given.len() - 1, wanted.saturating_sub(1)) } else { (given.len(), wanted) };
            let words = match wanted {
                0 => "no argument".to_string(),
                1 => "1 argument".to_string(),
                _ => format!("{wanted} arguments"),
            };
            let at = call.args.get(wanted + usize::from(call.is_method)).map_or(call.word.place, |extra| extra.place);
            let help = if given > wanted && !options.is_empty() {
                format!("options have names: `{}`", usage(func))
            } else {
                format!("write `{}`", usage(func))
            };
            self.errors.push_help(at, format!("`{name}` takes {words}, not {given}"), help);
            return None;
        }
        let mut given = given.into_iter();
        let list = func.params.iter().map(|param| match param.option {
            None => given.next(),
            Some(_) => {
                let named = named.iter().find(|(name, _)| *name == param.name.text).map(|(_, arg)| arg.clone());
                // An option that is passed on is left out where it was left out.
                named.filter(|(meaning, _)| *meaning != Meaning::UNIT)
            }
        });
        Some(list.collect())
    }

    fn value_argument(&mut self, arg: &Expr, ty: Option<&ParamType>) -> Meaning {
        let (params, body) = match &arg.kind {
            ExprKind::Closure(params, body) => (params.clone(), (**body).clone()),
            _ => return self.expr(arg),
        };
        let (takes, gives) = match ty {
            Some(ParamType::Function(takes, gives)) => (takes.clone(), (**gives).clone()),
            // Its signature says that it is none.
            _ => (Vec::new(), ParamType::Wrong),
        };
        let (frames, scopes) = (self.frames.len(), self.scopes.len());
        Meaning::Function(Rc::new(FunctionValue { params, body, takes, gives, frames, scopes }))
    }

    /// A call of a closure that the function was given. Its body sees what is seen where it stands.
    pub(super) fn call_closure(&mut self, closure: &Rc<FunctionValue>, call: &Call) -> Meaning {
        let name = call.word.text.as_str();
        let args: Vec<Arg> = call.args.iter().map(|arg| (self.expr(arg), arg.place)).collect();
        if args.len() != closure.takes.len() || !call.named.is_empty() || !call.generics.is_empty() {
            let message = format!("`{name}` takes {} and nothing else, not {}", count(closure.takes.len()), args.len());
            self.errors.push_help(call.word.place, message, "call it as its type says: `f: impl Fn(A, B) -> C`");
            return Meaning::Poison;
        }
        let Some(frame) = self.frames.last().cloned() else { return Meaning::Poison };
        let mut values = Vec::new();
        for (ty, arg) in closure.takes.iter().zip(args) {
            values.push(self.argument(&frame, name, ty, arg));
        }
        if values.iter().any(Meaning::is_poison) {
            return Meaning::Poison;
        }
        let (frames, scopes) = (self.frames.split_off(closure.frames), self.scopes.split_off(closure.scopes));
        let outside = self.errors.step_out(closure.frames);
        let before = self.meanings();
        let meaning = self.scoped(|cx| {
            for (param, value) in closure.params.iter().zip(values) {
                cx.bind_meaning(param, value);
            }
            cx.expr(&closure.body)
        });
        self.check_assignments(&before, closure.body.place);
        self.restore(&before);
        self.frames.extend(frames);
        self.scopes.extend(scopes);
        // What it gives is the closure's matter, and reported where it stands.
        let meaning = self.output("the closure", &meaning, &closure.gives, closure.body.place);
        self.errors.step_in(outside);
        meaning
    }

    /// The call's frame, with the generics that the call names or its arguments tell.
    fn frame(&mut self, func: &Rc<DeviceFn>, call: &Call, args: &[Option<Arg>]) -> Option<Frame> {
        let name = func.name.text.as_str();
        let mut types: Vec<Option<Elem>> = vec![None; func.types.len()];
        let mut consts: Vec<Option<Meaning>> = vec![None; func.consts.len()];
        let before = self.errors.len();
        if let Some(extra) = call.generics.get(func.generics.len()) {
            let place = match extra {
                Generic::Type(ty) => ty.place,
                Generic::Const(expr) => expr.place,
            };
            let count = match func.generics.len() {
                0 => "no generics".to_string(),
                1 => "1 generic".to_string(),
                count => format!("{count} generics"),
            };
            self.errors.push_help(place, format!("`{name}` has {count}"), format!("write `{}`", usage(func)));
        }
        for (generic, kind) in call.generics.iter().zip(&func.generics) {
            match (generic, kind) {
                (Generic::Type(ty), GenericKind::Type(_)) if ty.text.as_deref() == Some("_") => {}
                (Generic::Type(ty), GenericKind::Type(index)) => types[*index] = self.elem(ty),
                (Generic::Type(TypeName { text: Some(text), place }), GenericKind::Const(index)) => {
                    consts[*index] = Some(self.name(text, *place));
                }
                (Generic::Type(_), GenericKind::Const(_)) => {}
                (Generic::Const(expr), GenericKind::Const(index)) => consts[*index] = Some(self.expr(expr)),
                (Generic::Const(expr), GenericKind::Type(index)) => {
                    let generic = &func.types[*index].name.text;
                    self.errors.push_help(expr.place, format!("`{generic}` of `{name}` is a type"), format!("write `{}`", usage(func)));
                }
            }
        }
        if self.errors.len() > before {
            return None;
        }
        for (index, generic) in func.types.iter().enumerate() {
            let generic_name = generic.name.text.as_str();
            if types[index].is_none() {
                types[index] = self.infer(func, generic_name, args, call.word.place)?;
            }
            let Some(elem) = &types[index] else {
                self.errors.push_help(
                    call.word.place,
                    format!("nothing says what `{generic_name}` of `{name}` is"),
                    format!("name it: `{}`", usage(func)),
                );
                continue;
            };
            if let Some(dtype) = self.choices(elem).iter().find(|dtype| !generic.choices.contains(dtype)) {
                let message = match elem {
                    Elem::Dtype(dtype) => format!("`{name}` takes `{}` for `{generic_name}`, which `{dtype}` is not", generic.bound),
                    Elem::Param(param) => {
                        format!("`{name}` takes `{}` for `{generic_name}`, and `{param}` may be `{dtype}`", generic.bound)
                    }
                };
                let help = match elem {
                    Elem::Dtype(_) => format!("cast what you give; `{}` stands for {}", generic.bound, list(generic.choices)),
                    Elem::Param(param) => format!("bound it in the same way, `{param}: {}`, or cast what you give", generic.bound),
                };
                self.errors.push_help(call.word.place, message, help);
            }
        }
        for (index, generic) in func.consts.iter().enumerate() {
            let generic_name = generic.name.text.as_str();
            match &consts[index] {
                Some(Meaning::Constant(Constant { elem: None, .. }) | Meaning::Poison) => {}
                Some(Meaning::Constant(constant)) => consts[index] = Some(Meaning::Constant(Constant { elem: None, ..constant.clone() })),
                Some(other) => {
                    let found = self.describe(other);
                    self.errors.push_help(
                        call.word.place,
                        format!("`{generic_name}` of `{name}` must be constant, but this is {found} computed at run time"),
                        "use a constant parameter, `const N: usize`, or a literal",
                    );
                }
                None => {
                    let message = format!("nothing says what `{generic_name}` of `{name}` is");
                    self.errors.push_help(call.word.place, message, format!("name it: `{}`", usage(func)));
                }
            }
        }
        if self.errors.len() > before {
            return None;
        }
        let types = func.types.iter().zip(types).map(|(generic, elem)| Some((generic.name.text.clone(), elem?)));
        let consts = func.consts.iter().zip(consts).map(|(generic, value)| Some((generic.name.text.clone(), value?)));
        let (types, consts) = (types.collect::<Option<_>>()?, consts.collect::<Option<_>>()?);
        Some(Frame { func: func.clone(), types, consts, scopes: self.scopes.len() })
    }

    /// The type that the arguments give a type parameter; `None` has been reported, `Some(None)` says that no argument has it.
    fn infer(&mut self, func: &DeviceFn, generic: &str, args: &[Option<Arg>], place: Place) -> Option<Option<Elem>> {
        let mut pointees: Vec<Elem> = Vec::new();
        let mut values: Vec<Meaning> = Vec::new();
        for (param, arg) in func.params.iter().zip(args) {
            if let Some((meaning, _)) = arg {
                self.collect(&param.ty, generic, meaning, &mut pointees, &mut values);
            }
        }
        let found = match pointees.first() {
            // A pointer says it exactly.
            Some(elem) => return Some(Some(elem.clone())),
            None if values.is_empty() => return Some(None),
            None => self.common_elem(&values.iter().collect::<Vec<_>>()),
        };
        match found {
            Ok(elem) => Some(Some(elem)),
            Err((a, b)) => {
                self.errors.push_help(
                    place,
                    format!("`{generic}` of `{}` cannot be both `{a}` and `{b}`", func.name.text),
                    format!("cast one of the arguments: `(..) as {a}`"),
                );
                None
            }
        }
    }

    fn collect(&self, ty: &ParamType, generic: &str, meaning: &Meaning, pointees: &mut Vec<Elem>, values: &mut Vec<Meaning>) {
        match (ty, meaning) {
            (ParamType::Scalar(name) | ParamType::Value(name), Meaning::Value(_) | Meaning::Constant(_))
                if name.text.as_deref() == Some(generic) =>
            {
                values.push(meaning.clone());
            }
            (ParamType::Pointer(name, _), Meaning::Pointer { base, .. }) if name.text.as_deref() == Some(generic) => {
                pointees.push(self.func.ty(*base).elem().clone());
            }
            (ParamType::Tuple(types), Meaning::Tuple(list)) => {
                types.iter().zip(list).for_each(|(ty, part)| self.collect(ty, generic, part, pointees, values));
            }
            _ => {}
        }
    }

    /// The element type that a name in a function's signature is.
    fn elem_in(&mut self, frame: &Frame, name: &TypeName) -> Option<Elem> {
        let text = name.text.as_deref()?;
        if let Some((_, elem)) = frame.types.iter().find(|(known, _)| known == text) {
            return Some(elem.clone());
        }
        if frame.func.types.iter().any(|generic| generic.name.text == text) {
            return None;
        }
        self.elem(name)
    }

    /// An argument as a value of the parameter's type.
    fn argument(&mut self, frame: &Frame, param: &str, ty: &ParamType, (meaning, place): Arg) -> Meaning {
        let func = frame.func.name.text.as_str();
        match (ty, &meaning) {
            (ParamType::Wrong, _) | (_, Meaning::Poison) => Meaning::Poison,
            (ParamType::Scalar(name) | ParamType::Value(name), Meaning::Value(_) | Meaning::Constant(_)) => {
                let Some(elem) = self.elem_in(frame, name) else { return Meaning::Poison };
                if matches!(ty, ParamType::Scalar(_)) && !self.shape_of(&meaning).is_empty() {
                    let found = self.describe(&meaning);
                    let message = format!("`{func}` takes one `{elem}` for `{param}`, not {found}");
                    let help = format!(
                        "a parameter that takes scalars and tiles is declared `{param}: Value<{}>`",
                        name.text.as_deref().unwrap_or("T")
                    );
                    self.errors.push_help(place, message, help);
                    return Meaning::Poison;
                }
                self.converted(&meaning, &elem, place).unwrap_or_else(|found| {
                    let message = format!("`{func}` takes `{elem}` for `{param}`, not {found}");
                    self.errors.push_help(place, message, format!("cast it: `(..) as {elem}`"));
                    Meaning::Poison
                })
            }
            (ParamType::Pointer(name, mutable), Meaning::Pointer { base, .. }) => {
                let Some(elem) = self.elem_in(frame, name) else { return Meaning::Poison };
                let crate::ir::Type::Pointer { elem: own, mutable: own_mutable } = self.func.ty(*base).clone() else { return meaning };
                if own != elem {
                    let found = self.describe(&meaning);
                    let message = format!("`{func}` takes a pointer to `{elem}` for `{param}`, not {found}");
                    self.errors.push_help(place, message, "pointers are not converted; what is loaded is: `load(x + i) as f32`");
                    return Meaning::Poison;
                }
                if *mutable && !own_mutable {
                    let found = self.describe(&meaning);
                    let message = format!("`{func}` writes through `{param}`, and this is {found}");
                    self.errors.push_help(place, message, "declare the kernel's parameter as `PtrMut`");
                    return Meaning::Poison;
                }
                meaning
            }
            (ParamType::Function(takes, gives), Meaning::Function(closure)) => {
                if takes.len() != closure.params.len() {
                    let message =
                        format!("`{func}` calls `{param}` with {}, and this closure takes {}", count(takes.len()), closure.params.len());
                    self.errors.push_help(place, message, "a closure has a name for each argument: `|a, b| a + b`");
                    return Meaning::Poison;
                }
                let FunctionValue { params, body, frames, scopes, .. } = &**closure;
                let (params, body, takes, gives) = (params.clone(), body.clone(), takes.clone(), (**gives).clone());
                Meaning::Function(Rc::new(FunctionValue { params, body, takes, gives, frames: *frames, scopes: *scopes }))
            }
            (ParamType::Tuple(types), Meaning::Tuple(parts)) if types.len() == parts.len() => {
                let parts = types.iter().zip(parts).map(|(ty, part)| self.argument(frame, param, ty, (part.clone(), place)));
                Meaning::Tuple(parts.collect())
            }
            _ => {
                let found = self.describe(&meaning);
                let message = format!("`{func}` takes {} for `{param}`, not {found}", kind(ty));
                let help = match (&meaning, ty) {
                    (Meaning::Pointer { .. }, ParamType::Scalar(_) | ParamType::Value(_)) => "read the elements first: `load(x + offsets)`",
                    (_, ParamType::Function(..)) => "give a closure: `|x| f(x)`",
                    (_, ParamType::Pointer(..)) => "a pointer is a parameter of the kernel, `x`, or `x + offsets`",
                    _ => "give what the function's signature says",
                };
                self.errors.push_help(place, message, help);
                Meaning::Poison
            }
        }
    }

    /// A scalar, a tile or a constant with that element type; what it is, if that needs `as`.
    fn converted(&mut self, meaning: &Meaning, elem: &Elem, place: Place) -> Result<Meaning, String> {
        match meaning {
            Meaning::Constant(constant) if constant.elem.is_none() => Ok(self.typed(constant.clone(), elem.clone(), place)),
            Meaning::Constant(Constant { elem: Some(own), .. }) if own == elem => Ok(meaning.clone()),
            _ => match self.with_elem(meaning, elem, place) {
                Ok(value) => Ok(value.into()),
                Err(()) => Err(self.describe(meaning)),
            },
        }
    }

    /// What a function gives, as its signature says.
    fn output(&mut self, what: &str, meaning: &Meaning, ty: &ParamType, place: Place) -> Meaning {
        match (ty, meaning) {
            (ParamType::Wrong, _) | (_, Meaning::Poison) => Meaning::Poison,
            (ParamType::Scalar(name) | ParamType::Value(name), Meaning::Value(_) | Meaning::Constant(_)) => {
                let Some(elem) = self.elem(name) else { return Meaning::Poison };
                if matches!(ty, ParamType::Scalar(_)) && !self.shape_of(meaning).is_empty() {
                    let found = self.describe(meaning);
                    let written = name.text.as_deref().unwrap_or("T");
                    let help = format!("a function that gives a tile is declared `-> Value<{written}>`");
                    self.errors.push_help(place, format!("one `{elem}` is expected here, not {found}"), help);
                    return Meaning::Poison;
                }
                self.converted(meaning, &elem, place).unwrap_or_else(|found| {
                    let message = format!("{what} gives {found}, and its signature says `{elem}`");
                    self.errors.push_help(place, message, format!("cast it: `(..) as {elem}`"));
                    Meaning::Poison
                })
            }
            (ParamType::Tuple(types), Meaning::Tuple(parts)) if types.len() == parts.len() => {
                Meaning::Tuple(types.iter().zip(parts).map(|(ty, part)| self.output(what, part, ty, place)).collect())
            }
            (ParamType::Pointer(..), Meaning::Pointer { .. }) => meaning.clone(),
            // A value that nobody asked for is dropped, as a statement's is.
            (ParamType::Tuple(types), _) if types.is_empty() => Meaning::UNIT,
            _ => {
                let found = self.describe(meaning);
                let help = if *meaning == Meaning::UNIT {
                    "the last line without a semicolon is what the function gives"
                } else {
                    "give what the signature says, or change the signature"
                };
                self.errors.push_help(place, format!("{what} gives {found}, and its signature says {}", kind(ty)), help);
                Meaning::Poison
            }
        }
    }
}

/// How a call of the function is written.
pub(super) fn usage(func: &DeviceFn) -> String {
    let generics: Vec<&str> = func
        .generics
        .iter()
        .map(|kind| match kind {
            GenericKind::Type(index) => func.types[*index].name.text.as_str(),
            GenericKind::Const(index) => func.consts[*index].name.text.as_str(),
        })
        .collect();
    let is_inferred = |generic: &TypeGeneric| func.params.iter().any(|param| mentions(&param.ty, &generic.name.text));
    let generics = match func.consts.is_empty() && func.types.iter().all(is_inferred) {
        true => String::new(),
        false => format!("::<{}>", generics.join(", ")),
    };
    let params = func.params.iter().map(|param| match param.option {
        None => param.name.text.clone(),
        Some(_) => format!("{} = ..", param.name.text),
    });
    format!("{}{generics}({})", func.name.text, params.collect::<Vec<_>>().join(", "))
}

fn mentions(ty: &ParamType, generic: &str) -> bool {
    match ty {
        ParamType::Wrong | ParamType::Function(..) => false,
        ParamType::Scalar(name) | ParamType::Value(name) | ParamType::Pointer(name, _) => name.text.as_deref() == Some(generic),
        ParamType::Tuple(list) => list.iter().any(|ty| mentions(ty, generic)),
    }
}

/// A type in the words of a message.
fn kind(ty: &ParamType) -> String {
    let name = |name: &TypeName| name.text.clone().unwrap_or_default();
    match ty {
        ParamType::Wrong => "something else".to_string(),
        ParamType::Scalar(elem) => format!("`{}`", name(elem)),
        ParamType::Value(elem) => format!("`Value<{}>`", name(elem)),
        ParamType::Pointer(elem, false) => format!("`Ptr<{}>`", name(elem)),
        ParamType::Pointer(elem, true) => format!("`PtrMut<{}>`", name(elem)),
        ParamType::Function(takes, _) => format!("a closure of {}", count(takes.len())),
        ParamType::Tuple(list) if list.is_empty() => "`()`".to_string(),
        ParamType::Tuple(list) => format!("a tuple of {}", list.len()),
    }
}

fn count(arguments: usize) -> String {
    if arguments == 1 { "1 argument".to_string() } else { format!("{arguments} arguments") }
}

fn list(dtypes: &[crate::dtype::Dtype]) -> String {
    dtypes.iter().map(|dtype| format!("`{dtype}`")).collect::<Vec<_>>().join(", ")
}
