//! Virtual time: runs `speed` times as fast as real time, and never back.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use osprey_ports::Clock;
use serde::{Deserialize, Serialize};

use crate::database::{Database, Fault, OpenError};
use crate::schema::{CLOCK_ANCHOR, CLOCK_TOLD, meta, set_meta};

/// Fastest that virtual time may run.
pub const SPEED_MAX: f64 = 1_000_000.0;

/// Where virtual time stood at a real time. Both in microseconds since 1970.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Anchor {
    virtual_us: i64,
    real_us: i64,
    speed: f64,
}

impl Anchor {
    /// Virtual time at `real`. A real clock that was set back counts as one that stood still.
    fn virtual_at(self, real: Timestamp) -> Timestamp {
        let passed = real.as_microsecond().saturating_sub(self.real_us).max(0);
        at(self.virtual_us)
            .saturating_add(scaled(SignedDuration::from_micros(passed), self.speed))
            .unwrap_or(Timestamp::MAX)
    }
}

/// Virtual time = anchor + (real time − real time of the anchor) × speed.
///
/// Inside a process it follows the monotonic clock, so a system clock that is set has no effect on it. The anchor is
/// kept in the database, and so is, with every write, the latest time that was told: a clock that is opened again,
/// with whatever speed and whatever the system clock says by then, starts no earlier than that.
#[derive(Clone, Debug)]
pub struct ScaledClock {
    database: Arc<Database>,
    opened: Instant,
    start: Timestamp,
    speed: f64,
}

impl ScaledClock {
    /// Sets the speed from now on, by a new anchor. For the one process that runs the pipeline.
    ///
    /// # Errors
    ///
    /// A sentence for a speed that is not above 0 and at most [`SPEED_MAX`], and when the database can't be written.
    pub fn open(database: Arc<Database>, speed: f64) -> Result<Self, OpenError> {
        Self::open_at(database, speed, Timestamp::now())
    }

    fn open_at(database: Arc<Database>, speed: f64, real: Timestamp) -> Result<Self, OpenError> {
        if !(speed > 0.0 && speed <= SPEED_MAX) {
            return Err(OpenError(format!("the speed `{speed}` is not above 0 and at most {SPEED_MAX}")));
        }
        let start = database.write(|transaction| -> Result<_, Fault<OpenError>> {
            let (start, _) = standing(transaction, real)?;
            let anchor = Anchor { virtual_us: start.as_microsecond(), real_us: real.as_microsecond(), speed };
            set_meta(transaction, CLOCK_ANCHOR, serde_json::to_string(&anchor).unwrap_or_default())?;
            Ok(start)
        })?;
        Ok(Self { database, opened: Instant::now(), start, speed })
    }

    /// Joins the virtual time that the pipeline's process set, without a change; real time when none did. For every
    /// other process on the same directory. A later [`ScaledClock::open`] elsewhere does not reach this clock.
    ///
    /// # Errors
    ///
    /// A sentence when the database can't be read.
    pub fn join(database: Arc<Database>) -> Result<Self, OpenError> {
        let (start, speed) = database
            .read(|connection| -> Result<_, Fault<OpenError>> { Ok(standing(connection, Timestamp::now())?) })?;
        Ok(Self { database, opened: Instant::now(), start, speed })
    }

    /// How many times as fast as real time.
    #[must_use]
    pub fn speed(&self) -> f64 {
        self.speed
    }

    /// Real time until `then`; zero when it has come.
    #[must_use]
    pub fn real_time_until(&self, then: Timestamp) -> Duration {
        real_duration(then.duration_since(self.now()), self.speed)
    }
}

impl osprey_local_batch::Clock for ScaledClock {
    fn now_ms(&self) -> i64 {
        self.now().as_millisecond()
    }

    fn real_duration(&self, virtual_ms: i64) -> Duration {
        real_duration(SignedDuration::from_millis(virtual_ms), self.speed)
    }
}

impl Clock for ScaledClock {
    fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.opened.elapsed()).unwrap_or(SignedDuration::MAX);
        let now = self.start.saturating_add(scaled(passed, self.speed)).unwrap_or(Timestamp::MAX);
        // One more, since the rest below a microsecond is cut off.
        self.database.note_told(now.as_microsecond().saturating_add(1));
        now
    }
}

/// Virtual time and speed as the database knows them.
fn standing(connection: &rusqlite::Connection, real: Timestamp) -> rusqlite::Result<(Timestamp, f64)> {
    let anchor = meta::<String>(connection, CLOCK_ANCHOR)?.and_then(|text| serde_json::from_str::<Anchor>(&text).ok());
    let told = meta::<i64>(connection, CLOCK_TOLD)?.map_or(Timestamp::MIN, at);
    let now = anchor.map_or(real, |anchor| anchor.virtual_at(real));
    Ok((now.max(told), anchor.map_or(1.0, |anchor| anchor.speed)))
}

fn at(microseconds: i64) -> Timestamp {
    Timestamp::from_microsecond(microseconds).unwrap_or(Timestamp::MAX)
}

fn scaled(duration: SignedDuration, speed: f64) -> SignedDuration {
    SignedDuration::try_from_secs_f64(duration.as_secs_f64() * speed).unwrap_or(SignedDuration::MAX)
}

/// Zero for what has passed.
fn real_duration(duration: SignedDuration, speed: f64) -> Duration {
    let real = duration.as_secs_f64() / speed;
    Duration::try_from_secs_f64(real).unwrap_or(if real > 0.0 { Duration::MAX } else { Duration::ZERO })
}

/// What the local world needs of a clock: the time for the handlers, and for the local Batch also how long a stretch
/// of it really takes.
pub trait VirtualClock: Clock + osprey_local_batch::Clock {}

impl<C: Clock + osprey_local_batch::Clock> VirtualClock for C {}

/// A clock that stands until it is moved; for tests.
#[derive(Debug)]
pub struct ManualClock {
    now: Mutex<Timestamp>,
}

impl ManualClock {
    /// A clock that stands at `now`.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self { now: Mutex::new(now) }
    }

    /// Sets it, forward or back.
    pub fn set(&self, now: Timestamp) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// Moves it.
    pub fn advance(&self, by: SignedDuration) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        *now = now.saturating_add(by).unwrap_or(Timestamp::MAX);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Real time is what a [`ManualClock`] doesn't know: a stretch takes as long as it says.
impl osprey_local_batch::Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.now().as_millisecond()
    }

    fn real_duration(&self, virtual_ms: i64) -> Duration {
        real_duration(SignedDuration::from_millis(virtual_ms), 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database() -> Arc<Database> {
        Arc::new(Database::in_memory().unwrap())
    }

    fn seconds(n: i64) -> Timestamp {
        Timestamp::from_second(n).unwrap()
    }

    #[test]
    fn virtual_time_starts_at_real_time() {
        let clock = ScaledClock::open_at(database(), 60.0, seconds(1_000)).unwrap();
        assert_eq!(clock.start, seconds(1_000));
    }

    #[test]
    fn a_minute_at_speed_sixty_is_an_hour_after_reopening() {
        let database = database();
        ScaledClock::open_at(database.clone(), 60.0, seconds(1_000)).unwrap();
        let clock = ScaledClock::open_at(database, 1.0, seconds(1_060)).unwrap();
        assert_eq!(clock.start, seconds(4_600));
    }

    #[test]
    fn another_speed_goes_on_from_where_virtual_time_stood() {
        let database = database();
        ScaledClock::open_at(database.clone(), 60.0, seconds(1_000)).unwrap();
        ScaledClock::open_at(database.clone(), 1.0, seconds(1_060)).unwrap();
        let clock = ScaledClock::open_at(database, 10.0, seconds(1_070)).unwrap();
        assert_eq!(clock.start, seconds(4_610));
    }

    #[test]
    fn a_system_clock_that_steps_back_makes_virtual_time_stand_still() {
        let database = database();
        ScaledClock::open_at(database.clone(), 60.0, seconds(1_000)).unwrap();
        let clock = ScaledClock::open_at(database, 60.0, seconds(10)).unwrap();
        assert_eq!(clock.start, seconds(1_000));
    }

    #[test]
    fn a_time_that_was_told_and_written_is_never_ahead_of_a_reopened_clock() {
        let database = database();
        let clock = ScaledClock::open_at(database.clone(), 1_000_000.0, seconds(1_000)).unwrap();
        let told = clock.now();
        database.write(|_| -> Result<(), Fault<OpenError>> { Ok(()) }).unwrap();
        let again = ScaledClock::open_at(database, 1.0, seconds(900)).unwrap();
        assert!(again.start >= told, "{} < {told}", again.start);
    }

    #[test]
    fn one_process_joins_the_time_that_another_set() {
        let database = database();
        ScaledClock::open(database.clone(), 100.0).unwrap();
        let joined = ScaledClock::join(database).unwrap();
        assert_eq!(joined.speed(), 100.0);
    }

    #[test]
    fn joining_where_no_pipeline_ran_is_real_time() {
        let joined = ScaledClock::join(database()).unwrap();
        assert_eq!(joined.speed(), 1.0);
        assert!(Timestamp::now().duration_since(joined.now()).abs() < SignedDuration::from_secs(5));
    }

    #[test]
    fn time_never_runs_back_and_runs_fast() {
        let clock = ScaledClock::open(database(), 1_000.0).unwrap();
        let first = clock.now();
        std::thread::sleep(Duration::from_millis(20));
        let second = clock.now();
        assert!(second.duration_since(first) >= SignedDuration::from_secs(20));
    }

    #[test]
    fn the_wait_for_a_virtual_time_is_divided_by_the_speed() {
        let clock = ScaledClock::open(database(), 60.0).unwrap();
        let then = clock.now().saturating_add(SignedDuration::from_hours(1)).unwrap();
        let wait = clock.real_time_until(then).as_secs_f64();
        assert!((59.0..=60.0).contains(&wait), "{wait}");
        assert_eq!(clock.real_time_until(seconds(0)), Duration::ZERO);
    }

    #[test]
    fn a_speed_must_be_a_number_above_zero() {
        for speed in [0.0, -1.0, f64::NAN, f64::INFINITY, 2e6] {
            let error = ScaledClock::open(database(), speed).unwrap_err().to_string();
            let want = format!("the speed `{speed}` is not above 0 and at most 1000000");
            assert_eq!(error, want);
        }
    }

    #[test]
    fn virtual_time_stops_at_the_end_of_time() {
        let database = database();
        ScaledClock::open_at(database.clone(), SPEED_MAX, seconds(0)).unwrap();
        let clock = ScaledClock::open_at(database, 1.0, Timestamp::MAX).unwrap();
        assert!(clock.now() <= Timestamp::MAX);
    }
}
