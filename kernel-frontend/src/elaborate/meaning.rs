//! Meanings: the results of elaborating expressions.

use std::rc::Rc;

use super::Elaborator;
use super::quotient::Quotient;
use crate::ast::{Expr, Pattern};
use crate::device_struct::DeviceStruct;
use crate::param_type::ParamType;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{ConstBinary, ConstExpr, Elem, Type, Value};

/// The meaning of an expression.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Meaning {
    /// An error that has been reported.
    Poison,
    /// A constant, known at specialisation.
    Constant(Constant),
    /// A scalar or a tile.
    Value(Value),
    /// A pointer: a parameter that points to a tensor, and an offset; `None` is offset 0.
    Pointer { base: Value, offset: Option<Value> },
    /// A tensor of several axes.
    View(View),
    /// A tuple, or the fields of a struct. `()` is the empty tuple.
    Tuple(Option<Rc<Instance>>, Vec<Meaning>),
    /// A closure parameter of a function, or a named closure.
    Function(Rc<FunctionValue>),
}

/// The struct whose fields a tuple holds. Its type parameters follow from the fields.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) def: Rc<DeviceStruct>,
    /// The values of its constants.
    pub(super) consts: Vec<Meaning>,
}

impl PartialEq for Instance {
    fn eq(&self, other: &Instance) -> bool {
        Rc::ptr_eq(&self.def, &other.def) && self.consts == other.consts
    }
}

/// A closure, and its environment.
#[derive(Debug)]
pub(super) struct FunctionValue {
    pub(super) params: Vec<Pattern>,
    pub(super) body: Expr,
    /// The declared types of the closure's parameters and result, if it is passed to a function. A closure that only has a name accepts any
    /// types.
    pub(super) signature: Option<(Vec<ParamType>, ParamType)>,
    /// The numbers of frames and of scopes at the closure's definition, all of which are still open, and the number of variables in the
    /// innermost scope.
    pub(super) frames: usize,
    pub(super) scopes: usize,
    pub(super) visible: usize,
}

/// Each closure equals only itself.
impl PartialEq for FunctionValue {
    fn eq(&self, other: &FunctionValue) -> bool {
        std::ptr::eq(self, other)
    }
}

/// A view: a pointer parameter, the offset of the first element, and the extent and the stride of each axis as `i64` scalars.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct View {
    pub(super) base: Value,
    pub(super) offset: Option<Value>,
    pub(super) extents: Vec<Value>,
    pub(super) strides: Vec<Value>,
}

/// A constant: a literal, a constant parameter, or arithmetic on them.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Constant {
    pub(super) expr: ConstExpr,
    pub(super) kind: Kind,
    /// Its type, if the source names one; otherwise it takes the type of the other operand.
    pub(super) elem: Option<Elem>,
    /// The integer quotients in it. They must be exact if the constant becomes a float.
    pub(super) quotients: Vec<Quotient>,
}

/// The types that a constant without a type can take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Any integer or float.
    Int,
    /// Any float.
    Float,
    /// A `bool`.
    Bool,
    /// The type of the outer constant with this index, which its first use tells.
    Outer(usize),
}

impl Kind {
    /// The type of a constant without another operand.
    pub(super) fn default_elem(self) -> Elem {
        Elem::Dtype(match self {
            Kind::Int => Dtype::I64,
            Kind::Float | Kind::Outer(_) => Dtype::F32,
            Kind::Bool => Dtype::Bool,
        })
    }
}

impl Constant {
    pub(super) fn int(value: i128) -> Constant {
        Constant { expr: ConstExpr::Int(value), kind: Kind::Int, elem: None, quotients: Vec::new() }
    }

    pub(super) fn bool(expr: ConstExpr) -> Constant {
        Constant { expr, kind: Kind::Bool, elem: None, quotients: Vec::new() }
    }

    /// Its expression as one of that kind. An integer that becomes a float computes as a float from then on: `1 / 2` does not.
    pub(super) fn expr_of(&self, kind: Kind) -> ConstExpr {
        match (self.kind, kind, &self.expr) {
            (Kind::Int, Kind::Float, ConstExpr::Int(int)) => ConstExpr::Float(*int as f64),
            (Kind::Int, Kind::Float, expr) => ConstExpr::binary(ConstBinary::Add, expr.clone(), ConstExpr::Float(0.0)),
            (_, _, expr) => expr.clone(),
        }
    }
}

impl Meaning {
    pub(super) const UNIT: Meaning = Meaning::Tuple(None, Vec::new());

    pub(super) fn constant(expr: ConstExpr, kind: Kind, elem: Option<Elem>) -> Meaning {
        Meaning::Constant(Constant { expr, kind, elem, quotients: Vec::new() })
    }

    /// The struct and its fields, if it is a struct.
    pub(super) fn as_struct(&self) -> Option<(&Rc<Instance>, &[Meaning])> {
        match self {
            Meaning::Tuple(Some(of), fields) => Some((of, fields)),
            _ => None,
        }
    }

    /// An element of a tuple or a field of a struct.
    pub(super) fn part(&self, name: &str) -> Option<&Meaning> {
        match self {
            Meaning::Tuple(Some(of), fields) => fields.get(of.def.field(name)?),
            Meaning::Tuple(None, list) => list.get(name.parse::<usize>().ok()?),
            _ => None,
        }
    }

    pub(super) fn part_mut(&mut self, name: &str) -> Option<&mut Meaning> {
        match self {
            Meaning::Tuple(Some(of), fields) => fields.get_mut(of.def.field(name)?),
            Meaning::Tuple(None, list) => list.get_mut(name.parse::<usize>().ok()?),
            _ => None,
        }
    }

    /// The help for a tuple or a struct in the position of a single value: how to access a part of it.
    pub(super) fn parts_help(&self, written: Option<&Expr>) -> String {
        match self.as_struct().and_then(|(of, _)| of.def.fields.first()) {
            Some(field) => {
                let x = written.map(super::operator::written).filter(|text| !text.contains('(')).unwrap_or_else(|| "w".to_string());
                format!("take one of its fields: `{x}.{}`", field.name.text)
            }
            None => "take the tuple apart: `let (a, b) = t;`".to_string(),
        }
    }

    pub(super) fn is_poison(&self) -> bool {
        matches!(self, Meaning::Poison)
    }
}

impl From<Option<Value>> for Meaning {
    fn from(value: Option<Value>) -> Meaning {
        value.map_or(Meaning::Poison, Meaning::Value)
    }
}

impl Elaborator<'_> {
    /// The element type of a scalar, a tile or a typed constant.
    pub(super) fn elem_of(&self, meaning: &Meaning) -> Option<Elem> {
        match meaning {
            Meaning::Value(value) => Some(self.func.ty(*value).elem().clone()),
            Meaning::Constant(constant) => constant.elem.clone().or((constant.kind == Kind::Bool).then(|| Dtype::Bool.into())),
            _ => None,
        }
    }

    /// The shape of a scalar, a tile or a constant.
    pub(super) fn shape_of(&self, meaning: &Meaning) -> Vec<ConstExpr> {
        if let Meaning::Value(value) = meaning { self.func.ty(*value).shape().to_vec() } else { Vec::new() }
    }

    /// A meaning, as a phrase for messages.
    pub(super) fn describe(&self, meaning: &Meaning) -> String {
        match meaning {
            Meaning::Poison => "a mistake".to_string(),
            Meaning::Constant(Constant { elem: Some(elem), .. }) => format!("`{elem}`"),
            Meaning::Constant(Constant { expr, kind: Kind::Int, .. }) => format!("the integer `{}`", shown(expr)),
            Meaning::Constant(Constant { expr, kind: Kind::Float, .. }) => format!("the float `{}`", shown(expr)),
            Meaning::Constant(Constant { kind: Kind::Bool, .. }) => "`bool`".to_string(),
            Meaning::Constant(Constant { expr, kind: Kind::Outer(_), .. }) => format!("`{expr}`, a constant outside of the kernel"),
            Meaning::Value(value) => format!("`{}`", self.func.ty(*value)),
            Meaning::Pointer { base, offset } => {
                let pointer = self.describe_pointer(*base);
                match offset.map(|offset| self.func.ty(offset)) {
                    Some(ty) if ty.is_tile() => format!("a tile of {pointer}"),
                    _ => pointer,
                }
            }
            Meaning::View(view) => self.describe_view(view),
            Meaning::Tuple(Some(of), fields) => format!("`{}`", self.describe_struct(of, fields)),
            Meaning::Tuple(None, list) if list.is_empty() => "`()`".to_string(),
            Meaning::Tuple(None, list) => format!("a tuple of {}", list.len()),
            Meaning::Function(_) => "a closure".to_string(),
        }
    }

    /// The help for a scalar in the position of a condition.
    pub(super) fn compare_help(&self, meaning: &Meaning) -> &'static str {
        match meaning {
            Meaning::Pointer { .. } => "read an element and compare it: `load(x) != 0.0`",
            Meaning::Tuple(Some(_), _) => "compare a field of it: `w.count > 0`",
            _ if self.is_float(meaning) => "compare it: `x != 0.0`",
            _ => "compare it: `x != 0`",
        }
    }

    fn describe_pointer(&self, base: Value) -> String {
        match self.func.ty(base) {
            Type::Pointer { elem, mutable: true } => format!("`PtrMut<{elem}>`"),
            ty => format!("`Ptr<{}>`", ty.elem()),
        }
    }
}

/// A constant in source syntax.
pub(super) fn shown(expr: &ConstExpr) -> String {
    let text = expr.to_string();
    match expr {
        ConstExpr::Binary(..) | ConstExpr::Unary(..) | ConstExpr::If(_) => {
            text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).map_or(text.clone(), str::to_string)
        }
        _ => text,
    }
}
