//! The types of an op's signature as those of a schema.

/// Returns whether the type is `&[&T]`.
pub(super) fn is_slice_of_references(ty: &syn::Type) -> bool {
    match ty {
        syn::Type::Reference(reference) => match &*reference.elem {
            syn::Type::Slice(slice) => matches!(&*slice.elem, syn::Type::Reference(_)),
            _ => false,
        },
        syn::Type::Group(group) => is_slice_of_references(&group.elem),
        syn::Type::Paren(paren) => is_slice_of_references(&paren.elem),
        _ => false,
    }
}

/// The type of a parameter in a schema; `Tensor!` for a tensor that is written.
pub(super) fn schema_type(ty: &syn::Type) -> Option<&'static str> {
    match ty {
        syn::Type::Reference(reference) => match &*reference.elem {
            syn::Type::Slice(slice) if reference.mutability.is_none() => match schema_type(&slice.elem) {
                _ if last_word(&slice.elem).as_deref() == Some("Tensor") => Some("Tensor[]"),
                Some("Tensor") => Some("Tensor[]"),
                _ => None,
            },
            elem => match (last_word(elem)?.as_str(), reference.mutability) {
                ("Tensor", Some(_)) => Some("Tensor!"),
                ("Tensor", None) => Some("Tensor"),
                ("str", None) => Some("str"),
                ("Dim", None) => Some("SymInt"),
                _ => None,
            },
        },
        syn::Type::Group(group) => schema_type(&group.elem),
        syn::Type::Paren(paren) => schema_type(&paren.elem),
        ty => match last_word(ty)?.as_str() {
            "Option" => (schema_type(generic_of(ty)?)? == "Tensor").then_some("Tensor?"),
            "i8" | "i16" | "i32" | "i64" | "isize" | "u8" | "u16" | "u32" | "u64" | "usize" | "Dim" => Some("SymInt"),
            "f32" | "f64" => Some("float"),
            "bool" => Some("bool"),
            "Dtype" => Some("ScalarType"),
            _ => None,
        },
    }
}

/// The `T` of `Result<T>`.
pub(super) fn result_of(ty: &syn::Type) -> Option<&syn::Type> {
    (last_word(ty)? == "Result").then(|| generic_of(ty)).flatten()
}

/// The results in a schema.
pub(super) fn returned(ty: &syn::Type) -> Option<String> {
    match ty {
        syn::Type::Tuple(tuple) if tuple.elems.is_empty() => Some("()".to_owned()),
        syn::Type::Tuple(tuple) if (2..=3).contains(&tuple.elems.len()) => {
            let all = tuple.elems.iter().map(|elem| (last_word(elem)? == "Tensor").then_some("Tensor")).collect::<Option<Vec<_>>>()?;
            Some(format!("({})", all.join(", ")))
        }
        ty => match last_word(ty)?.as_str() {
            "Tensor" => Some("Tensor".to_owned()),
            "Vec" => (last_word(generic_of(ty)?)? == "Tensor").then(|| "Tensor[]".to_owned()),
            _ => None,
        },
    }
}

/// The last segment of a path.
fn last_word(ty: &syn::Type) -> Option<String> {
    match ty {
        syn::Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        syn::Type::Group(group) => last_word(&group.elem),
        syn::Type::Paren(paren) => last_word(&paren.elem),
        _ => None,
    }
}

/// The first generic argument of a path.
fn generic_of(ty: &syn::Type) -> Option<&syn::Type> {
    let syn::Type::Path(path) = ty else { return None };
    match &path.path.segments.last()?.arguments {
        syn::PathArguments::AngleBracketed(generics) => generics.args.iter().find_map(|argument| match argument {
            syn::GenericArgument::Type(ty) => Some(ty),
            _ => None,
        }),
        _ => None,
    }
}
