//! Products of 8-bit floats and integers, with scales.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use galatea::prelude::*;

use super::plan::Plan;
use super::{Activation, flat};
use crate::call::Call;
use crate::stages::ranges;
use crate::{AsTensor, AsTensorMut, kernels};

/// A type of 8 bits that tensor cores multiply: `f8e4m3`, `f8e5m2`, `i8` or `u8`.
pub trait Byte: Element + sealed::Byte {
    /// The type of the sums: `f32` of floats, `i32` of integers. Two types with the same sums are multiplied.
    type Sum;
}

impl Byte for f8e4m3 {
    type Sum = f32;
}
impl Byte for f8e5m2 {
    type Sum = f32;
}
impl Byte for i8 {
    type Sum = i32;
}
impl Byte for u8 {
    type Sum = i32;
}

mod sealed {
    pub trait Byte {}
    impl Byte for galatea::prelude::f8e4m3 {}
    impl Byte for galatea::prelude::f8e5m2 {}
    impl Byte for i8 {}
    impl Byte for u8 {}
}

/// A product of 8-bit floats, or of 8-bit integers: `y = activation(a * b * a_scale * b_scale + bias) + residual`, of any [`Float`] `O`.
///
/// `a` is `[.., rows, inner]`, `b` is `[.., inner, columns]`, and the result is `[.., rows, columns]`, with batches as in [`matmul()`](crate::matmul()). Sums of floats are
/// `f32`; a Hopper GPU adds with about 14 bits of each product, see [`dot`](galatea::dsl::dot). Sums of integers are `i32`, which wrap. The epilogue is computed in `f32`, and each
/// result is rounded once.
///
/// | option | effect |
/// |---|---|
/// | `transposed_a()` | `a` is `[.., inner, rows]` |
/// | `transposed_b()` | `b` is `[.., columns, inner]`, as the weight of a linear layer: the layout that Hopper GPUs multiply the fastest |
/// | `scales(&a_scales, &b_scales)` | multiplies each sum; each tensor has one element, or those of `a` one for each row, and those of `b` one for each column |
/// | `bias(&bias)` | adds an element for each column |
/// | `activation(function)` | applies an [`Activation`] |
/// | `residual(&residual)` | adds a tensor of the shape of the result |
///
/// ```
/// # use galatea::prelude::*;
/// use kernel_library::ScaledMatmul;
///
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let (a, b) = (device.full([2, 64], 100i8)?, device.full([3, 64], -2i8)?);
/// let (a_scales, b_scales) = (device.tensor(&[0.5f32, 0.25])?, device.tensor(&[0.01f32])?);
/// let y: Tensor<f32> = ScaledMatmul::new().transposed_b().scales(&a_scales, &b_scales).product(&a, &b)?;
/// assert_eq!(y.to_vec()?, [-64.0, -64.0, -64.0, -32.0, -32.0, -32.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "`product` computes the product"]
pub struct ScaledMatmul<'a, O: Float> {
    transposed: [bool; 2],
    scales: Option<[TensorView<'a, f32>; 2]>,
    bias: Option<TensorView<'a, O>>,
    activation: Activation,
    residual: Option<TensorView<'a, O>>,
}

impl<O: Float> Default for ScaledMatmul<'_, O> {
    fn default() -> Self {
        ScaledMatmul::new()
    }
}

impl<'a, O: Float> ScaledMatmul<'a, O> {
    /// `y = a * b`.
    pub fn new() -> Self {
        ScaledMatmul { transposed: [false; 2], scales: None, bias: None, activation: Activation::None, residual: None }
    }

    /// The matrices of `a` are stored as `[inner, rows]`.
    pub fn transposed_a(mut self) -> Self {
        self.transposed[0] = true;
        self
    }

    /// The matrices of `b` are stored as `[columns, inner]`.
    pub fn transposed_b(mut self) -> Self {
        self.transposed[1] = true;
        self
    }

    /// Multiplies each sum by the scale of its row and that of its column.
    pub fn scales(mut self, a: &'a impl AsTensor<f32>, b: &'a impl AsTensor<f32>) -> Self {
        self.scales = Some([a.as_tensor(), b.as_tensor()]);
        self
    }

    /// Adds `bias`, which has an element for each column.
    pub fn bias(mut self, bias: &'a impl AsTensor<O>) -> Self {
        self.bias = Some(bias.as_tensor());
        self
    }

    /// Applies a function to the scaled sums and the bias.
    pub fn activation(mut self, activation: Activation) -> Self {
        self.activation = activation;
        self
    }

    /// Adds a tensor of the shape of the result, behind the activation.
    pub fn residual(mut self, residual: &'a impl AsTensor<O>) -> Self {
        self.residual = Some(residual.as_tensor());
        self
    }

    /// The product.
    ///
    /// # Errors
    /// [`Error::ArgumentShape`] or [`Error::ArgumentDevice`] for tensors that do not match, or an error of an allocation or a launch.
    pub fn product<A: Byte, B: Byte<Sum = A::Sum>>(self, a: &impl AsTensor<A>, b: &impl AsTensor<B>) -> Result<Tensor<O>> {
        let (a, b) = (a.as_tensor(), b.as_tensor());
        let call = Call::new("scaled_matmul", "a", &a);
        let plan = self.plan(&call, &a, &b)?;
        let mut y = call.empty(&plan.shape)?;
        self.launch(&plan, a, b, y.view_mut())?;
        Ok(y)
    }

    /// The product, into a tensor that exists already. A call allocates nothing.
    ///
    /// # Errors
    /// As [`ScaledMatmul::product`], and if `y` has another shape than the product.
    pub fn product_into<A: Byte, B: Byte<Sum = A::Sum>>(
        self,
        a: &impl AsTensor<A>,
        b: &impl AsTensor<B>,
        y: &mut impl AsTensorMut<O>,
    ) -> Result<()> {
        let (a, b, y) = (a.as_tensor(), b.as_tensor(), y.as_tensor_mut());
        let call = Call::new("scaled_matmul", "a", &a);
        let plan = self.plan(&call, &a, &b)?;
        plan.expect_result(&call, "y", &y.as_view(), "a")?;
        self.launch(&plan, a, b, y)
    }

    fn plan<A: Byte, B: Byte>(&self, call: &Call<'_>, a: &TensorView<'_, A>, b: &TensorView<'_, B>) -> Result<Plan> {
        // Scales of rows are those of each matrix.
        let is_one = self.scales.is_none_or(|[a, _]| a.len() == 1);
        let plan = Plan::new(call, ("a", a), ("b", b), self.transposed, is_one)?;
        if let Some([a_scales, b_scales]) = &self.scales {
            let of = [("a_scales", a_scales, plan.shape[plan.shape.len() - 2], "row"), ("b_scales", b_scales, plan.columns, "column")];
            for (name, scales, len, what) in of {
                call.expect_device(name, scales)?;
                if scales.len() != 1 && scales.shape() != [len] {
                    let expected = format!("[1] or [{len}] is expected: one for all, or one for each {what} of the result");
                    let help = format!("the result has the shape {:?}", plan.shape);
                    return Err(call.wrong_shape(name, scales, expected, help));
                }
            }
        }
        if let Some(bias) = &self.bias {
            plan.expect_bias(call, bias, plan.columns, "column")?;
        }
        if let Some(residual) = &self.residual {
            plan.expect_result(call, "residual", residual, "a")?;
        }
        Ok(plan)
    }

    /// Launches the kernel for as many matrices at once as a grid has along its third axis.
    fn launch<A: Byte, B: Byte>(&self, plan: &Plan, a: TensorView<'_, A>, b: TensorView<'_, B>, y: TensorViewMut<'_, O>) -> Result<()> {
        if y.is_empty() {
            return Ok(());
        }
        let Plan { rows, columns, inner, batches, .. } = *plan;
        let strides = plan.strides(self.transposed);
        let ([a_batch, b_batch], y_batch) = (plan.batch_strides(self.transposed, strides), rows * columns);
        let (a, b, mut y) = (flat(a)?, flat(b)?, y.reshape([batches * y_batch])?);
        let [a_scales, b_scales] = match self.scales {
            Some([of_a, of_b]) => [flat(of_a)?, flat(of_b)?],
            None => [nothing(y.device())?.view(); 2],
        };
        let step = |scales: &TensorView<'_, f32>| usize::from(scales.len() > 1);
        let bias = self.bias.map_or_else(|| Ok(nothing(y.device())?.view()), Ok::<_, Error>)?;
        let residual = self.residual.map_or_else(|| Ok(nothing(y.device())?.view()), flat)?;
        for range in ranges(batches) {
            let (count, of_y) = (range.len(), range.start * y_batch..range.end * y_batch);
            let residual = if self.residual.is_some() { residual.slice(of_y.clone())? } else { residual };
            kernels::matmul_scaled(
                a.slice(range.start * a_batch..)?,
                b.slice(range.start * b_batch..)?,
                a_scales,
                b_scales,
                bias,
                residual,
                &mut y.slice_mut(of_y)?,
                rows,
                columns,
                inner,
                strides[0],
                strides[1],
                columns,
                count,
                a_batch,
                b_batch,
                y_batch,
                step(&a_scales),
                step(&b_scales),
                self.transposed[0],
                self.transposed[1],
                self.scales.is_some(),
                self.bias.is_some(),
                self.activation.number(),
                self.residual.is_some(),
            )
            .grid(|config| (cdiv(rows, config.ROWS), cdiv(columns, config.COLUMNS), count))
            .launch()?;
        }
        Ok(())
    }
}

/// A tensor without elements, in place of one that a kernel does not read. There is one for each device and type, so that a call allocates nothing.
fn nothing<T: Element>(device: Device) -> Result<&'static Tensor<T>> {
    type Known = HashMap<(Device, TypeId), &'static (dyn Any + Send + Sync)>;
    static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (device, TypeId::of::<T>());
    if let Some(tensor) = known.get(&key).and_then(|tensor| tensor.downcast_ref()) {
        return Ok(tensor);
    }
    let tensor: &'static Tensor<T> = Box::leak(Box::new(device.empty(0)?));
    known.insert(key, tensor);
    Ok(tensor)
}
