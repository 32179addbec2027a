//! The initial values of a module's variables, and their addresses in global memory.

use half::{bf16, f16};

use crate::memory::GlobalMemory;
use crate::program::{Globals, Problem, bytes_of};
use crate::ptx::{Init, Linkage, Module, Space, Type, Variable};

/// Allocates the `.global` and `.const` variables of a module.
pub(crate) fn allocate(module: &Module, memory: &GlobalMemory) -> Result<Globals, Problem> {
    let mut globals = Globals::new();
    let is_allocated = |variable: &&Variable| matches!(variable.space, Space::Global | Space::Const) && variable.linkage != Linkage::Extern;
    for variable in module.variables.iter().filter(is_allocated) {
        let mut value = vec![0; bytes_of(variable)? as usize];
        if let Some(init) = &variable.init {
            put(variable, init, &variable.extents, &mut value, &globals)?;
        }
        let allocated = memory.allocate_variable(&variable.name, &value, variable.space == Space::Const);
        let address = allocated.map_err(|error| Problem::new(variable.position, error.to_string()))?;
        globals.insert(variable.name.clone(), address);
    }
    Ok(globals)
}

/// Writes an initial value to the start of `target`, which has elements of these extents.
fn put(variable: &Variable, init: &Init, extents: &[Option<u64>], target: &mut [u8], globals: &Globals) -> Result<(), Problem> {
    let too_many = || Problem::new(variable.position, format!("`{}` has more initial values than elements", variable.name));
    let Init::List(items) = init else {
        let bits = bits(variable, init, globals)?.to_le_bytes();
        let element = target.get_mut(..variable.ty.bytes() as usize).ok_or_else(too_many)?;
        element.copy_from_slice(bits.get(..element.len()).unwrap_or(&bits));
        return Ok(());
    };
    // The innermost dimension is the elements of a vector.
    let inner = extents.get(1..).unwrap_or_default();
    let per_item = inner.iter().map(|extent| extent.unwrap_or(0) as usize).product::<usize>() * variable.ty.bytes() as usize;
    let stride = if extents.is_empty() { variable.ty.bytes() as usize } else { per_item * variable.vector as usize };
    for (index, item) in items.iter().enumerate() {
        let rest = target.get_mut(index * stride..).filter(|rest| !rest.is_empty()).ok_or_else(too_many)?;
        put(variable, item, inner, rest, globals)?;
    }
    Ok(())
}

fn bits(variable: &Variable, init: &Init, globals: &Globals) -> Result<u64, Problem> {
    Ok(match init {
        Init::Int(value) if variable.ty == Type::F32 => u64::from((*value as f32).to_bits()),
        Init::Int(value) if variable.ty == Type::F64 => (*value as f64).to_bits(),
        Init::Int(value) => *value,
        Init::Float(value) => match variable.ty {
            Type::F64 => value.to_bits(),
            Type::F32 => u64::from((*value as f32).to_bits()),
            Type::F16 => u64::from(f16::from_f64(*value).to_bits()),
            Type::Bf16 => u64::from(bf16::from_f64(*value).to_bits()),
            ty => return Err(Problem::new(variable.position, format!("a float is no `{ty}`"))),
        },
        Init::Symbol { name, offset, .. } => match globals.get(name) {
            Some(address) => address.wrapping_add_signed(*offset),
            None => return Err(Problem::new(variable.position, format!("`{name}` has no address yet"))),
        },
        Init::Masked { mask, symbol } => (bits(variable, symbol, globals)? & mask).checked_shr(mask.trailing_zeros()).unwrap_or(0),
        Init::List(_) => return Err(Problem::new(variable.position, format!("`{}` has too deep an initial value", variable.name))),
    })
}
