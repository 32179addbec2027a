//! Kernels as users write them the first time: without cache hints, and with indices that are taken apart by `/` and `%` with sizes known at run time.
//!
//! The gallery shows how fast the compiler makes such kernels. They are not examples of how to write a fast kernel, and must not be optimised by hand;
//! `kernel-library` has kernels that are. Each module has kernels of one theme. A kernel is followed by its row, a [`Work`], which a test and a benchmark
//! use. `peers/` has the same kernels in Triton.
//!
//! To add a kernel:
//!
//! 1. Write the kernel, its [`Work`] and its launch in the module of its theme.
//! 2. Add the work to [`WORKS`].
//! 3. Write a function of the same name in the file of the same theme in `peers/`.

pub mod elementwise;
pub mod layout_moves;
pub mod norms;
mod philox;
pub mod pooling;
pub mod quantise;
pub mod reductions;
pub mod scatter;
pub mod sequences;
pub mod shifts;
pub mod softmaxes;
pub mod work;

pub use work::Work;

/// All works, in the order of the benchmark.
pub const WORKS: &[Work] = &[
    pooling::MAX_POOL,
    pooling::BILINEAR_UPSAMPLE,
    elementwise::DROPOUT_RESIDUAL,
    elementwise::BIAS_RELU,
    elementwise::GELU_GATE,
    elementwise::MASKED_FILL,
    elementwise::ROPE_INTERLEAVED,
    elementwise::RANDOM_INIT,
    pooling::AVERAGE_POOL,
    layout_moves::NEAREST_UPSAMPLE,
    layout_moves::HEADS_TRANSPOSED,
    layout_moves::PIXEL_SHUFFLE,
    layout_moves::IM2COL,
    layout_moves::NCHW_TO_NHWC,
    layout_moves::NHWC_TO_NCHW,
    layout_moves::REPEAT_KV,
    shifts::ROLL,
    shifts::REFLECT_PAD,
    shifts::STRIDED_COPY,
    shifts::BROADCAST_ADD,
    norms::GROUP_NORM,
    norms::RMS_NORM_BACKWARD,
    quantise::ROW_QUANTISE,
    quantise::GROUP_QUANTISE,
    quantise::GROUP_DEQUANTISE,
    softmaxes::CAUSAL_SOFTMAX,
    softmaxes::LOG_SOFTMAX,
    softmaxes::LOG_SOFTMAX_BACKWARD,
    softmaxes::KL_DIVERGENCE,
    reductions::MIDDLE_MOMENTS,
    reductions::FIRST_AXIS_ARGMAX,
    reductions::ROW_MAX_INDEX,
    reductions::ROW_CUMSUM,
    reductions::ROW_TOPK,
    reductions::RAGGED_MEAN,
    scatter::SCATTER_ADD,
    scatter::INDEX_SELECT,
    scatter::EMBEDDING_BAG,
    scatter::BIN_COUNTS,
    sequences::ADAMW_LIST,
    sequences::CAUSAL_CONV1D,
];
