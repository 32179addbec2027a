//! `add sub mul mad fma div rem abs neg min max`: selects the integer, floating-point or extended-precision (`.cc`) module.
//!
//! PTX uses one opcode for these operations; the type selects the operation.

use crate::instructions::lanewise::Decoded;
use crate::instructions::{Form, extended, float, integer};

/// `add`
pub(super) fn add(form: &mut Form<'_>) -> Decoded {
    if form.flag("cc") {
        return extended::add(form, false, true);
    }
    let ty = form.ty()?;
    if ty.is_float() { float::add(form, ty) } else { integer::add(form, ty) }
}

/// `sub`
pub(super) fn sub(form: &mut Form<'_>) -> Decoded {
    if form.flag("cc") {
        return extended::sub(form, false, true);
    }
    let ty = form.ty()?;
    if ty.is_float() { float::sub(form, ty) } else { integer::sub(form, ty) }
}

/// `mul`
pub(super) fn mul(form: &mut Form<'_>) -> Decoded {
    let ty = form.ty()?;
    if ty.is_float() { float::mul(form, ty) } else { integer::mul(form, ty) }
}

/// `mad`
pub(super) fn mad(form: &mut Form<'_>) -> Decoded {
    if form.flag("cc") {
        return extended::mad(form, false, true);
    }
    let ty = form.ty()?;
    if ty.is_float() { float::mad(form, ty) } else { integer::mad(form, ty) }
}

/// `div`
pub(super) fn div(form: &mut Form<'_>) -> Decoded {
    let ty = form.ty()?;
    if ty.is_float() { float::div(form, ty) } else { integer::div(form, ty) }
}

/// `abs`
pub(super) fn abs(form: &mut Form<'_>) -> Decoded {
    let ty = form.ty()?;
    if ty.is_float() { float::abs(form, ty) } else { integer::abs(form, ty) }
}

/// `neg`
pub(super) fn neg(form: &mut Form<'_>) -> Decoded {
    let ty = form.ty()?;
    if ty.is_float() { float::neg(form, ty) } else { integer::neg(form, ty) }
}

/// `min`
pub(super) fn min(form: &mut Form<'_>) -> Decoded {
    let ty = form.ty()?;
    if ty.is_float() { float::min(form, ty) } else { integer::min(form, ty) }
}

/// `max`
pub(super) fn max(form: &mut Form<'_>) -> Decoded {
    let ty = form.ty()?;
    if ty.is_float() { float::max(form, ty) } else { integer::max(form, ty) }
}
