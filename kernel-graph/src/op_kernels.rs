//! The launches of an op: [`kernels`].

use std::fmt;

use kernel_runtime::Site;
use kernel_runtime::ops::recorder::RecordedLaunch;
use kernel_runtime::ops::{OpDef, OpResults, Tensor};

use crate::error::Result;
use crate::export::{Input, record};
use crate::text::LaunchHead;
use kernel_package::NodeOp;

/// A launch of an op. `Display` prints it in a line.
#[derive(Clone, Debug)]
pub struct OpKernel {
    launch: RecordedLaunch,
    ops: Vec<&'static OpDef>,
}

/// Lists the launches of a function, such as a call of an op: in the order of their execution, through all functions and ops that it calls.
///
/// The function is recorded once, with tensors of the given dtypes and extents, which may be named dims. Scalars are those that it passes. So the list has each iteration of a loop, and
/// the branch that is taken. No pass changes it: it also has launches whose results nobody needs. An opaque op has no launches, because its body is not recorded. Of an op with a
/// function for the CPU, the list has the launches of its body.
///
/// ```
/// use galatea::op;
/// use galatea::ops::{self, Any, Tensor};
/// use galatea::prelude::*;
/// use galatea::{Dim, Dtype};
/// use kernel_graph::{input, kernels};
///
/// #[kernel]
/// fn double<T: Float, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
///     let at = program_id(0) * BLOCK + arange(0, BLOCK);
///     let v = load(x + at, mask = at < n);
///     store(y + at, v + v, mask = at < n);
/// }
///
/// /// Doubles the elements several times.
/// #[op("mylib::double")]
/// fn doubled(x: &Tensor, times: usize) -> Result<Tensor> {
///     let (n, mut x) = (x.numel(), x.clone());
///     for _ in 0..times {
///         let mut y = x.empty_like()?;
///         double::<Any, 256>(&x, &mut y, &n).grid(n.cdiv(256)).launch()?;
///         x = y;
///     }
///     Ok(x)
/// }
///
/// # fn main() -> kernel_graph::Result<()> {
/// let x = || input("x", [&Dim::new("n", 0..=4096)], Dtype::F32);
/// let list = kernels(|[x]| doubled(x, 2), [x()])?;
/// assert_eq!(list.len(), 2);
/// assert_eq!(list[0].name(), "double");
/// assert!(list[0].to_string().starts_with("mylib::double: double<T = f32, BLOCK = 256> [cdiv(n, 256), 1, 1] in "));
///
/// // An op that is known by its name.
/// let op = ops::get("mylib::double")?;
/// let of_name = kernels(|[x]| op.call([x.into(), 2.into()]), [x()])?;
/// assert_eq!(of_name[1].hash(), list[1].hash());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`export`](crate::export()).
pub fn kernels<const N: usize, R: OpResults>(
    mut body: impl FnMut([&Tensor; N]) -> kernel_runtime::Result<R>,
    inputs: [Input; N],
) -> Result<Vec<OpKernel>> {
    let (graph, _) = record(|tensors| body(std::array::from_fn(|number| tensors[number])), inputs.into(), false)?;
    let mut calls = graph.calls.iter().peekable();
    // The calls around a node, the outermost first.
    let mut around = Vec::new();
    let mut kernels = Vec::new();
    for (number, node) in graph.plan.nodes.iter().enumerate() {
        around.extend(std::iter::from_fn(|| calls.next_if(|call| call.nodes.start <= number)));
        around.retain(|call| call.nodes.contains(&number));
        if let NodeOp::Launch(launch) = &node.op {
            kernels.push(OpKernel { launch: launch.clone(), ops: around.iter().map(|call| call.def).collect() });
        }
    }
    Ok(kernels)
}

impl OpKernel {
    /// The name of the kernel.
    pub fn name(&self) -> &'static str {
        self.launch.kernel()
    }

    /// The launch: its types and constants, grid, arguments and configurations.
    pub fn launch(&self) -> &RecordedLaunch {
        &self.launch
    }

    /// The line that launches the kernel.
    pub fn location(&self) -> &Site {
        self.launch.location()
    }

    /// The ops that contain the launch, the outermost first.
    pub fn ops(&self) -> &[&'static OpDef] {
        &self.ops
    }

    /// The BLAKE3 hash of the kernel's code, in hexadecimal: of its IR, which is generic over types and constants, without source locations. It is the same on all machines, and for all
    /// launches of the kernel. An edit of the kernel or of a device function that it calls changes it, and so does a version of Galatea that makes other IR.
    pub fn hash(&self) -> String {
        blake3::hash(self.launch.ir_without_locations().as_bytes()).to_hex().to_string()
    }
}

impl fmt::Display for OpKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for op in &self.ops {
            write!(f, "{}: ", op.name)?;
        }
        write!(f, "{} in {}", LaunchHead::of(&self.launch), self.location())
    }
}
