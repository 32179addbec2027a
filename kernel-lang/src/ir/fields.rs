//! The types of op fields, and their text form.
//!
//! An op in the table is a struct of fields. Its operands, its printer and its parser follow from the types of the fields: values are
//! positional, optional values and attributes are `name = ...` in braces, regions come last.

use crate::ir::arena::{Region, Value};
use crate::ir::constexpr::ConstExpr;

/// An op in parts: the output of the printer's first step and of the parser's.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// Positional operands.
    pub operands: Vec<Value>,
    /// Entries `name = %value` in the braces.
    pub named: Vec<(String, Value)>,
    /// Entries `name = attribute` in the braces.
    pub attributes: Vec<(String, AttributeValue)>,
    /// The regions, in order.
    pub regions: Vec<Region>,
}

/// The value of an attribute in the text form.
#[derive(Clone, PartialEq, Debug)]
pub enum AttributeValue {
    /// A number, the name of a modifier, or a constant expression.
    Expr(ConstExpr),
    /// A quoted string.
    Text(String),
    /// A list of constants in brackets.
    List(Vec<ConstExpr>),
}

/// One field of an op.
pub trait Field: Sized {
    /// May it hold values?
    const HAS_VALUES: bool = false;
    /// Does it hold a region?
    const IS_REGION: bool = false;
    /// Calls `visit` with each value that it holds.
    fn values(&self, visit: &mut dyn FnMut(Value)) {
        let _ = visit;
    }
    /// Replaces each value that it holds.
    fn map_values(&mut self, map: &mut dyn FnMut(Value) -> Value) {
        let _ = map;
    }
    /// Calls `visit` with each region that it holds.
    fn regions(&self, visit: &mut dyn FnMut(Region)) {
        let _ = visit;
    }
    /// Replaces each region that it holds.
    fn map_regions(&mut self, map: &mut dyn FnMut(Region) -> Region) {
        let _ = map;
    }
    /// Replaces each constant expression that it holds.
    ///
    /// # Errors
    /// The errors of `map`.
    fn map_constants(&mut self, map: &mut dyn FnMut(&ConstExpr) -> Result<ConstExpr, String>) -> Result<(), String> {
        let _ = map;
        Ok(())
    }
    /// Adds itself to the parts; an attribute with its default value adds nothing.
    fn print(&self, name: &str, parts: &mut Parts);
    /// Takes itself out of the parts.
    ///
    /// # Errors
    /// A message in the terms of the text form: a missing field or a field of the wrong kind.
    fn parse(name: &str, parts: &mut Parts) -> Result<Self, String>;
}

impl Field for Value {
    const HAS_VALUES: bool = true;
    fn values(&self, visit: &mut dyn FnMut(Value)) {
        visit(*self);
    }
    fn map_values(&mut self, map: &mut dyn FnMut(Value) -> Value) {
        *self = map(*self);
    }
    fn print(&self, _name: &str, parts: &mut Parts) {
        parts.operands.push(*self);
    }
    fn parse(name: &str, parts: &mut Parts) -> Result<Value, String> {
        if parts.operands.is_empty() { Err(format!("operand `{name}` is missing")) } else { Ok(parts.operands.remove(0)) }
    }
}

impl Field for Option<Value> {
    const HAS_VALUES: bool = true;
    fn values(&self, visit: &mut dyn FnMut(Value)) {
        if let Some(value) = self {
            visit(*value);
        }
    }
    fn map_values(&mut self, map: &mut dyn FnMut(Value) -> Value) {
        *self = self.map(map);
    }
    fn print(&self, name: &str, parts: &mut Parts) {
        parts.named.extend(self.map(|value| (name.to_string(), value)));
    }
    fn parse(name: &str, parts: &mut Parts) -> Result<Option<Value>, String> {
        let found = parts.named.iter().position(|(given, _)| given == name);
        Ok(found.map(|index| parts.named.remove(index).1))
    }
}

/// All remaining operands; this must be the last field with values.
impl Field for Vec<Value> {
    const HAS_VALUES: bool = true;
    fn values(&self, visit: &mut dyn FnMut(Value)) {
        for value in self {
            visit(*value);
        }
    }
    fn map_values(&mut self, map: &mut dyn FnMut(Value) -> Value) {
        self.iter_mut().for_each(|value| *value = map(*value));
    }
    fn print(&self, _name: &str, parts: &mut Parts) {
        parts.operands.extend(self);
    }
    fn parse(_name: &str, parts: &mut Parts) -> Result<Vec<Value>, String> {
        Ok(std::mem::take(&mut parts.operands))
    }
}

impl Field for Region {
    const IS_REGION: bool = true;
    fn regions(&self, visit: &mut dyn FnMut(Region)) {
        visit(*self);
    }
    fn map_regions(&mut self, map: &mut dyn FnMut(Region) -> Region) {
        *self = map(*self);
    }
    fn print(&self, _name: &str, parts: &mut Parts) {
        parts.regions.push(*self);
    }
    fn parse(name: &str, parts: &mut Parts) -> Result<Region, String> {
        if parts.regions.is_empty() { Err(format!("region `{name}` is missing")) } else { Ok(parts.regions.remove(0)) }
    }
}

/// Takes the attribute of that name out of the parts.
pub(crate) fn take_attribute(name: &str, parts: &mut Parts) -> Option<AttributeValue> {
    let found = parts.attributes.iter().position(|(given, _)| given == name)?;
    Some(parts.attributes.remove(found).1)
}

impl Field for ConstExpr {
    fn map_constants(&mut self, map: &mut dyn FnMut(&ConstExpr) -> Result<ConstExpr, String>) -> Result<(), String> {
        *self = map(self)?;
        Ok(())
    }
    fn print(&self, name: &str, parts: &mut Parts) {
        parts.attributes.push((name.to_string(), AttributeValue::Expr(self.clone())));
    }
    fn parse(name: &str, parts: &mut Parts) -> Result<ConstExpr, String> {
        match take_attribute(name, parts) {
            Some(AttributeValue::Expr(expr)) => Ok(expr),
            _ => Err(format!("attribute `{name}` is missing or not a constant")),
        }
    }
}

/// For ops that are rare. Every op takes as much memory as the largest one, so the constants of rare ops are boxed.
impl Field for Box<ConstExpr> {
    fn map_constants(&mut self, map: &mut dyn FnMut(&ConstExpr) -> Result<ConstExpr, String>) -> Result<(), String> {
        (**self).map_constants(map)
    }
    fn print(&self, name: &str, parts: &mut Parts) {
        (**self).print(name, parts);
    }
    fn parse(name: &str, parts: &mut Parts) -> Result<Box<ConstExpr>, String> {
        ConstExpr::parse(name, parts).map(Box::new)
    }
}

impl Field for Option<Box<ConstExpr>> {
    fn map_constants(&mut self, map: &mut dyn FnMut(&ConstExpr) -> Result<ConstExpr, String>) -> Result<(), String> {
        self.as_mut().map_or(Ok(()), |expr| expr.map_constants(map))
    }
    fn print(&self, name: &str, parts: &mut Parts) {
        self.iter().for_each(|expr| expr.print(name, parts));
    }
    fn parse(name: &str, parts: &mut Parts) -> Result<Option<Box<ConstExpr>>, String> {
        let is_given = parts.attributes.iter().any(|(given, _)| given == name);
        is_given.then(|| Field::parse(name, parts)).transpose()
    }
}

impl Field for u32 {
    fn print(&self, name: &str, parts: &mut Parts) {
        if *self != 0 {
            parts.attributes.push((name.to_string(), AttributeValue::Expr(ConstExpr::Int((*self).into()))));
        }
    }
    fn parse(name: &str, parts: &mut Parts) -> Result<u32, String> {
        match take_attribute(name, parts) {
            None => Ok(0),
            Some(AttributeValue::Expr(ConstExpr::Int(value))) => {
                u32::try_from(value).map_err(|_| format!("attribute `{name}` is out of range"))
            }
            Some(_) => Err(format!("attribute `{name}` is not a number")),
        }
    }
}

impl Field for Vec<ConstExpr> {
    fn map_constants(&mut self, map: &mut dyn FnMut(&ConstExpr) -> Result<ConstExpr, String>) -> Result<(), String> {
        self.iter_mut().try_for_each(|expr| {
            *expr = map(expr)?;
            Ok(())
        })
    }
    fn print(&self, name: &str, parts: &mut Parts) {
        parts.attributes.push((name.to_string(), AttributeValue::List(self.clone())));
    }
    fn parse(name: &str, parts: &mut Parts) -> Result<Vec<ConstExpr>, String> {
        match take_attribute(name, parts) {
            Some(AttributeValue::List(list)) => Ok(list),
            _ => Err(format!("attribute `{name}` is missing or not a list")),
        }
    }
}

/// A list of axes, or an index.
impl Field for Vec<u32> {
    fn print(&self, name: &str, parts: &mut Parts) {
        let list = self.iter().map(|axis| ConstExpr::Int((*axis).into())).collect();
        parts.attributes.push((name.to_string(), AttributeValue::List(list)));
    }
    fn parse(name: &str, parts: &mut Parts) -> Result<Vec<u32>, String> {
        let axis = |expr: &ConstExpr| {
            let axis = expr.as_int().and_then(|number| u32::try_from(number).ok());
            axis.ok_or_else(|| format!("attribute `{name}` is out of range"))
        };
        Vec::<ConstExpr>::parse(name, parts)?.iter().map(axis).collect()
    }
}

impl Field for Option<Vec<u32>> {
    fn print(&self, name: &str, parts: &mut Parts) {
        self.iter().for_each(|list| list.print(name, parts));
    }
    fn parse(name: &str, parts: &mut Parts) -> Result<Option<Vec<u32>>, String> {
        let is_given = parts.attributes.iter().any(|(given, _)| given == name);
        is_given.then(|| Field::parse(name, parts)).transpose()
    }
}

impl Field for bool {
    fn print(&self, name: &str, parts: &mut Parts) {
        if *self {
            parts.attributes.push((name.to_string(), AttributeValue::Expr(ConstExpr::Bool(true))));
        }
    }
    fn parse(name: &str, parts: &mut Parts) -> Result<bool, String> {
        match take_attribute(name, parts) {
            None => Ok(false),
            Some(AttributeValue::Expr(ConstExpr::Bool(value))) => Ok(value),
            Some(_) => Err(format!("attribute `{name}` is not `true` or `false`")),
        }
    }
}

impl Field for String {
    fn print(&self, name: &str, parts: &mut Parts) {
        parts.attributes.push((name.to_string(), AttributeValue::Text(self.clone())));
    }
    fn parse(name: &str, parts: &mut Parts) -> Result<String, String> {
        match take_attribute(name, parts) {
            Some(AttributeValue::Text(text)) => Ok(text),
            _ => Err(format!("attribute `{name}` is missing or not a text")),
        }
    }
}

/// Declares a modifier of an op: an enum whose first variant is the default and is not printed.
macro_rules! modifier {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub enum $name { #[default] $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// Every member.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// The spelling in the text form.
            pub const fn text(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }

        impl $crate::ir::fields::Field for $name {
            fn print(&self, name: &str, parts: &mut $crate::ir::fields::Parts) {
                if *self != $name::default() {
                    let text = $crate::ir::fields::AttributeValue::Text(self.text().to_string());
                    parts.attributes.push((name.to_string(), text));
                }
            }
            fn parse(name: &str, parts: &mut $crate::ir::fields::Parts) -> Result<$name, String> {
                match $crate::ir::fields::take_attribute(name, parts) {
                    None => Ok($name::default()),
                    Some($crate::ir::fields::AttributeValue::Text(text)) => $name::ALL
                        .iter()
                        .copied()
                        .find(|member| member.text() == text)
                        .ok_or_else(|| format!("`{name}` cannot be \"{text}\"")),
                    Some(_) => Err(format!("attribute `{name}` is not a text")),
                }
            }
        }
    };
}
pub(crate) use modifier;
