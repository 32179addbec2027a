//! Shapes of tiles: how a kernel addresses them, and which elements lie along an axis.

/// The extents of a tile in row-major order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Shape(pub(crate) Vec<usize>);

impl Shape {
    pub(crate) fn new(extents: &[usize]) -> Shape {
        Shape(extents.to_vec())
    }

    pub(crate) fn rank(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn numel(&self) -> usize {
        self.0.iter().product()
    }

    /// How far apart neighbours along an axis lie.
    pub(crate) fn stride(&self, axis: usize) -> usize {
        self.0[axis + 1..].iter().product()
    }

    /// Where an element is along each axis.
    pub(crate) fn coordinates(&self, index: usize) -> Vec<usize> {
        (0..self.rank()).map(|axis| index / self.stride(axis) % self.0[axis]).collect()
    }

    pub(crate) fn index(&self, coordinates: &[usize]) -> usize {
        coordinates.iter().enumerate().map(|(axis, at)| at * self.stride(axis)).sum()
    }

    /// The shape without an axis.
    pub(crate) fn without(&self, axis: usize) -> Shape {
        let extents = self.0.iter().enumerate().filter(|(at, _)| *at != axis);
        Shape(extents.map(|(_, extent)| *extent).collect())
    }

    /// The elements along an axis that an element of the shape without that axis stands for.
    pub(crate) fn line(&self, axis: usize, of: usize) -> impl Iterator<Item = usize> + use<> {
        let (stride, extent) = (self.stride(axis), self.0[axis]);
        let start = of / stride * stride * extent + of % stride;
        (0..extent).map(move |at| start + at * stride)
    }

    /// The indices of the elements, as the language writes a tile of them.
    pub(crate) fn offsets(&self) -> String {
        let terms = (0..self.rank()).map(|axis| {
            let axes: Vec<&str> = (0..self.rank()).map(|at| if at == axis { ".." } else { "None" }).collect();
            let axes = if axes.len() == 1 { String::new() } else { format!("[({})]", axes.join(", ")) };
            let stride = self.stride(axis);
            let range = format!("arange(0, {}){axes}", self.0[axis]);
            if stride == 1 { range } else { format!("{range} * {stride}") }
        });
        let terms: Vec<String> = terms.collect();
        if terms.is_empty() { "0".to_string() } else { terms.join(" + ") }
    }

    /// The extents as the language writes a shape.
    pub(crate) fn written(&self) -> String {
        format!("{:?}", self.0)
    }

    /// The extents in a case's name.
    pub(crate) fn name(&self) -> String {
        let extents: Vec<String> = self.0.iter().map(usize::to_string).collect();
        if extents.is_empty() { "scalar".to_string() } else { extents.join("x") }
    }
}
