//! What an expression means.

use std::rc::Rc;

use super::Elaborator;
use super::quotient::Quotient;
use crate::dtype::Dtype;
use crate::frontend::ast::{Expr, Pattern};
use crate::frontend::device_struct::DeviceStruct;
use crate::frontend::param_type::ParamType;
use crate::ir::{ConstExpr, Elem, Type, Value};

/// What an expression means.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Meaning {
    /// A mistake that has been reported.
    Poison,
    /// Known when the kernel is specialised.
    Constant(Constant),
    /// A scalar or a tile.
    Value(Value),
    /// A parameter that points to a tensor, and how far into it; no offset is offset 0.
    Pointer { base: Value, offset: Option<Value> },
    /// A tensor of several axes.
    View(View),
    /// Several: a tuple, or the fields of a struct. `()` is the empty tuple.
    Tuple(Option<Rc<Instance>>, Vec<Meaning>),
    /// A closure that was given to a function, or that has a name.
    Function(Rc<FunctionValue>),
}

/// The struct that a tuple holds the fields of. What its type parameters are, the fields say.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) def: Rc<DeviceStruct>,
    /// What its constants are.
    pub(super) consts: Vec<Meaning>,
}

impl PartialEq for Instance {
    fn eq(&self, other: &Instance) -> bool {
        Rc::ptr_eq(&self.def, &other.def) && self.consts == other.consts
    }
}

/// A closure, and what is seen in it.
#[derive(Debug)]
pub(super) struct FunctionValue {
    pub(super) params: Vec<Pattern>,
    pub(super) body: Expr,
    /// What the parameter that it was given for says it takes and gives. One that only has a name takes and gives whatever a call does.
    pub(super) signature: Option<(Vec<ParamType>, ParamType)>,
    /// How many functions and scopes there were where it stands, all of which are there still, and variables in the innermost of these.
    pub(super) frames: usize,
    pub(super) scopes: usize,
    pub(super) visible: usize,
}

/// Each is its own.
impl PartialEq for FunctionValue {
    fn eq(&self, other: &FunctionValue) -> bool {
        std::ptr::eq(self, other)
    }
}

/// A parameter that points to a tensor, how far into it the first element is, and the extent and the stride of each axis: `i64` scalars.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct View {
    pub(super) base: Value,
    pub(super) offset: Option<Value>,
    pub(super) extents: Vec<Value>,
    pub(super) strides: Vec<Value>,
}

/// A constant: a literal, a constant parameter, arithmetic on them.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Constant {
    pub(super) expr: ConstExpr,
    pub(super) kind: Kind,
    /// Its type, if the source names one; else it takes the type of what it meets.
    pub(super) elem: Option<Elem>,
    /// The integer quotients in it, which a float must not be made of unless they are exact.
    pub(super) quotients: Vec<Quotient>,
}

/// What a constant without a type can become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Any integer or float.
    Int,
    /// Any float.
    Float,
    /// A `bool`.
    Bool,
}

impl Kind {
    /// The type of a constant that meets nothing.
    pub(super) fn default_elem(self) -> Elem {
        Elem::Dtype(match self {
            Kind::Int => Dtype::I64,
            Kind::Float => Dtype::F32,
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
}

impl Meaning {
    pub(super) const UNIT: Meaning = Meaning::Tuple(None, Vec::new());

    pub(super) fn constant(expr: ConstExpr, kind: Kind, elem: Option<Elem>) -> Meaning {
        Meaning::Constant(Constant { expr, kind, elem, quotients: Vec::new() })
    }

    /// The struct that it is one of, and its fields.
    pub(super) fn as_struct(&self) -> Option<(&Rc<Instance>, &[Meaning])> {
        match self {
            Meaning::Tuple(Some(of), fields) => Some((of, fields)),
            _ => None,
        }
    }

    /// A field of a tuple or of a struct.
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

    /// How one comes to a part of it, where several are too many.
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

    /// A meaning in the words of a message.
    pub(super) fn describe(&self, meaning: &Meaning) -> String {
        match meaning {
            Meaning::Poison => "a mistake".to_string(),
            Meaning::Constant(Constant { elem: Some(elem), .. }) => format!("`{elem}`"),
            Meaning::Constant(Constant { expr, kind: Kind::Int, .. }) => format!("the integer `{}`", shown(expr)),
            Meaning::Constant(Constant { expr, kind: Kind::Float, .. }) => format!("the float `{}`", shown(expr)),
            Meaning::Constant(Constant { kind: Kind::Bool, .. }) => "`bool`".to_string(),
            Meaning::Value(value) => format!("`{}`", self.func.ty(*value)),
            Meaning::Pointer { base, offset } => {
                let pointer = self.pointer_words(*base);
                match offset.map(|offset| self.func.ty(offset)) {
                    Some(ty) if ty.is_tile() => format!("a tile of {pointer}"),
                    _ => pointer,
                }
            }
            Meaning::View(view) => self.view_words(view),
            Meaning::Tuple(Some(of), fields) => format!("`{}`", self.struct_words(of, fields)),
            Meaning::Tuple(None, list) if list.is_empty() => "`()`".to_string(),
            Meaning::Tuple(None, list) => format!("a tuple of {}", list.len()),
            Meaning::Function(_) => "a closure".to_string(),
        }
    }

    /// How a scalar becomes the condition of an `if` or a loop.
    pub(super) fn compare_help(&self, meaning: &Meaning) -> &'static str {
        match meaning {
            Meaning::Pointer { .. } => "read an element and compare it: `load(x) != 0.0`",
            Meaning::Tuple(Some(_), _) => "compare a field of it: `w.count > 0`",
            _ if self.is_float(meaning) => "compare it: `x != 0.0`",
            _ => "compare it: `x != 0`",
        }
    }

    fn pointer_words(&self, base: Value) -> String {
        match self.func.ty(base) {
            Type::Pointer { elem, mutable: true } => format!("`PtrMut<{elem}>`"),
            ty => format!("`Ptr<{}>`", ty.elem()),
        }
    }
}

/// A constant as the user would write it.
pub(super) fn shown(expr: &ConstExpr) -> String {
    let text = expr.to_string();
    match expr {
        ConstExpr::Binary(..) | ConstExpr::Unary(..) => {
            text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).map_or(text.clone(), str::to_string)
        }
        _ => text,
    }
}
