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
    /// The mean of the middle half: of the times between the quartiles. The times of short kernels have two modes some 0.2 us apart, between which the median
    /// jumps. This mean changes less between repetitions, and outliers do not change it.
    pub middle_us: f64,
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
            mean_us: mean(&times),
            middle_us: mean(&times[times.len() / 4..times.len() - times.len() / 4]),
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

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate() {
        let stats = Stats::of(vec![5.0, 1.0, 2.0, 4.0, 3.0, 6.0]);
        assert_eq!((stats.median_us, stats.p20_us, stats.p80_us), (3.5, 2.0, 5.0));
        assert_eq!((stats.min_us, stats.mean_us, stats.samples), (1.0, 3.5, 6));
        assert!(Stats::of(Vec::new()).median_us.is_nan() && Stats::of(Vec::new()).middle_us.is_nan());
        assert_eq!((stats.gb_per_s(7000), stats.tflops(7e6)), (2.0, 2.0));
    }

    #[test]
    fn the_middle_leaves_out_a_quarter_at_each_end() {
        let middle = |times: &[f64]| Stats::of(times.to_vec()).middle_us;
        assert_eq!(middle(&[9.0, 1.0, 2.0, 100.0]), 5.5);
        assert_eq!(middle(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 70.0, 80.0]), 4.0);
        assert_eq!([middle(&[3.0]), middle(&[1.0, 2.0, 6.0])], [3.0; 2]);
        // Half of the times of each mode: the median of an odd number is one of them.
        let modes: Vec<f64> = (0..101).map(|time| if time < 50 { 4.8 } else { 5.0 }).collect();
        assert_eq!(Stats::of(modes.clone()).median_us, 5.0);
        assert!((4.88..4.92).contains(&middle(&modes)));
    }
}
