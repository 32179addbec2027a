//! The fixture of every test: a device, random numbers, inputs at odd addresses, and outputs that detect writes beside them.

#[path = "../lab/random.rs"]
mod random;

use galatea::prelude::*;
use galatea::{TensorView, TensorViewMut};

use crate::value::Value;

/// Lengths that are multiples of nothing, and their neighbours that are.
pub(crate) const SIZES: [usize; 10] = [0, 1, 63, 64, 65, 1000, 4095, 4096, 4097, 100_003];

/// Elements on each side of a slice: more than the widest access, and than a tile of 64.
const MARGIN: usize = 67;

/// A device and a source of random numbers.
pub(crate) struct Lab {
    pub(crate) device: Device,
    state: u64,
}

/// A slice of a larger tensor, which starts at any element.
pub(crate) struct Input<T> {
    tensor: Tensor<T>,
    start: usize,
    len: usize,
}

/// A slice of a larger tensor to write to; all of it starts as noise.
pub(crate) struct Output<T> {
    tensor: Tensor<T>,
    noise: Vec<T>,
    start: usize,
    len: usize,
}

impl Lab {
    /// Elements of any bits, every third of moderate size, every eighth a corner of the type.
    pub(crate) fn values<T: Value>(&mut self, len: usize) -> Vec<T> {
        const CORNERS: [f64; 13] =
            [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 0.5, 65504.0, f64::MIN_POSITIVE];
        (0..len)
            .map(|_| match self.below(24) {
                0..3 => T::near(CORNERS[self.below(CORNERS.len())]),
                3..11 => T::near(self.between(-100.0, 100.0)),
                // Shifted down, so that small types see all their patterns and large ones small numbers too.
                11..14 => T::from_bits(self.random() >> self.below(64)),
                _ => T::from_bits(self.random()),
            })
            .collect()
    }

    /// Elements of an interval.
    pub(crate) fn numbers<T: Value>(&mut self, len: usize, low: f64, high: f64) -> Vec<T> {
        (0..len).map(|_| T::near(self.between(low, high))).collect()
    }

    /// A copy of `data` that starts 0 to 4 elements behind an aligned address, among noise.
    pub(crate) fn input<T: Value>(&mut self, data: &[T]) -> Input<T> {
        let shift = self.below(5);
        self.input_at(data, shift)
    }

    /// A copy of `data` that starts `shift` elements behind an aligned address, among noise.
    pub(crate) fn input_at<T: Value>(&mut self, data: &[T], shift: usize) -> Input<T> {
        let start = MARGIN.next_multiple_of(16) + shift;
        let mut all: Vec<T> = self.values(start + data.len() + MARGIN);
        all[start..start + data.len()].copy_from_slice(data);
        Input { tensor: self.device.tensor(&all).unwrap(), start, len: data.len() }
    }

    /// Room for `len` elements that starts 0 to 4 elements behind an aligned address.
    pub(crate) fn output<T: Value>(&mut self, len: usize) -> Output<T> {
        let shift = self.below(5);
        self.output_at(len, shift)
    }

    /// Room for `len` elements that starts `shift` elements behind an aligned address.
    pub(crate) fn output_at<T: Value>(&mut self, len: usize, shift: usize) -> Output<T> {
        let start = MARGIN.next_multiple_of(16) + shift;
        let noise: Vec<T> = self.values(start + len + MARGIN);
        Output { tensor: self.device.tensor(&noise).unwrap(), noise, start, len }
    }

    /// A tensor that holds `data`, for kernels that change it in place.
    pub(crate) fn in_place<T: Value>(&mut self, data: &[T]) -> Output<T> {
        let shift = self.below(5);
        self.in_place_at(data, shift)
    }

    /// The same, `shift` elements behind an aligned address.
    pub(crate) fn in_place_at<T: Value>(&mut self, data: &[T], shift: usize) -> Output<T> {
        let mut output = self.output_at(data.len(), shift);
        output.slice().copy_from_slice(data).unwrap();
        output.noise[output.start..output.start + output.len].copy_from_slice(data);
        output
    }
}

impl<T: Value> Input<T> {
    pub(crate) fn slice(&self) -> TensorView<'_, T> {
        self.tensor.slice(self.start..self.start + self.len).unwrap()
    }
}

impl<T: Value> Output<T> {
    pub(crate) fn slice(&mut self) -> TensorViewMut<'_, T> {
        self.tensor.slice_mut(self.start..self.start + self.len).unwrap()
    }

    /// The initial elements of the slice.
    pub(crate) fn before(&self) -> &[T] {
        &self.noise[self.start..self.start + self.len]
    }

    /// The slice's elements, if everything around them is untouched.
    #[track_caller]
    pub(crate) fn read(&self) -> Vec<T> {
        let all = self.tensor.to_vec().unwrap();
        let (start, end) = (self.start, self.start + self.len);
        for i in (0..start).chain(end..all.len()) {
            let index = i as i64 - start as i64;
            assert!(all[i].bits() == self.noise[i].bits(), "element {index} outside the slice of {} was written: {:?}", self.len, all[i]);
        }
        all[start..end].to_vec()
    }
}
