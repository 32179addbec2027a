//! The launch values of a loaded variant, and the answers of earlier launches.

use std::sync::{Mutex, PoisonError};

use kernel_lang::launch_value::{self, MOST_PARAMETERS};

/// The number of launches whose answers are kept. A model launches a kernel with a few shapes, over and over.
const KEPT: usize = 8;

/// The launch values of a variant.
#[derive(Debug)]
pub(crate) struct LaunchValues {
    tests: launch_value::LaunchValues,
    /// The words on which the answers depend, and of each the bits.
    asked: Box<[(usize, u64)]>,
    answered: Mutex<Answered>,
}

#[derive(Debug, Default)]
struct Answered {
    answers: Vec<Answer>,
    /// The answer that the next one replaces.
    oldest: usize,
}

#[derive(Debug)]
struct Answer {
    grid: [u32; 3],
    /// The bits that are asked for, in the order of `LaunchValues::asked`.
    asked: Box<[u64]>,
    parameters: Parameters,
}

/// The parameters that follow those of the kernel, one a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    words: [u64; MOST_PARAMETERS],
    count: usize,
}

impl Parameters {
    pub(crate) fn words(&self) -> &[u64] {
        &self.words[..self.count]
    }
}

impl LaunchValues {
    /// The tests that the PTX states, if any.
    ///
    /// # Errors
    /// A description of what is wrong with the statement.
    pub(crate) fn of_ptx(ptx: &str) -> Result<Option<LaunchValues>, String> {
        let Some(tests) = launch_value::LaunchValues::of_ptx(ptx)? else { return Ok(None) };
        if tests.parameter_count() > MOST_PARAMETERS {
            return Err(format!(
                "the launch values have {} parameters, and at most {MOST_PARAMETERS} are allowed",
                tests.parameter_count()
            ));
        }
        let asked = tests.asked().iter().copied().enumerate().filter(|(_, bits)| *bits != 0).collect();
        Ok(Some(LaunchValues { tests, asked, answered: Mutex::default() }))
    }

    /// The parameters for a launch with these words and this number of programs along each axis.
    pub(crate) fn parameters(&self, words: &[&u64], grid: [u32; 3]) -> Parameters {
        let asked = || self.asked.iter().map(|(word, bits)| *words[*word] & bits);
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let known = answered.answers.iter().find(|answer| answer.grid == grid && answer.asked.iter().copied().eq(asked()));
        if let Some(known) = known {
            return known.parameters;
        }
        let words: Vec<u64> = words.iter().map(|word| **word).collect();
        let mut parameters = Parameters { words: [0; MOST_PARAMETERS], count: 0 };
        for parameter in self.tests.parameters(&words, grid) {
            parameters.words[parameters.count] = parameter;
            parameters.count += 1;
        }
        let answer = Answer { grid, asked: self.asked.iter().map(|(word, bits)| words[*word] & bits).collect(), parameters };
        if answered.answers.len() < KEPT {
            answered.answers.push(answer);
        } else {
            let oldest = answered.oldest;
            answered.answers[oldest] = answer;
            answered.oldest = (oldest + 1) % KEPT;
        }
        parameters
    }
}
