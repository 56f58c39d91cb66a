//! Times and durations as people and programs read them.

use jiff::Timestamp;

/// Milliseconds since 1970 as RFC 3339 in UTC, to the millisecond.
#[must_use]
pub fn rfc3339(ms: i64) -> String {
    let time = Timestamp::from_millisecond(ms).unwrap_or_default();
    format!("{time:.3}")
}

/// A duration in milliseconds in few letters: `0.4s`, `12s`, `3m05s`, `2h07m`, `4d03h`.
#[must_use]
pub fn short(ms: i64) -> String {
    let ms = ms.max(0);
    let seconds = ms / 1000;
    match seconds {
        0..10 => format!("{seconds}.{}s", ms % 1000 / 100),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc_3339_in_utc() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(1_764_000_000_123), "2025-11-24T16:00:00.123Z");
    }

    #[test]
    fn durations_take_few_letters() {
        for (ms, want) in [
            (-5, "0.0s"),
            (420, "0.4s"),
            (12_900, "12s"),
            (185_000, "3m05s"),
            (7_620_000, "2h07m"),
            (356_400_000, "4d03h"),
        ] {
            assert_eq!(short(ms), want);
        }
    }
}
