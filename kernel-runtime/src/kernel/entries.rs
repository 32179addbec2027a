//! The entries of a variant, and which of them runs a launch: the usual one, or the persistent one if there is one for such launches. The function of an entry is loaded
//! when a launch first runs it.

use std::borrow::Cow;
use std::sync::Arc;

use kernel_lang::Schedule;
use kernel_lang::launch_value::PersistentEntry;
use kernel_lang::launch_value::persistent_entry::{MappedTensor, TensorMap};

use crate::kernel::gpu::Image;
use crate::kernel::launch_values::LaunchValues;
use crate::kernel::on_demand::OnDemand;
use crate::kernel::persistent::{Persistent, Prepared};
use crate::kernel::tensor_map::EncodedMap;
use crate::{Result, launch::grid};

/// What the text of a variant states of its entries.
pub(crate) struct Stated {
    launch_values: Option<LaunchValues>,
    persistent: Option<(PersistentEntry, kernel_lang::launch_value::LaunchValues)>,
}

/// The entries of a variant. `F` is a function of the device.
#[derive(Debug)]
pub(crate) struct Entries<F> {
    /// The usual entry.
    function: OnDemand<F>,
    schedule: Schedule,
    /// The most bytes of shared memory that a CTA of the usual entry uses.
    shared_bytes: u32,
    /// The values that the usual entry takes after the kernel's own parameters.
    launch_values: Option<LaunchValues>,
    persistent: Option<Persistent<OnDemand<F>>>,
}

/// How a launch calls a function, apart from the kernel's own parameters.
pub(crate) struct Call<'e, F> {
    pub(crate) function: &'e F,
    /// The number of CTAs along each axis.
    pub(crate) ctas: [u32; 3],
    /// The threads of a CTA.
    pub(crate) threads: u32,
    /// The bytes of shared memory of a CTA.
    pub(crate) shared_bytes: u32,
    added: Added<'e>,
}

enum Added<'e> {
    LaunchValues(Cow<'e, [u64]>),
    Persistent(Arc<Prepared>),
}

impl Stated {
    /// Reads the text of an image. A device with less than `most_shared_bytes` for a CTA has no persistent entry that takes them.
    ///
    /// # Errors
    /// A description of what is wrong with the text.
    pub(crate) fn of(image: &Image<'_>, most_shared_bytes: u32) -> Result<Stated, String> {
        let persistent = PersistentEntry::of_ptx(image.ptx)?;
        Ok(Stated {
            launch_values: LaunchValues::of_ptx(image.ptx)?,
            persistent: persistent.filter(|(entry, _)| entry.shared_bytes <= most_shared_bytes),
        })
    }

    /// The persistent entry.
    pub(crate) fn persistent(&self) -> Option<&PersistentEntry> {
        self.persistent.as_ref().map(|(entry, _)| entry)
    }

    /// The entries of an image with these functions of the device.
    pub(crate) fn entries<F>(
        self,
        image: &Image<'_>,
        function: OnDemand<F>,
        persistent: Option<OnDemand<F>>,
        multiprocessors: u64,
    ) -> Entries<F> {
        let persistent = self.persistent.zip(persistent);
        Entries {
            function,
            schedule: image.schedule,
            shared_bytes: image.shared_bytes,
            launch_values: self.launch_values,
            persistent: persistent.map(|((entry, values), function)| Persistent::new(function, entry, values, multiprocessors)),
        }
    }
}

impl<F> Entries<F> {
    /// Loads the functions of all entries.
    pub(crate) fn load(&self) -> Result<()> {
        self.function.get()?;
        self.persistent.iter().try_for_each(|persistent| persistent.function.get().map(drop))
    }

    /// How a kernel of this name is launched with these words and this number of programs along each axis. `encode` makes a tensor map. The function is loaded, if this is
    /// the first launch of its entry.
    ///
    /// # Errors
    /// [`Error::GridTooLarge`](crate::Error::GridTooLarge), and those of loading.
    #[inline]
    pub(crate) fn call(
        &self,
        kernel: &'static str,
        words: &[&u64],
        grid: [u32; 3],
        encode: impl Fn(&TensorMap, &MappedTensor) -> Option<EncodedMap>,
    ) -> Result<Call<'_, F>> {
        let ctas = grid::of_ctas(grid, self.schedule.num_ctas, kernel)?;
        if let Some(persistent) = &self.persistent
            && let Some(prepared) = persistent.prepare(words, grid, encode)
        {
            let Persistent { function, threads, shared_bytes, .. } = persistent;
            let (ctas, threads, shared_bytes) = ([prepared.ctas, 1, 1], *threads, *shared_bytes);
            return Ok(Call { function: function.get()?, ctas, threads, shared_bytes, added: Added::Persistent(prepared) });
        }
        let (added, fewer) = match &self.launch_values {
            Some(values) => {
                let added = values.parameters(words, grid);
                let fewer = values.shared_bytes(&added);
                (added, fewer)
            }
            None => (Cow::default(), None),
        };
        let (threads, shared_bytes) = (self.schedule.threads(), fewer.unwrap_or(self.shared_bytes));
        Ok(Call { function: self.function.get()?, ctas, threads, shared_bytes, added: Added::LaunchValues(added) })
    }
}

impl<F> Call<'_, F> {
    /// The parameters after the kernel's own: words, of which the function takes the low bytes, then tensor maps.
    #[inline]
    pub(crate) fn added(&self) -> (&[u64], &[EncodedMap]) {
        match &self.added {
            Added::LaunchValues(words) => (words, &[]),
            Added::Persistent(prepared) => (&prepared.parameters, &prepared.maps),
        }
    }
}
