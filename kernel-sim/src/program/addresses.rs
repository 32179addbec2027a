//! Addresses of variables: allocates a kernel's shared variables, and defines the table of the module's global addresses.

use std::collections::HashMap;

use crate::ptx::{Function, Linkage, Module, Position, Space, Statement, Variable};

use super::Problem;

/// The addresses of the module's `.global` and `.const` variables.
pub(crate) type Globals = HashMap<String, u64>;

/// The offsets of a kernel's shared variables.
#[derive(Debug, Default)]
pub(crate) struct SharedVariables {
    /// Indexed by the position of the declaration, which is unique in a module.
    pub(crate) offsets: HashMap<(u32, u32), u32>,
    /// The total size of the static variables.
    pub(crate) static_bytes: u32,
    /// The start of dynamic shared memory.
    pub(crate) dynamic_start: u32,
}

/// Allocates every shared variable that the kernel can access: first the static ones, then all `.extern` ones at the start of the dynamic
/// part.
pub(crate) fn allocate_shared(module: &Module, kernel: &Function) -> Result<SharedVariables, Problem> {
    let mut variables: Vec<&Variable> = module.variables.iter().filter(|variable| variable.space == Space::Shared).collect();
    let mut functions = vec![kernel];
    let mut next = 0;
    while let Some(function) = functions.get(next).copied() {
        next += 1;
        for_each(function.body.as_deref().unwrap_or_default(), &mut |statement| match statement {
            Statement::Variable(variable) if variable.space == Space::Shared => variables.push(variable),
            Statement::Instruction(call) if call.opcode == "call" => {
                let names = call.operands.iter().filter_map(|operand| match operand {
                    crate::ptx::Operand::Name(name) => Some(name),
                    _ => None,
                });
                for name in names {
                    let callee = module.functions.iter().find(|function| function.name == *name && function.body.is_some());
                    functions.extend(callee.filter(|callee| !functions.iter().any(|known| known.name == callee.name)));
                }
            }
            _ => {}
        });
    }
    let mut shared = SharedVariables::default();
    let is_dynamic = |variable: &Variable| variable.linkage == Linkage::Extern || variable.extents.first() == Some(&None);
    for variable in variables.iter().filter(|variable| !is_dynamic(variable)) {
        let offset = shared.static_bytes.next_multiple_of(alignment(variable));
        shared.offsets.insert(key(variable.position), offset);
        let bytes = u32::try_from(bytes(variable)?).ok().and_then(|bytes| offset.checked_add(bytes));
        shared.static_bytes = bytes.ok_or_else(|| Problem::new(variable.position, "more shared memory than any GPU has"))?;
    }
    shared.dynamic_start = if shared.static_bytes == 0 { 0 } else { shared.static_bytes.next_multiple_of(16) };
    for variable in variables.iter().filter(|variable| is_dynamic(variable)) {
        shared.dynamic_start = shared.dynamic_start.next_multiple_of(alignment(variable));
    }
    for variable in variables.into_iter().filter(|variable| is_dynamic(variable)) {
        shared.offsets.insert(key(variable.position), shared.dynamic_start);
    }
    Ok(shared)
}

/// The key of a declaration.
pub(crate) fn key(position: Position) -> (u32, u32) {
    (position.line, position.column)
}

/// The alignment of a variable's address.
pub(crate) fn alignment(variable: &Variable) -> u32 {
    variable.align.unwrap_or(variable.ty.bytes() * variable.vector).max(1)
}

/// The size of a variable; 0 if its extent is unknown.
pub(crate) fn bytes(variable: &Variable) -> Result<u64, Problem> {
    let element = u64::from(variable.ty.bytes() * variable.vector);
    let count = variable.extents.iter().try_fold(1u64, |count, extent| count.checked_mul(extent.unwrap_or(0)));
    count
        .and_then(|count| count.checked_mul(element))
        .ok_or_else(|| Problem::new(variable.position, format!("`{}` is too large", variable.name)))
}

fn for_each<'a>(statements: &'a [Statement], visit: &mut impl FnMut(&'a Statement)) {
    for statement in statements {
        match statement {
            Statement::Block(inner) => for_each(inner, visit),
            other => visit(other),
        }
    }
}
