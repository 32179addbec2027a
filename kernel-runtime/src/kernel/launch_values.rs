//! The launch values of a loaded variant, and their parameters in earlier launches.

use std::sync::{Mutex, PoisonError};

use kernel_lang::launch_value::{self, MOST_PARAMETERS};

/// The number of launches whose parameters are kept. A model launches a kernel with a few shapes, over and over.
const KEPT: usize = 8;

/// The launch values of a variant.
#[derive(Debug)]
pub(crate) struct LaunchValues {
    values: launch_value::LaunchValues,
    /// The words on which the values depend, and of each the bits.
    asked: Box<[(usize, u64)]>,
    computed: Mutex<Computed>,
}

#[derive(Debug, Default)]
struct Computed {
    launches: Vec<Launch>,
    /// The launch that the next one replaces.
    oldest: usize,
}

#[derive(Debug)]
struct Launch {
    grid: [u32; 3],
    /// The bits that are asked for, in the order of `LaunchValues::asked`.
    asked: Box<[u64]>,
    parameters: Box<[u64]>,
}

/// The parameters that follow those of the kernel, one a word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameters {
    words: [u64; MOST_PARAMETERS],
    count: usize,
}

impl Parameters {
    fn new(words: &[u64]) -> Parameters {
        let mut parameters = Parameters { words: [0; MOST_PARAMETERS], count: words.len() };
        parameters.words[..words.len()].copy_from_slice(words);
        parameters
    }

    #[inline]
    pub(crate) fn words(&self) -> &[u64] {
        &self.words[..self.count]
    }
}

impl LaunchValues {
    /// The launch values that the PTX states, if any.
    ///
    /// # Errors
    /// A description of what is wrong with the statement.
    pub(crate) fn of_ptx(ptx: &str) -> Result<Option<LaunchValues>, String> {
        let Some(values) = launch_value::LaunchValues::of_ptx(ptx)? else { return Ok(None) };
        if values.parameter_count() > MOST_PARAMETERS {
            return Err(format!(
                "the launch values have {} parameters, and at most {MOST_PARAMETERS} are allowed",
                values.parameter_count()
            ));
        }
        let asked = values.asked().iter().copied().enumerate().filter(|(_, bits)| *bits != 0).collect();
        Ok(Some(LaunchValues { values, asked, computed: Mutex::default() }))
    }

    /// The parameters for a launch with these words and this number of programs along each axis.
    #[inline]
    pub(crate) fn parameters(&self, words: &[&u64], grid: [u32; 3]) -> Parameters {
        let mut computed = self.computed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_alike = |launch: &&Launch| {
            launch.grid == grid && self.asked.iter().zip(&launch.asked).all(|((word, bits), asked)| *words[*word] & bits == *asked)
        };
        match computed.launches.iter().find(is_alike) {
            Some(launch) => Parameters::new(&launch.parameters),
            None => self.compute(&mut computed, words, grid),
        }
    }

    #[cold]
    fn compute(&self, computed: &mut Computed, words: &[&u64], grid: [u32; 3]) -> Parameters {
        let words: Vec<u64> = words.iter().map(|word| **word).collect();
        let asked = self.asked.iter().map(|(word, bits)| words[*word] & bits).collect();
        let launch = Launch { grid, asked, parameters: self.values.parameters(&words, grid).into() };
        let parameters = Parameters::new(&launch.parameters);
        if computed.launches.len() < KEPT {
            computed.launches.push(launch);
        } else {
            computed.launches[computed.oldest] = launch;
            computed.oldest = (computed.oldest + 1) % KEPT;
        }
        parameters
    }
}
