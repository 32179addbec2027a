//! Statistics of the times of repeated runs.

/// Statistics of run times, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// The median.
    pub median_us: f64,
    /// The 20th percentile.
    pub p20_us: f64,
    /// The 80th percentile.
    pub p80_us: f64,
    /// The minimum.
    pub min_us: f64,
    /// The mean.
    pub mean_us: f64,
    /// The number of timed runs.
    pub samples: usize,
}

impl Stats {
    /// The statistics of times in microseconds, in any order. Without times, every value is NaN.
    pub fn of(mut times: Vec<f64>) -> Stats {
        times.sort_by(f64::total_cmp);
        let quantile = |q: f64| {
            let at = q * times.len().saturating_sub(1) as f64;
            let (low, high) = (at.floor() as usize, at.ceil() as usize);
            match (times.get(low), times.get(high)) {
                (Some(low), Some(high)) => low + (high - low) * at.fract(),
                _ => f64::NAN,
            }
        };
        Stats {
            median_us: quantile(0.5),
            p20_us: quantile(0.2),
            p80_us: quantile(0.8),
            min_us: quantile(0.0),
            mean_us: times.iter().sum::<f64>() / times.len() as f64,
            samples: times.len(),
        }
    }

    /// The bandwidth in GB/s, if a run moves that many bytes.
    pub fn gb_per_s(&self, bytes: usize) -> f64 {
        bytes as f64 / self.median_us * 1e-3
    }

    /// The throughput in TFLOP/s, if a run performs that many operations.
    pub fn tflops(&self, operations: f64) -> f64 {
        operations / self.median_us * 1e-6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate() {
        let stats = Stats::of(vec![5.0, 1.0, 2.0, 4.0, 3.0, 6.0]);
        assert_eq!((stats.median_us, stats.p20_us, stats.p80_us), (3.5, 2.0, 5.0));
        assert_eq!((stats.min_us, stats.mean_us, stats.samples), (1.0, 3.5, 6));
        assert!(Stats::of(Vec::new()).median_us.is_nan());
        assert_eq!((stats.gb_per_s(7000), stats.tflops(7e6)), (2.0, 2.0));
    }
}
