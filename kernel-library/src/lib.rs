//! Kernels that models are made of, written in the kernel language, each for every float type.
//!
//! A matrix is row-major, its rows one behind the other. Kernels of rows run a program a row: `softmax(&x, &mut y, columns).grid(|_| rows)`; those of
//! elements a program a block: `swiglu(&gate, &up, &mut y, n).grid(|config| cdiv(n, config.BLOCK_SIZE))`. Everything is computed in `f32`, whatever the
//! elements are, and rounded once. Which configuration is the fastest is measured at the first launch with a number of columns; `ONCE` in a
//! configuration says whether rows are read once or twice, and `STAGES` how many rows are under way. Kernels that add to what is there, or update it
//! in place, are not tuned, since every launch of a race would count: `adamw::<f32, 1024>(..).grid(cdiv(n, 1024))`.

mod activations;
mod embeddings;
mod losses;
mod norms;
mod norms_backward;
mod online;
mod optimizers;
mod positions;
mod reductions;
mod scans;
mod selections;
mod softmaxes;
mod transposes;

pub use activations::{dropout, geglu, geglu_backward, swiglu, swiglu_backward};
pub use embeddings::{embedding, embedding_backward};
pub use losses::{cross_entropy, cross_entropy_backward};
pub use norms::{layer_norm, rms_norm};
pub use norms_backward::{layer_norm_backward, rms_norm_backward};
pub use optimizers::adamw;
pub use positions::{rope, rope_backward};
pub use reductions::{block_sum, column_sum, row_max, row_sum};
pub use scans::row_cumsum;
pub use selections::{bin_counts, row_argmax, row_topk};
pub use softmaxes::softmax;
pub use transposes::transpose;
