//! Means and confidence intervals over seeds.

use osprey_sim::metrics::mean;

/// Quantiles of Student's t at 97.5 % for 1 to 30 degrees of freedom; beyond, the normal distribution's will do.
const T_975: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
const NORMAL_975: f64 = 1.960;

/// A mean and half of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// How far the interval reaches to either side; 0 of one value.
    pub half: f64,
}

impl Spread {
    /// Of these values, one for each seed.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let mean = mean(values);
        let Some(freedom) = values.len().checked_sub(1).filter(|freedom| *freedom > 0) else {
            return Self { mean, half: 0.0 };
        };
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / freedom as f64 / values.len() as f64).sqrt();
        let quantile = T_975.get(freedom - 1).copied().unwrap_or(NORMAL_975);
        Self { mean, half: quantile * error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students() {
        let spread = Spread::of(&[1.0, 2.0, 3.0]);
        // Deviation 1, error 1/√3, t(2) = 4.303.
        assert!((spread.mean - 2.0).abs() < 1e-9 && (spread.half - 4.303 / 3.0_f64.sqrt()).abs() < 1e-9);
        assert_eq!(Spread::of(&[5.0]), Spread { mean: 5.0, half: 0.0 });
        assert!(Spread::of(&[0.0, 1.0].repeat(50)).half < 0.1);
    }
}
