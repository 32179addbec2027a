//! Checks the body of a device function at its definition, without a call: errors that every call would have.
//!
//! Properties that depend on a call are unknown here and accepted silently: shapes of `Value<T>`, constants, closures, structs, and the
//! results of other device functions. The types of type parameters are tried one after another. Only an error that occurs for all of them is
//! an error of the function.

use std::rc::Rc;

use super::inline::Frame;
use super::meaning::Meaning;
use super::scope::{Origin, Variable};
use super::{Elaborator, Type};
use crate::ast::TypeName;
use crate::device::{DeviceFn, Devices};
use crate::param_type::ParamType;
use crate::span::Errors;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{Elem, Function};

/// The maximum number of type combinations to try; with more, nothing is reported for a function that fails for the first ones.
const MOST_TRIALS: usize = 64;

/// Reports errors in the body that occur in every call.
pub(crate) fn check(func: &Rc<DeviceFn>, errors: &mut Errors) {
    if func.is_broken || func.types.iter().any(|generic| generic.is_broken || generic.choices.is_empty()) {
        return;
    }
    let all: usize = func.types.iter().fold(1, |all, generic| all.saturating_mul(generic.choices.len()));
    let mut first: Option<Errors> = None;
    for number in 0..all.min(MOST_TRIALS) {
        let mut rest = number;
        let types = func.types.iter().map(|generic| {
            let dtype = generic.choices[rest % generic.choices.len()];
            rest /= generic.choices.len();
            (generic.name.text.clone(), Elem::Dtype(dtype))
        });
        let found = mistakes(func, types.collect());
        if found.is_empty() {
            return;
        }
        first.get_or_insert(found);
    }
    if let Some(first) = first.filter(|_| all <= MOST_TRIALS) {
        errors.append(first);
    }
}

/// The errors in the body for these type arguments.
fn mistakes(func: &Rc<DeviceFn>, types: Vec<(String, Elem)>) -> Errors {
    let mut errors = Errors::default();
    let devices = Devices::default();
    let mut cx = Elaborator::new(Function::new(func.name.text.as_str()), &devices, &mut errors);
    cx.is_alone = true;
    let consts = func.consts.iter().map(|generic| (generic.name.text.clone(), Meaning::Poison)).collect();
    cx.frames.push(Frame { func: func.clone(), types, consts, scopes: 0 });
    cx.scopes.push(Vec::new());
    for param in &func.params {
        let meaning = if param.option.is_none() { cx.unknown_argument(&param.name.text, &param.ty) } else { Meaning::Poison };
        let name = param.name.text.clone();
        cx.declare(Variable { name, meaning, mutable: param.mutable, origin: Origin::Parameter, argument: None });
    }
    cx.function_body(func);
    errors
}

impl Elaborator<'_> {
    /// An argument of which only the declared type is known.
    fn unknown_argument(&mut self, name: &str, ty: &ParamType) -> Meaning {
        match ty {
            ParamType::Scalar(ty) => match self.dtype_of(ty) {
                Some(dtype) => Meaning::Value(self.func.add_param(name, Type::scalar(dtype))),
                None => Meaning::Poison,
            },
            ParamType::Pointer(ty, mutable) => match self.dtype_of(ty) {
                Some(dtype) => {
                    let base = self.func.add_param(name, Type::Pointer { elem: Elem::Dtype(dtype), mutable: *mutable });
                    Meaning::Pointer { base, offset: None }
                }
                None => Meaning::Poison,
            },
            ParamType::Tuple(parts) => Meaning::Tuple(None, parts.iter().map(|part| self.unknown_argument(name, part)).collect()),
            ParamType::Wrong | ParamType::Value(_) | ParamType::View(..) | ParamType::Struct(_) | ParamType::Function(..) => {
                Meaning::Poison
            }
        }
    }

    fn dtype_of(&mut self, ty: &TypeName) -> Option<Dtype> {
        self.elem(ty)?.dtype()
    }
}
