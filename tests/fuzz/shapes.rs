//! Statements that move elements and compute nothing.

use crate::tile::list;
use crate::writer::{Writer, fits};

/// An axis becomes two, or one of extent 1 is added.
pub(crate) fn reshape(writer: &mut Writer<'_>) -> Option<()> {
    let value = writer.tile(|value| value.shape.len() < 4)?;
    let mut shape = value.shape.clone();
    let axis = writer.below(shape.len());
    let divisors: Vec<usize> = [1, 2, 4, 8, 16].into_iter().filter(|by| shape[axis].is_multiple_of(*by)).collect();
    let by = writer.pick(&divisors);
    shape[axis] /= by;
    shape.insert(axis + 1, by);
    writer.bind(value.dtype, &shape, value.whole, &format!("reshape({}, {})", value.name, list(&shape)));
    Some(())
}

/// Two axes become one.
pub(crate) fn merge(writer: &mut Writer<'_>) -> Option<()> {
    let value = writer.tile(|value| value.shape.len() > 1 && value.shape[1].is_power_of_two())?;
    let mut shape = value.shape.clone();
    shape[0] *= shape.remove(1);
    writer.bind(value.dtype, &shape, value.whole, &format!("reshape({}, {})", value.name, list(&shape)));
    Some(())
}

pub(crate) fn permute(writer: &mut Writer<'_>) -> Option<()> {
    let value = writer.tile(|value| value.shape.len() > 1)?;
    let mut order: Vec<usize> = (0..value.shape.len()).collect();
    for axis in (1..order.len()).rev() {
        let other = writer.below(axis + 1);
        order.swap(axis, other);
    }
    let shape: Vec<usize> = order.iter().map(|&axis| value.shape[axis]).collect();
    writer.bind(value.dtype, &shape, value.whole, &format!("permute({}, {})", value.name, list(&order)));
    Some(())
}

pub(crate) fn flip(writer: &mut Writer<'_>) -> Option<()> {
    let value = writer.tile(|_| true)?;
    let axis = writer.below(value.shape.len());
    writer.bind(value.dtype, &value.shape, value.whole, &format!("flip({}, axis = {axis})", value.name));
    Some(())
}

/// An axis of extent 1 becomes longer.
pub(crate) fn repeat(writer: &mut Writer<'_>) -> Option<()> {
    let value = writer.tile(|value| value.shape.contains(&1))?;
    let mut shape = value.shape.clone();
    *shape.iter_mut().find(|extent| **extent == 1)? = writer.pick(&[2, 3, 5, 8, 16]);
    if !fits(&shape) {
        return None;
    }
    writer.bind(value.dtype, &shape, value.whole, &format!("broadcast_to({}, {})", value.name, list(&shape)));
    Some(())
}

/// Two tiles of one shape become one tile.
pub(crate) fn pair(writer: &mut Writer<'_>) -> Option<()> {
    let lhs = writer.tile(|_| true)?;
    let rhs = writer.tile(|value| value.shape == lhs.shape && (value.dtype == lhs.dtype || !value.dtype.is_float8()))?;
    let (other, most) = rhs.cast(lhs.dtype);
    let mut shape = lhs.shape.clone();
    let axis = writer.below(shape.len());
    let word = writer.pick(&["join", "interleave", "cat"]);
    match word {
        "join" => shape.push(2),
        "interleave" => *shape.last_mut()? *= 2,
        _ => shape[axis] *= 2,
    }
    if !fits(&shape) {
        return None;
    }
    let option = if word == "cat" { format!(", axis = {axis}") } else { String::new() };
    let whole = lhs.whole.zip(most).map(|(l, r)| l.max(r));
    writer.bind(lhs.dtype, &shape, whole, &format!("{word}({}, {other}{option})", lhs.name));
    Some(())
}

pub(crate) fn split(writer: &mut Writer<'_>) -> Option<()> {
    let value = writer.tile(|value| value.shape.len() > 1 && value.shape.ends_with(&[2]))?;
    let (first, second) = (writer.name(), writer.name());
    writer.line(format!("let ({first}, {second}) = split({});", value.name));
    for name in [first, second] {
        writer.declare_value(name, value.dtype, &value.shape[..value.shape.len() - 1], value.whole);
    }
    Some(())
}

/// The elements of a tile that another one names, some of which are not there.
pub(crate) fn gather(writer: &mut Writer<'_>) -> Option<()> {
    let value = writer.tile(|_| true)?;
    let axis = writer.below(value.shape.len());
    let same = |other: &[usize]| other.len() == value.shape.len() && (0..other.len()).all(|at| at == axis || other[at] == value.shape[at]);
    let indices = writer.tile(|indices| indices.is_int() && same(&indices.shape))?;
    let extent = value.shape[axis] + writer.pick(&[0, 0, 1]);
    let expression = format!("gather({}, {} as i64 % {extent}, {axis})", value.name, indices.name);
    writer.bind(value.dtype, &indices.shape, value.whole, &expression);
    Some(())
}
