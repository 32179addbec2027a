//! Schemas of ops as data, for programs that name ops they were not compiled with.

/// The parts of a schema: `mylib::sort(Tensor x, bool descending) -> Tensor`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schema<'s> {
    /// The namespace and the name of the op.
    pub name: &'s str,
    /// The type and the name of each parameter.
    pub params: Vec<(&'s str, &'s str)>,
    /// The number of results; `None` for a list of any length.
    pub results: Option<usize>,
}

impl<'s> Schema<'s> {
    /// The parts of a text that `#[op]` writes. `None` for other texts.
    pub fn parse(text: &'s str) -> Option<Schema<'s>> {
        let (call, results) = text.rsplit_once(" -> ")?;
        let (name, params) = call.strip_suffix(')')?.split_once('(')?;
        let params = match params {
            "" => Vec::new(),
            params => params.split(", ").map(|param| param.rsplit_once(' ')).collect::<Option<_>>()?,
        };
        let results = match results {
            "Tensor[]" => None,
            "Tensor" => Some(1),
            "()" => Some(0),
            tuple => {
                let elements = tuple.strip_prefix('(')?.strip_suffix(')')?.split(", ");
                Some(elements.map(|element| (element == "Tensor").then_some(1)).sum::<Option<usize>>()?)
            }
        };
        Some(Schema { name, params, results })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_the_text() {
        let schema = Schema::parse("ns::f.out(Tensor x, Tensor(a!) y, Tensor[] all, SymInt n) -> (Tensor, Tensor)").unwrap();
        assert_eq!((schema.name, schema.results), ("ns::f.out", Some(2)));
        assert_eq!(schema.params, [("Tensor", "x"), ("Tensor(a!)", "y"), ("Tensor[]", "all"), ("SymInt", "n")]);
        let results = |text| Schema::parse(text).map(|schema| (schema.params.len(), schema.results));
        assert_eq!(results("ns::f() -> ()"), Some((0, Some(0))));
        assert_eq!(results("ns::f(Tensor? x) -> Tensor[]"), Some((1, None)));
        for text in
            ["", "ns::f", "ns::f(Tensor x)", "ns::f(Tensor) -> Tensor", "ns::f(Tensor x -> Tensor", "ns::f(Tensor x) -> (Tensor, int)"]
        {
            assert_eq!(Schema::parse(text), None, "{text}");
        }
    }
}
