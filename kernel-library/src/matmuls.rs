//! Products of matrices by the tensor cores, with batches and epilogues. Workspaces for odd row lengths are in `matmuls/padding.rs`,
//! and the checks of shapes in `matmuls/plan.rs`.

mod padding;
mod plan;
mod scaled;

use galatea::prelude::*;

use crate::call::Call;
use crate::stages::ranges;
use crate::{AsTensor, AsTensorMut, kernels};

pub use padding::Padding;
use padding::{Operand, padded};
use plan::Plan;
pub use scaled::{Byte, ScaledMatmul};

/// A type whose products [`Matmul`] computes: a [`Half`], or `f32` by [`Matmul::tf32`].
pub trait Factor: Float + sealed::Factor {}

impl Factor for f16 {}
impl Factor for bf16 {}
impl Factor for f32 {}

/// A type of 16 bits that tensor cores multiply: `f16` or `bf16`.
pub trait Half: Factor {}

impl Half for f16 {}
impl Half for bf16 {}

mod sealed {
    pub trait Factor {}
    impl Factor for galatea::prelude::f16 {}
    impl Factor for galatea::prelude::bf16 {}
    impl Factor for f32 {}
}

/// A function that a product applies to each element before it is rounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Activation {
    /// `v`.
    #[default]
    None,
    /// `max(v, 0)`, NaN for NaN.
    Relu,
    /// `v / (1 + exp(-v))`.
    Silu,
    /// `v / 2 * (1 + erf(v / sqrt(2)))`, the exact function.
    Gelu,
}

impl Activation {
    /// The number of the function in the kernels.
    fn number(self) -> usize {
        match self {
            Activation::None => 0,
            Activation::Relu => 1,
            Activation::Silu => 2,
            Activation::Gelu => 3,
        }
    }
}

/// The product of two matrices, or of each pair of matrices of a batch: `[.., rows, inner]` and `[.., inner, columns]` give `[.., rows, columns]`.
///
/// The leading axes of both are the same, or one operand is a single matrix, which is multiplied by each matrix of the other. `f16` and `bf16` are accepted; products are
/// exact, sums are `f32`, and each result is rounded once. [`Matmul`] has the same product of transposed matrices, with a bias and more, and products of `f32` that are
/// rounded to `tf32`. Exact products of `f32` and `f64` are in [`ops::matmul`](mod@crate::ops::matmul), those of 8-bit types in [`ScaledMatmul`].
///
/// # Errors
/// [`Error::ArgumentShape`] or [`Error::ArgumentDevice`] for tensors that do not match, or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let half = |numbers: &[f32]| numbers.iter().map(|number| f16::from_f32(*number)).collect::<Vec<f16>>();
/// let a = device.tensor_from(&half(&[1.0, 2.0, 3.0, 4.0]), [2, 2])?;
/// let b = device.tensor_from(&half(&[1.0, 10.0]), [2, 1])?;
/// assert_eq!(kernel_library::matmul(&a, &b)?.to_vec()?, half(&[21.0, 43.0]));
/// # Ok(())
/// # }
/// ```
pub fn matmul<T: Half>(a: &impl AsTensor<T>, b: &impl AsTensor<T>) -> Result<Tensor<T>> {
    Matmul::new().product(a, b)
}

/// [`matmul()`] into a tensor that exists already, of any [`Float`].
///
/// # Errors
/// As [`matmul()`], and if `y` has another shape than the product.
pub fn matmul_into<T: Half, O: Float>(a: &impl AsTensor<T>, b: &impl AsTensor<T>, y: &mut impl AsTensorMut<O>) -> Result<()> {
    Matmul::new().product_into(a, b, y)
}

/// The gated product of SwiGLU (arXiv 2002.05202), `silu(x * gate) * (x * up)`, in one launch that reads `x` once.
///
/// `x` is `[.., rows, inner]`, `gate` and `up` are `[inner, columns]`, and the result is `[.., rows, columns]`. [`Matmul::gated_product`] has the other activations and
/// layouts.
///
/// # Errors
/// As [`matmul()`].
pub fn matmul_gated<T: Half>(x: &impl AsTensor<T>, gate: &impl AsTensor<T>, up: &impl AsTensor<T>) -> Result<Tensor<T>> {
    Matmul::new().activation(Activation::Silu).gated_product(x, gate, up)
}

/// A product of matrices with options: `y = activation(scale * a * b + bias) + residual`, computed in `f32` and rounded once.
///
/// Options that are not named have no effect. `product` and its variants have the conventions of [`matmul()`].
///
/// | option | effect |
/// |---|---|
/// | `transposed_a()` | `a` is `[.., inner, rows]` |
/// | `transposed_b()` | `b` is `[.., columns, inner]`, as the weight of a linear layer |
/// | `scale(number)` | multiplies each sum |
/// | `bias(&bias)` | adds an element for each column, `[columns]` |
/// | `row_bias(&bias)` | adds an element for each row of a matrix, `[rows]`, in place of `bias` |
/// | `activation(function)` | applies an [`Activation`] |
/// | `residual(&residual)` | adds a tensor of the shape of the result |
/// | `padding(rule)`, `workspace(&mut tensor)` | see [`Padding`] |
///
/// Each combination of layouts, bias, activation and residual is a variant, which is compiled and tuned at its first launch. For other epilogues, call the device
/// function [`kernels::matmul_block`] in a kernel of your own.
///
/// ```
/// # use galatea::prelude::*;
/// use kernel_library::{Activation, Matmul};
///
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let one = |number: f32| f16::from_f32(number);
/// let (x, weight) = (device.full([4, 3], one(0.5))?, device.full([2, 3], one(-2.0))?);
/// let bias = device.tensor(&[one(1.0), one(10.0)])?;
/// let y = Matmul::new().transposed_b().bias(&bias).activation(Activation::Relu).product(&x, &weight)?;
/// assert_eq!((y.shape(), &y.to_vec()?[..2]), (&[4, 2][..], &[one(0.0), one(7.0)][..]));
///
/// // The sums themselves, which would be rounded otherwise.
/// let sums = Matmul::new().transposed_b().product_as::<f32>(&x, &weight)?;
/// assert_eq!(sums.to_vec()?, [-3.0; 8]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "`product` computes the product"]
pub struct Matmul<'a, T: Factor> {
    transposed_a: bool,
    transposed_b: bool,
    scale: f32,
    bias: Bias<'a, T>,
    activation: Activation,
    residual: Option<TensorView<'a, T>>,
    padding: Padding,
    workspace: Option<TensorViewMut<'a, T>>,
}

#[derive(Debug)]
enum Bias<'a, T: Factor> {
    None,
    OfColumns(TensorView<'a, T>),
    OfRows(TensorView<'a, T>),
}

impl<T: Half> Default for Matmul<'_, T> {
    fn default() -> Self {
        Matmul::new()
    }
}

impl<T: Half> Matmul<'_, T> {
    /// The product of [`matmul()`].
    pub fn new() -> Self {
        Matmul::without_options()
    }
}

impl Matmul<'_, f32> {
    /// A product of `f32` by the tensor cores: elements are rounded to the nearest of `tf32`, which has 10 bits of fraction. Products of these are exact, and sums are `f32`.
    ///
    /// ```
    /// # use galatea::prelude::*;
    /// # fn main() -> galatea::Result<()> {
    /// let (a, b) = (Device::cpu().full([2, 4], 1.0 + 2f32.powi(-12))?, Device::cpu().full([4, 3], 0.5f32)?);
    /// assert_eq!(kernel_library::Matmul::tf32().product(&a, &b)?.to_vec()?, [2.0; 6]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn tf32() -> Self {
        Matmul::without_options()
    }
}

impl<'a, T: Factor> Matmul<'a, T> {
    fn without_options() -> Self {
        let (bias, activation, padding) = (Bias::None, Activation::None, Padding::WhenFaster);
        Matmul { transposed_a: false, transposed_b: false, scale: 1.0, bias, activation, residual: None, padding, workspace: None }
    }

    /// The matrices of `a` are stored as `[inner, rows]`.
    pub fn transposed_a(mut self) -> Self {
        self.transposed_a = true;
        self
    }

    /// The matrices of `b` are stored as `[columns, inner]`.
    pub fn transposed_b(mut self) -> Self {
        self.transposed_b = true;
        self
    }

    /// Multiplies each sum by a number.
    pub fn scale(mut self, scale: f32) -> Self {
        self.scale = scale;
        self
    }

    /// Adds `bias`, which has an element for each column. It replaces a bias of rows.
    pub fn bias(mut self, bias: &'a impl AsTensor<T>) -> Self {
        self.bias = Bias::OfColumns(bias.as_tensor());
        self
    }

    /// Adds `bias`, which has an element for each row of a matrix. It replaces a bias of columns.
    pub fn row_bias(mut self, bias: &'a impl AsTensor<T>) -> Self {
        self.bias = Bias::OfRows(bias.as_tensor());
        self
    }

    /// Applies a function to the scaled sums and the bias.
    pub fn activation(mut self, activation: Activation) -> Self {
        self.activation = activation;
        self
    }

    /// Adds a tensor of the shape of the result, behind the activation.
    pub fn residual(mut self, residual: &'a impl AsTensor<T>) -> Self {
        self.residual = Some(residual.as_tensor());
        self
    }

    /// When operands are copied into a workspace.
    pub fn padding(mut self, padding: Padding) -> Self {
        self.padding = padding;
        self
    }

    /// The tensor for copies of operands, of at least [`workspace_len`](Matmul::workspace_len) elements. Without it, a product that needs one allocates it.
    pub fn workspace(mut self, workspace: &'a mut impl AsTensorMut<T>) -> Self {
        self.workspace = Some(workspace.as_tensor_mut());
        self
    }

    /// The number of elements that both operands take in a [workspace](Padding): 0 if this product needs none.
    ///
    /// # Errors
    /// As [`Matmul::product`].
    pub fn workspace_len(&self, a: &impl AsTensor<T>, b: &impl AsTensor<T>) -> Result<usize> {
        let (a, b) = (a.as_tensor(), b.as_tensor());
        let call = Call::new("matmul", "a", &a);
        let plan = self.plan(&call, ("a", &a), ("b", &b))?;
        Ok(self.padding.lens(call.device(), &plan.problem(), [&a, &b].map(Operand::of)).iter().sum())
    }

    /// The product, of the type of the operands.
    ///
    /// # Errors
    /// [`Error::ArgumentShape`] or [`Error::ArgumentDevice`] for tensors that do not match, or an error of an allocation or a launch.
    pub fn product(self, a: &impl AsTensor<T>, b: &impl AsTensor<T>) -> Result<Tensor<T>> {
        self.product_as(a, b)
    }

    /// The product, of any [`Float`]: `f32` has the sums without another rounding.
    ///
    /// # Errors
    /// As [`Matmul::product`].
    pub fn product_as<O: Float>(self, a: &impl AsTensor<T>, b: &impl AsTensor<T>) -> Result<Tensor<O>> {
        let (a, b) = (a.as_tensor(), b.as_tensor());
        let call = Call::new("matmul", "a", &a);
        let plan = self.plan(&call, ("a", &a), ("b", &b))?;
        let mut y = call.empty(&plan.shape)?;
        self.launch(&call, &plan, a, b, y.view_mut())?;
        Ok(y)
    }

    /// The product, into a tensor that exists already.
    ///
    /// A call allocates nothing if it needs no [workspace](Padding) or has one, and then [`Replay::capture`](galatea::Replay::capture) accepts it.
    ///
    /// # Errors
    /// As [`Matmul::product`], and if `y` has another shape than the product.
    pub fn product_into<O: Float>(self, a: &impl AsTensor<T>, b: &impl AsTensor<T>, y: &mut impl AsTensorMut<O>) -> Result<()> {
        let (a, b, y) = (a.as_tensor(), b.as_tensor(), y.as_tensor_mut());
        let call = Call::new("matmul", "a", &a);
        let plan = self.plan(&call, ("a", &a), ("b", &b))?;
        plan.expect_result(&call, "y", &y.as_view(), "a")?;
        self.launch(&call, &plan, a, b, y)
    }

    /// Checks the shapes of the operands and of the epilogue.
    fn plan(&self, call: &Call<'_>, a: (&'static str, &TensorView<'_, T>), b: (&'static str, &TensorView<'_, T>)) -> Result<Plan> {
        let is_one = !matches!(self.bias, Bias::OfRows(_));
        let plan = Plan::new(call, a, b, [self.transposed_a, self.transposed_b], is_one)?;
        match &self.bias {
            Bias::None => {}
            Bias::OfColumns(bias) => plan.expect_bias(call, bias, plan.columns, "column")?,
            Bias::OfRows(bias) => plan.expect_bias(call, bias, plan.rows, "row")?,
        }
        if let Some(residual) = &self.residual {
            plan.expect_result(call, "residual", residual, a.0)?;
        }
        Ok(plan)
    }

    fn launch<O: Float>(
        mut self,
        call: &Call<'_>,
        plan: &Plan,
        a: TensorView<'_, T>,
        b: TensorView<'_, T>,
        mut y: TensorViewMut<'_, O>,
    ) -> Result<()> {
        if y.is_empty() {
            return Ok(());
        }
        let lens = self.padding.lens(call.device(), &plan.problem(), [&a, &b].map(Operand::of));
        let mut own = None;
        let workspace = match (lens.iter().sum(), self.workspace.take()) {
            (0, _) => None,
            (len, Some(workspace)) => {
                let (has, expected) = (workspace.len(), format!("at least {len} elements are expected: copies of the operands"));
                let help = "`Matmul::workspace_len` gives the number of elements";
                call.expect_device("workspace", &workspace.as_view())?;
                call.expect_value("workspace", format_args!("of {has} elements"), has >= len, expected, help)?;
                Some(workspace.reshape([has])?)
            }
            (len, None) => Some(own.insert(call.empty::<T>(&[len])?).view_mut()),
        };
        let strides = plan.strides([self.transposed_a, self.transposed_b]);
        let Some(workspace) = workspace else { return self.launch_batches(plan, [a, b], strides, y.view_mut()) };
        padded([a, b], workspace, lens, |operands, padded| {
            let strides = [0, 1].map(|of: usize| padded[of].unwrap_or(strides[of]));
            self.launch_batches(plan, operands, strides, y.view_mut())
        })
    }

    /// Launches the kernel for as many matrices at once as a grid has along its third axis.
    fn launch_batches<O: Float>(
        &self,
        plan: &Plan,
        operands: [TensorView<'_, T>; 2],
        [a_stride, b_stride]: [usize; 2],
        y: TensorViewMut<'_, O>,
    ) -> Result<()> {
        let Plan { rows, columns, inner, batches, .. } = *plan;
        let [a, b] = [flat(operands[0])?, flat(operands[1])?];
        let [a_batch, b_batch] = plan.batch_strides([self.transposed_a, self.transposed_b], [a_stride, b_stride]);
        let (bias, biased) = match self.bias {
            Bias::None => (a, 0),
            Bias::OfColumns(bias) => (bias, 1),
            Bias::OfRows(bias) => (bias, 2),
        };
        let has_residual = self.residual.is_some();
        let residual = self.residual.map_or(Ok(a), flat)?;
        let y_batch = rows * columns;
        let mut y = y.reshape([batches * y_batch])?;
        for range in ranges(batches) {
            let count = range.len();
            let residual = if has_residual { residual.slice(range.start * y_batch..range.end * y_batch)? } else { residual };
            kernels::matmul(
                a.slice(range.start * a_batch..)?,
                b.slice(range.start * b_batch..)?,
                bias,
                residual,
                &mut y.slice_mut(range.start * y_batch..range.end * y_batch)?,
                rows,
                columns,
                inner,
                a_stride,
                b_stride,
                columns,
                count,
                a_batch,
                b_batch,
                y_batch,
                self.transposed_a,
                self.transposed_b,
                biased,
                self.activation.number(),
                has_residual,
                self.scale,
            )
            .grid(|config| (cdiv(rows, config.ROWS), cdiv(columns, config.COLUMNS), count))
            .launch()?;
        }
        Ok(())
    }
}

impl<T: Half> Matmul<'_, T> {
    /// `activation(scale * x * gate) * (scale * x * up)`: two products in one launch that reads `x` once.
    ///
    /// `gate` and `up` have one shape and two axes: `[inner, columns]`, or `[columns, inner]` with [`transposed_b`](Matmul::transposed_b). Their rows are not copied into a
    /// workspace.
    ///
    /// # Errors
    /// As [`Matmul::product`], and [`Error::ArgumentValue`] if a bias or a residual is set.
    pub fn gated_product(self, x: &impl AsTensor<T>, gate: &impl AsTensor<T>, up: &impl AsTensor<T>) -> Result<Tensor<T>> {
        let (x, gate, up) = (x.as_tensor(), gate.as_tensor(), up.as_tensor());
        let call = Call::new("matmul_gated", "x", &x);
        let has_others = !matches!(self.bias, Bias::None) || self.residual.is_some();
        let (has, expected) = (format_args!("a bias or a residual"), "only a scale and an activation are expected");
        call.expect_value("epilogue", has, !has_others, expected, "add it to the result")?;
        let plan = self.plan(&call, ("x", &x), ("gate", &gate))?;
        call.expect("up", &up, gate.shape(), crate::call::Of::shape("gate"))?;
        if gate.shape().len() != 2 || plan.batches != 1 {
            let (expected, help) = ("one matrix is expected, and rows of `x` along its last axis", "launch each matrix of the batch");
            return Err(call.wrong_shape("gate", &gate, expected.to_owned(), help.to_owned()));
        }
        let mut y = call.empty(&plan.shape)?;
        if y.is_empty() {
            return Ok(y);
        }
        let Plan { rows, columns, inner, .. } = plan;
        let [a_stride, b_stride] = plan.strides([self.transposed_a, self.transposed_b]);
        kernels::matmul_gated(
            x,
            gate,
            up,
            &mut y,
            rows,
            columns,
            inner,
            a_stride,
            b_stride,
            columns,
            self.transposed_a,
            self.transposed_b,
            self.activation.number(),
            self.scale,
        )
        .grid(|config| (cdiv(rows, config.ROWS), cdiv(columns, config.COLUMNS)))
        .launch()?;
        Ok(y)
    }
}

fn flat<T: Element>(tensor: TensorView<'_, T>) -> Result<TensorView<'_, T>> {
    tensor.reshape([tensor.len()])
}
