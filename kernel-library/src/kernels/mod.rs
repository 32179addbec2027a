//! The kernels, which launch on tensors and sizes that the caller gives. The functions at the root of the crate call them.
//!
//! A kernel takes raw tensors, all sizes and outputs, and the caller chooses the grid. Call a kernel instead of a function at the root
//!
//! - inside [`Replay::capture`](galatea::Replay::capture), which cannot make tensors,
//! - to write into a tensor that exists already,
//! - to choose the stream, the configuration or the number of groups of a launch.
//!
//! A matrix is row-major and contiguous; those of [`matmul()`] may have distances between rows. Kernels of rows run one program per row: `softmax(&x, &mut y, columns).grid(|_| rows)`. Elementwise kernels
//! run one program per block: `swiglu(&gate, &up, &mut y, n).grid(|config| cdiv(n, config.BLOCK_SIZE))`. Sizes are not compared with the tensors; as in
//! every safe kernel, an element outside its tensor reads 0 and is not stored.
//!
//! The first launch for a number of columns times the configurations and keeps the fastest. In a configuration, `ONCE` states whether rows are read once
//! or twice, and `STAGES` how many rows are prefetched. Kernels that add to a tensor, or update it in place, are not tuned, because each timed run would
//! change the tensor: `adamw::<f32, 1024>(..).grid(cdiv(n, 1024))`.

mod activations;
mod elementwise;
mod embeddings;
mod linear;
mod losses;
mod matmuls;
mod norms;
mod norms_backward;
mod online;
mod optimizers;
mod positions;
mod products;
mod reductions;
mod rows;
mod scans;
mod selections;
mod softmaxes;
mod sums;
mod transposes;

pub use activations::{dropout, geglu, geglu_backward, swiglu, swiglu_backward};
pub use elementwise::{binary, convert, repeated, unary, unary_gradients};
pub use embeddings::{embedded, embedding, embedding_backward};
pub use linear::{linear, linear_f32};
pub use losses::{cross_entropy, cross_entropy_backward};
pub use matmuls::{
    matmul, matmul_block, matmul_gated, matmul_in_tiles, matmul_scaled, matmul_sums, padded_rows, product_block, product_sums,
};
pub use norms::{layer_norm, rms_norm};
pub use norms_backward::{layer_norm_backward, rms_norm_backward};
pub use optimizers::{adamw, adamw_counted, count_step, sgd};
pub use positions::{rope, rope_backward};
pub use products::products;
pub use reductions::{block_max, block_sum, column_max, column_sum, quotients, row_max, row_sum};
pub use rows::{
    cross_entropy_gradients, cross_entropy_rows, mean_of_losses, norm_gradients, norm_rows, norm_weight_parts, softmax_gradients,
    softmax_rows,
};
pub use scans::row_cumsum;
pub use selections::{bin_counts, block_argmax, group_argmax, row_argmax, row_topk};
pub use softmaxes::softmax;
pub use sums::{difference_gradients, sum_of_parts, sum_parts};
pub use transposes::transpose;
