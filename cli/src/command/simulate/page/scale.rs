//! Axes: where ticks are, and what they say.

/// A tick: where it is, from 0 to 1, and what it says.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// From 0 to 1.
    pub at: f64,
    /// What it says.
    pub text: String,
}

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3_600.0;
const DAY: f64 = 86_400.0;

/// Steps of time that people count in, in seconds.
#[rustfmt::skip]
const STEPS: [f64; 27] = [
    1.0, 2.0, 5.0, 10.0, 30.0,
    MINUTE, 2.0 * MINUTE, 5.0 * MINUTE, 10.0 * MINUTE, 30.0 * MINUTE,
    HOUR, 2.0 * HOUR, 3.0 * HOUR, 6.0 * HOUR, 12.0 * HOUR,
    DAY, 2.0 * DAY, 3.0 * DAY, 5.0 * DAY, 7.0 * DAY, 10.0 * DAY, 15.0 * DAY, 30.0 * DAY, 60.0 * DAY, 100.0 * DAY,
    200.0 * DAY, 365.0 * DAY,
];
/// Most ticks of an axis, without that at 0.
const TICKS_MAX: f64 = 6.0;

/// Ticks of a time axis that ends after so many seconds.
pub fn times(end_seconds: f64) -> Vec<Tick> {
    let end = end_seconds.max(1.0);
    let widest = STEPS.last().copied().unwrap_or(DAY);
    let step = STEPS.into_iter().find(|step| end / step <= TICKS_MAX);
    let step = step.unwrap_or_else(|| (end / widest / TICKS_MAX).ceil() * widest);
    let ticks = (0..=7).map(|number| f64::from(number) * step).take_while(|at| *at <= end);
    ticks.map(|at| Tick { at: at / end, text: duration(at) }).collect()
}

/// A duration of one unit: `5 min`, `2 h`, `10 d`.
fn duration(seconds: f64) -> String {
    match seconds {
        0.0 => "0".to_owned(),
        at if at < MINUTE => format!("{at} s"),
        at if at < HOUR => format!("{} min", at / MINUTE),
        at if at < DAY => format!("{} h", at / HOUR),
        at => format!("{} d", at / DAY),
    }
}

/// Ticks of an axis of waits, which is logarithmic from a second to the longest.
pub fn waits(longest_seconds: f64) -> Vec<Tick> {
    const MARKS: [(f64, &str); 12] = [
        (1.0, "1 s"),
        (10.0, "10 s"),
        (MINUTE, "1 min"),
        (10.0 * MINUTE, "10 min"),
        (HOUR, "1 h"),
        (6.0 * HOUR, "6 h"),
        (DAY, "1 d"),
        (5.0 * DAY, "5 d"),
        (20.0 * DAY, "20 d"),
        (100.0 * DAY, "100 d"),
        (400.0 * DAY, "400 d"),
        (2_000.0 * DAY, "2000 d"),
    ];
    let end = longest_seconds.max(10.0);
    let shown = MARKS.into_iter().filter(|(at, _)| *at <= end);
    shown.map(|(at, text)| Tick { at: at.ln() / end.ln(), text: text.to_owned() }).collect()
}

/// Round numbers from 0 up, and where the axis ends.
pub fn counts(most: f64) -> (Vec<Tick>, f64) {
    let most = most.max(1.0);
    let power = 10_f64.powf(most.log10().floor());
    let step = [0.25, 0.5, 1.0, 2.5].into_iter().map(|part| part * power).find(|step| most / step <= 4.0);
    let step = step.unwrap_or(power).max(1.0);
    let end = (most / step).ceil() * step;
    let ticks = (0..=4).map(|number| f64::from(number) * step).take_while(|at| *at <= end);
    (ticks.map(|at| Tick { at: at / end, text: short(at) }).collect(), end)
}

/// A number in few letters.
fn short(number: f64) -> String {
    if number >= 10_000.0 { format!("{}k", number / 1_000.0) } else { format!("{number}") }
}

/// Ticks of a share.
pub fn shares() -> Vec<Tick> {
    [0, 25, 50, 75, 100].map(|percent| Tick { at: f64::from(percent) / 100.0, text: format!("{percent} %") }).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(ticks: &[Tick]) -> String {
        ticks.iter().map(|tick| tick.text.as_str()).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn ticks_are_few_and_round() {
        for (seconds, want) in [
            (0.2, "0, 1 s"),
            (45.0, "0, 10 s, 20 s, 30 s, 40 s"),
            (7_200.0, "0, 30 min, 1 h, 1.5 h, 2 h"),
            (200_000.0, "0, 12 h, 1 d, 1.5 d, 2 d"),
            (5.4e6, "0, 15 d, 30 d, 45 d, 60 d"),
            (3e8, "0, 730 d, 1460 d, 2190 d, 2920 d"),
        ] {
            let ticks = times(seconds);
            assert_eq!(said(&ticks), want);
            assert!(ticks.iter().all(|tick| tick.at <= 1.0), "{seconds}");
        }
        for (most, want, end) in [(0.0, "0, 1", 1.0), (3.2, "0, 1, 2, 3, 4", 4.0), (730.0, "0, 250, 500, 750", 750.0)] {
            let (ticks, last) = counts(most);
            assert_eq!((said(&ticks).as_str(), last), (want, end));
        }
        assert_eq!(said(&waits(5_000.0)), "1 s, 10 s, 1 min, 10 min, 1 h");
    }
}
