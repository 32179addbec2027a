//! The words of a kernel's key as types, constants and facts: for the compiler, and as text for messages.

use kernel_lang::dtype::Dtype;
use kernel_lang::{Bindings, ir};

use crate::launch::fact::Fact;

/// Formats what a key binds: `T = f32, BLOCK_SIZE = 1024, n % 16 = 0`.
pub(super) fn parameters(func: &ir::Function, key: &[u64], facts: &[Fact]) -> String {
    written_bindings(func, bindings(func, key, facts))
}

pub(super) fn written_bindings(func: &ir::Function, bindings: Bindings) -> String {
    let Bindings { types, consts, multiples, .. } = bindings;
    let types = types.iter().map(|(name, dtype)| format!("{name} = {dtype}"));
    let consts = consts.iter().map(|(name, value)| format!("{name} = {}", written_constant(func, name, *value)));
    let multiples = multiples.iter().map(|(name, of)| format!("{name} % {of} = 0"));
    types.chain(consts).chain(multiples).collect::<Vec<_>>().join(", ")
}

/// Formats the value of a constant parameter, or of an argument that is known.
pub(super) fn written_constant(func: &ir::Function, name: &str, value: i128) -> String {
    let param = func.consts.iter().find(|param| *param.name == *name);
    param.map_or_else(|| value.to_string(), |param| param.written(value))
}

/// Formats the values for an error message.
pub(super) fn quoted(parameters: &str) -> String {
    if parameters.is_empty() { "these arguments".to_owned() } else { format!("`{parameters}`") }
}

/// The arguments of `#[kernel]` that build this variant: `T = [f32], BLOCK_SIZE = [1024]`.
#[cfg(not(feature = "jit"))]
pub(super) fn listing(func: &ir::Function, key: &[u64]) -> String {
    let Bindings { types, consts, .. } = bindings(func, key, &[]);
    let types = types.iter().map(|(name, dtype)| format!("{name} = [{dtype}]"));
    types
        .chain(consts.iter().map(|(name, value)| format!("{name} = [{}]", written_constant(func, name, *value))))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The bindings that the words of a key specify: type parameters first, then constants, then facts.
pub(super) fn bindings(func: &ir::Function, key: &[u64], facts: &[Fact]) -> Bindings {
    let (types, rest) = key.split_at(func.types.len().min(key.len()));
    let (consts, known) = rest.split_at(func.consts.len().min(rest.len()));
    let mut bindings = Bindings::default();
    for (param, &word) in func.types.iter().zip(types) {
        // A word that is no dtype stays unbound, and the compiler reports it.
        if let Some(dtype) = Dtype::from_code(word) {
            bindings.types.push((param.name.clone(), dtype));
        }
    }
    for (param, &word) in func.consts.iter().zip(consts) {
        let value = if param.dtype.is_signed_int() { i128::from(word.cast_signed()) } else { i128::from(word) };
        bindings.consts.push((param.name.clone(), value));
    }
    let known = known.first().copied().unwrap_or(0);
    for (_, fact) in facts.iter().enumerate().filter(|(at, _)| known >> at & 1 == 1) {
        bindings = fact.bind(func, bindings);
    }
    bindings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_words_bind_types_then_constants() {
        let mut func = ir::Function::new("k");
        func.types.push(ir::TypeParam { name: "T".into(), choices: Dtype::FLOATS.to_vec() });
        func.consts.push(ir::ConstParam { name: "N".into(), dtype: Dtype::I64 });
        func.consts.push(ir::ConstParam { name: "FAST".into(), dtype: Dtype::Bool });
        let key = [Dtype::Bf16.code(), (-3i64).cast_unsigned(), 1];
        assert_eq!(parameters(&func, &key, &[]), "T = bf16, N = -3, FAST = 1");
        assert_eq!(bindings(&func, &key[..1], &[]).consts, []);
        assert_eq!(parameters(&ir::Function::new("k"), &[], &[]), "");
    }

    #[test]
    fn facts_bind_arguments_behind_the_constants() {
        let mut func = ir::Function::new("k");
        func.consts.push(ir::ConstParam { name: "N".into(), dtype: Dtype::I64 });
        for (name, dtype) in [("a", Dtype::I32), ("b", Dtype::I64)] {
            func.add_param(name, ir::Type::scalar(dtype));
        }
        let facts = [Fact::is("a", 0, 0xffff_fffe), Fact::multiple_of("b", 1, 16), Fact::is("b", 1, 7)];
        assert_eq!(parameters(&func, &[64], &facts), "N = 64");
        assert_eq!(parameters(&func, &[64, 0b011], &facts), "N = 64, a = -2, b % 16 = 0");
        assert_eq!(parameters(&func, &[64, 0b100], &facts), "N = 64, b = 7");
    }
}
