//! placeholder
use crate::instructions::Form;
use crate::instructions::lanewise::{Decoded, no_type};
use crate::ptx::Type;
pub(super) fn add(form: &mut Form<'_>, ty: Type) -> Decoded {
    Err(no_type(form, ty))
}
pub(super) fn sub(form: &mut Form<'_>, ty: Type) -> Decoded {
    Err(no_type(form, ty))
}
pub(super) fn mul(form: &mut Form<'_>, ty: Type) -> Decoded {
    Err(no_type(form, ty))
}
pub(super) fn mad(form: &mut Form<'_>, ty: Type) -> Decoded {
    Err(no_type(form, ty))
}
pub(super) fn div(form: &mut Form<'_>, ty: Type) -> Decoded {
    Err(no_type(form, ty))
}
pub(super) fn abs(form: &mut Form<'_>, ty: Type) -> Decoded {
    Err(no_type(form, ty))
}
pub(super) fn neg(form: &mut Form<'_>, ty: Type) -> Decoded {
    Err(no_type(form, ty))
}
pub(super) fn min(form: &mut Form<'_>, ty: Type) -> Decoded {
    Err(no_type(form, ty))
}
pub(super) fn max(form: &mut Form<'_>, ty: Type) -> Decoded {
    Err(no_type(form, ty))
}
