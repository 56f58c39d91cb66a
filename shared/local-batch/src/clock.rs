//! Time, as an argument: a run may be sped up, and then every timer here is divided while commands run as they are.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Says what time it is, and how long a stretch of that time really takes.
pub trait Clock: Send + Sync {
    /// Virtual milliseconds since 1970.
    fn now_ms(&self) -> i64;
    /// How long `virtual_ms` virtual milliseconds take on this machine; zero for nothing and for negative numbers.
    fn real_duration(&self, virtual_ms: i64) -> Duration;
}

/// The machine's clock, as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        real_now_ms()
    }

    fn real_duration(&self, virtual_ms: i64) -> Duration {
        Duration::from_millis(u64::try_from(virtual_ms).unwrap_or(0))
    }
}

/// A clock that runs `speed` times as fast as the machine's, from a given moment on.
#[derive(Clone, Copy, Debug)]
pub struct ScaledClock {
    origin_ms: i64,
    started: Instant,
    speed: f64,
}

impl ScaledClock {
    /// Starts at `origin_ms` virtual milliseconds since 1970 and runs `speed` times as fast; a speed that isn't a
    /// positive number counts as 1.
    #[must_use]
    pub fn new(origin_ms: i64, speed: f64) -> Self {
        let speed = if speed.is_finite() && speed > 0.0 { speed } else { 1.0 };
        Self { origin_ms, started: Instant::now(), speed }
    }
}

impl Clock for ScaledClock {
    fn now_ms(&self) -> i64 {
        self.origin_ms.saturating_add(whole(self.started.elapsed().as_secs_f64() * 1000.0 * self.speed))
    }

    fn real_duration(&self, virtual_ms: i64) -> Duration {
        Duration::try_from_secs_f64(float(virtual_ms) / 1000.0 / self.speed).unwrap_or(Duration::ZERO)
    }
}

/// The machine's clock in milliseconds since 1970; what supervisors write down, since they know no virtual time.
#[must_use]
pub fn real_now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The virtual time of a real moment in the past, never later than now.
pub(crate) fn virtual_ms(clock: &dyn Clock, real_ms: i64) -> i64 {
    const HOUR_MS: i64 = 3_600_000;
    let real_hour_ms = clock.real_duration(HOUR_MS).as_secs_f64() * 1000.0;
    let ago_ms = float(real_now_ms().saturating_sub(real_ms).max(0));
    let ago_virtual = if real_hour_ms > 0.0 { ago_ms * float(HOUR_MS) / real_hour_ms } else { 0.0 };
    clock.now_ms().saturating_sub(whole(ago_virtual))
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 stay far below 2^53")]
fn float(ms: i64) -> f64 {
    ms as f64
}

#[expect(clippy::cast_possible_truncation, reason = "`as` saturates, and virtual time stays far below 2^63 ms")]
fn whole(ms: f64) -> i64 {
    ms.round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scaled_clock_divides_durations_by_its_speed() {
        let clock = ScaledClock::new(1_000, 20.0);
        assert_eq!(clock.real_duration(30_000), Duration::from_millis(1_500));
        assert!(clock.now_ms() >= 1_000);
        assert_eq!(clock.real_duration(-5), Duration::ZERO);
    }

    #[test]
    fn a_real_moment_a_second_ago_is_twenty_virtual_seconds_ago_at_speed_twenty() {
        let clock = ScaledClock::new(1_000_000, 20.0);
        let ago = clock.now_ms() - virtual_ms(&clock, real_now_ms() - 1_000);
        assert!((19_900..=20_300).contains(&ago), "{ago}");
    }
}
