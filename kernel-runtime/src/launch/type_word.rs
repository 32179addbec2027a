//! The word of a type parameter in a launch's key: the code of the type that the launch names, or of the dtype of the arguments.

use kernel_lang::dtype::Dtype;

use crate::Error;
use crate::launch::args::Args;
use crate::ops::OpsError;
use crate::tensor::element::ElementArg;

/// A type parameter of a kernel, and the parameters of its type.
#[derive(Debug)]
pub struct TypeParam {
    /// The name.
    pub name: &'static str,
    /// The dtypes that the bound allows.
    pub allowed: &'static [Dtype],
    /// The tensors of its type, at least one, as indices among all tensors.
    pub tensors: &'static [usize],
    /// The scalars of its type, as names with the indices of their words.
    pub scalars: &'static [(&'static str, usize)],
}

impl<const WORDS: usize> Args<'_, WORDS> {
    /// The word for a type parameter, after all arguments of its type.
    #[inline]
    pub fn type_word<T: ElementArg>(&mut self, param: &'static TypeParam) -> u64 {
        let known = const {
            match T::KNOWN {
                Some(dtype) => Some(dtype.code()),
                None => None,
            }
        };
        known.unwrap_or_else(|| self.word_of_arguments(param))
    }

    /// The word for the dtype of the arguments. If they have none that the kernel allows, the launch does not run.
    #[cold]
    #[inline(never)]
    fn word_of_arguments(&mut self, param: &'static TypeParam) -> u64 {
        let TypeParam { name: parameter, allowed, tensors, scalars } = *param;
        let mut arguments = tensors.iter().filter_map(|tensor| self.dtype(*tensor));
        let Some((tensor, dtype)) = arguments.next() else { return 0 };
        let other = arguments.find(|(_, other)| *other != dtype);
        if let Some(second) = other {
            self.fail(|kernel, _| Error::Ops(OpsError::MixedDtypes { kernel, parameter, first: (tensor, dtype), second }));
        } else if !allowed.contains(&dtype) {
            self.fail(|kernel, _| Error::Ops(OpsError::DtypeNotAllowed { kernel, parameter, argument: tensor, found: dtype, allowed }));
        } else if !scalars.is_empty() {
            self.convert(scalars, tensor, dtype);
        }
        dtype.code()
    }

    /// Converts the numbers among these scalars to the dtype of a tensor.
    fn convert(&mut self, scalars: &[(&'static str, usize)], tensor: &'static str, dtype: Dtype) {
        for &(argument, index) in scalars {
            let numbers = &mut self.deferral().numbers;
            let Some(at) = numbers.iter().position(|(word, _)| *word == index) else { continue };
            let (_, number) = numbers.swap_remove(at);
            match number.word(dtype) {
                Some(word) => self.set_word(index, word),
                None => self.fail(|kernel, _| {
                    Error::Ops(OpsError::ScalarNotOfDtype { kernel, argument, number: number.to_string(), dtype, tensor })
                }),
            }
        }
        self.drop_vacant_deferral();
    }
}
