//! Outer constants: constants of Rust that a launch passes after the kernel's arguments.
//!
//! Only rustc knows the type of such a constant. Its first use tells the type that the kernel takes it for, and the launcher makes rustc check
//! that the constant has this type. `parse/outer` says which expressions are outer constants.

use super::meaning::{Constant, Kind, Meaning, shown};
use super::{Elaborator, Value};
use crate::parse::Outer;
use crate::signature::{Signature, dtype_of};
use crate::span::SourceSpan;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{ConstExpr, Elem, Op, Type};

/// An outer constant during elaboration.
#[derive(Clone, Debug)]
pub(super) struct OuterState {
    /// The expression as written.
    pub(super) text: String,
    /// The kernel's parameter.
    pub(super) value: Value,
    /// The type that its first use tells.
    pub(super) dtype: Option<Dtype>,
}

/// The parameter's type while no use tells another.
const UNUSED: Dtype = Dtype::I64;

impl Elaborator<'_> {
    /// Declares a parameter for each outer constant.
    pub(super) fn declare_outers(&mut self, outers: &[Outer], signature: &Signature) {
        for outer in outers {
            let allowed = |c: char| if c.is_alphanumeric() { c } else { '_' };
            let mut name: String = outer.text.replace("::", "_").chars().map(allowed).collect();
            name = name.trim_matches('_').to_string();
            if !name.starts_with(char::is_alphabetic) {
                name.insert(0, 'c');
            }
            let is_taken = |name: &str| self.func.params.iter().any(|param| *param.name == *name);
            while is_taken(&name) || signature.params.iter().any(|param| param.name.text == name) {
                name.push('_');
            }
            let dtype = outer.ty.and_then(dtype_of);
            let value = self.func.add_param(name, Type::scalar(dtype.unwrap_or(UNUSED)));
            self.outers.push(OuterState { text: outer.text.clone(), value, dtype });
        }
    }

    /// An outer constant in an expression: a value, or a constant without a type if no use has determined it yet.
    pub(super) fn outer(&self, index: usize) -> Meaning {
        let Some(outer) = self.outers.get(index) else { return Meaning::Poison };
        match outer.dtype {
            Some(_) => Meaning::Value(outer.value),
            None => Meaning::constant(ConstExpr::Param(outer.text.as_str().into()), Kind::Outer(index), None),
        }
    }

    /// The outer constant as a scalar of that type, or as a tile.
    pub(super) fn outer_as(&mut self, index: usize, elem: &Elem, shape: &[ConstExpr], span: SourceSpan) -> Option<Value> {
        let OuterState { text, value, dtype } = self.outers.get(index)?.clone();
        let Elem::Dtype(wanted) = *elem else {
            let message = format!("`{text}` is wanted as `{elem}` here, and a constant outside of the kernel has a type of its own");
            self.errors.push_help(span, message, format!("cast it twice: `{text} as f32 as {elem}`"));
            return None;
        };
        let scalar = match dtype {
            None => {
                self.outers[index].dtype = Some(wanted);
                self.func.set_ty(value, Type::scalar(wanted));
                value
            }
            Some(own) if own == wanted => value,
            Some(own) if own.widens_to(wanted) => self.emit(Op::Cast { x: value }, &[Type::scalar(wanted)], span)?,
            Some(own) => {
                let message = format!("`{text}` is used as `{own}` before, and as `{wanted}` here");
                self.errors.push_help(span, message, format!("give it a type of its own, and cast it here: `let c: {own} = {text};`"));
                return None;
            }
        };
        self.with_shape(scalar, shape, span)
    }

    /// The outer constant behind a meaning, if its type is open.
    pub(super) fn open_outer(meaning: &Meaning) -> Option<usize> {
        match meaning {
            Meaning::Constant(Constant { kind: Kind::Outer(index), .. }) => Some(*index),
            _ => None,
        }
    }

    /// A meaning in a position that takes a `bool`.
    pub(super) fn taken_as_bool(&mut self, meaning: Meaning, span: SourceSpan) -> Meaning {
        match Self::open_outer(&meaning) {
            Some(index) => self.outer_as(index, &Elem::Dtype(Dtype::Bool), &[], span).into(),
            None => meaning,
        }
    }

    /// Reports an outer constant of which nothing tells the type.
    pub(super) fn untyped_outer(&mut self, constant: &Constant, span: SourceSpan) {
        let text = shown(&constant.expr);
        let message = format!("nothing here says which type `{text}` has, and the macro does not see it");
        self.errors.push_help(span, message, format!("write its type: `let c: f32 = {text};`, or cast it: `{text} as f32`"));
    }

    /// The help for an outer constant in the position of a constant that the compiler must know.
    pub(super) fn outer_help(&self, meaning: &Meaning) -> Option<String> {
        let index = Self::open_outer(meaning).or_else(|| match meaning {
            Meaning::Value(value) => self.outers.iter().position(|outer| outer.value == *value),
            _ => None,
        })?;
        let name = self.outers[index].text.rsplit("::").next().unwrap_or_default();
        let name = if name.chars().all(|c| c.is_alphanumeric() || c == '_') { name } else { "N" };
        Some(format!(
            "the macro does not see the value of a constant outside of the kernel; take it as a constant parameter, `const {name}: usize`, \
             list its values, `#[kernel({name} = [..])]`, and name it at the launch"
        ))
    }
}
