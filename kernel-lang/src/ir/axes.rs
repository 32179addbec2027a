//! Axes across ops that change a tile's shape: which axis of the result is which one of the operand.
//!
//! Each axis has a value, such as the stride of an index along it. Along an axis of the result that repeats one position of the operand, the
//! value is that of no stride:
//!
//! ```text
//!                                operand   result
//! expand_dims {axis = 1}         a, b      a, 0, b
//! permute {order = [1, 0]}       a, b      b, a
//! broadcast of [1, 8] to [4, 8]  a, b      0, b
//! broadcast of a scalar                    0, 0
//! ```

use crate::ir::arena::Value;
use crate::ir::function::Function;
use crate::ir::ops::Op;

/// The values of the axes of `result`, from those of the operand's axes. `None` for other ops.
pub fn of_result<T: Clone>(func: &Function, op: &Op, result: Value, of_operand: &[T], repeated: T) -> Option<Vec<T>> {
    match op {
        Op::Broadcast { x } => {
            let (from, rank) = (func.ty(*x).shape(), func.ty(result).shape().len());
            let value = |axis: usize| match from.get(axis) {
                Some(extent) if extent.as_int() != Some(1) => of_operand[axis].clone(),
                _ => repeated.clone(),
            };
            Some((0..rank).map(value).collect())
        }
        Op::ExpandDims { axis, .. } => {
            let mut values = of_operand.to_vec();
            values.insert(*axis as usize, repeated);
            Some(values)
        }
        Op::Permute { order, .. } => Some(order.iter().map(|axis| of_operand[*axis as usize].clone()).collect()),
        _ => None,
    }
}

/// The values of the axes of the operand, a tile, from those of the result's axes. `None` for other ops.
pub fn of_operand<T: Clone>(op: &Op, of_result: &[T]) -> Option<Vec<T>> {
    match op {
        Op::Broadcast { .. } => Some(of_result.to_vec()),
        Op::ExpandDims { axis, .. } => {
            let mut values = of_result.to_vec();
            values.remove(*axis as usize);
            Some(values)
        }
        Op::Permute { order, .. } => {
            let value = |axis: usize| order.iter().position(|from| *from as usize == axis).map(|to| of_result[to].clone());
            (0..order.len()).map(value).collect()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of the result's axes if those of the operand's are 10, 11 and so on, and the operand's again from these.
    fn there_and_back(line: &str) -> (Vec<i64>, Vec<i64>) {
        let text = format!("kernel @k(%x: tile<f32, [1, 8, 2]>, %s: f32) {{\n{line}\nreturn\n}}");
        let func = crate::ir::parse(&text).expect("it is well formed");
        let inst = func.region(func.body).insts[0];
        let (op, result) = (&func.inst(inst).op, func.result(inst));
        let mut rank = 0;
        op.for_each_operand(&mut |x| rank = func.ty(x).shape().len() as i64);
        let operand: Vec<i64> = (10..10 + rank).collect();
        let values = of_result(&func, op, result, &operand, 0).expect("it changes the shape");
        let back = of_operand(op, &values).expect("it changes the shape");
        (values, back)
    }

    #[test]
    fn each_axis_keeps_its_value() {
        assert_eq!(there_and_back("%0 = expand_dims %x {axis = 1} : tile<f32, [1, 1, 8, 2]>"), (vec![10, 0, 11, 12], vec![10, 11, 12]));
        assert_eq!(there_and_back("%0 = permute %x {order = [2, 0, 1]} : tile<f32, [2, 1, 8]>"), (vec![12, 10, 11], vec![10, 11, 12]));
        assert_eq!(there_and_back("%0 = broadcast %x : tile<f32, [4, 8, 2]>"), (vec![0, 11, 12], vec![0, 11, 12]));
        assert_eq!(there_and_back("%0 = broadcast %s : tile<f32, [4, 8]>").0, [0, 0]);
    }
}
