//! The kernel of a recorded launch with its types and constants, as a key of maps.

use super::recorder::{RecordedArg, RecordedLaunch, Value};

/// A kernel with types and constants. Launches with equal ones run the same code.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LaunchVariant {
    /// The address of the kernel, which is a static.
    kernel: usize,
    key: Vec<u64>,
}

impl RecordedLaunch {
    /// The kernel with its types and constants.
    pub fn variant(&self) -> LaunchVariant {
        LaunchVariant { kernel: std::ptr::from_ref(self.kernel).addr(), key: self.key.clone() }
    }

    /// Calls the function with the value of each tensor that the launch takes, to replace it by a value of the same type.
    pub fn map_values(&mut self, map: &mut dyn FnMut(Value) -> Value) {
        for arg in &mut self.args {
            if let RecordedArg::Tensor { value, .. } = arg {
                *value = map(*value);
            }
        }
    }
}
