//! Matrix instructions of a warp: fragment layouts, `mma.sync`, the older `wmma`, and the transfers of fragments (`ldmatrix`, `stmatrix`,
//! `movmatrix`). The arithmetic is in [`crate::numerics::matrix`].

pub(crate) mod fragment;
mod mma;
#[cfg(test)]
mod recorded;
mod transfer;
mod wmma;

pub(crate) use mma::decode as decode_mma;
pub(crate) use transfer::{decode_load as decode_ldmatrix, decode_move as decode_movmatrix, decode_store as decode_stmatrix};
pub(crate) use wmma::decode as decode_wmma;
