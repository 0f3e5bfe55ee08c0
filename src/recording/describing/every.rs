//! Which observations a stream records.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What a predicate is told: iteration and physical time.
type Predicate = dyn Fn(i64, Option<f64>) -> bool + Send + Sync;

/// A time this near below a multiple of the interval counts as the multiple: sums of floating point
/// steps rarely meet it, and miss it by more the longer they are. In intervals; of their number; at
/// most.
const NEAR: (f64, f64, f64) = (1e-9, 1e-10, 1e-3);

/// Which observations a stream records: every one, every so many, or by another rule.
#[derive(Clone, Default)]
pub struct Every {
    sampling: Sampling,
    predicate: Option<Arc<Predicate>>,
}

/// The rule as it is kept with its stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(in crate::recording) enum Sampling {
    #[default]
    All,
    Iterations(u64),
    Time(f64),
    Wall(u64),
    ChangeOf(String),
    Predicate,
}

/// An observation, before anything of its state is looked at.
#[derive(Debug, Clone, Copy)]
pub(in crate::recording) struct Moment {
    pub iteration: i64,
    pub time: Option<f64>,
}

/// Whether an observation is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::recording) enum Due {
    Yes,
    No,
    /// When the watched field differs from what the last record saw.
    IfChanged,
}

impl fmt::Debug for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Every").field(&self.sampling).finish()
    }
}

impl Every {
    /// Every observation.
    pub fn observation() -> Self {
        Self::default()
    }

    /// Iterations 0, `interval`, twice that, and so on, whichever of them are observed; also below
    /// zero. Any interval but 0.
    pub fn iterations(interval: u64) -> Self {
        Self::of(Sampling::Iterations(interval))
    }

    /// The first observation, and then the first in each interval of physical time, counted from
    /// time 0, also below it. Any finite interval above 0.
    ///
    /// A time just below a multiple of the interval counts as the multiple: by 1e-9 of an interval,
    /// and by 1e-10 more for each interval that has passed, but never by more than 1e-3. So a sum of
    /// steps meets its multiples; steps much shorter than a thousandth of the interval may be taken
    /// one step early. Where time divided by the interval is beyond what a double holds, every
    /// later time is in an interval of its own.
    pub fn time(interval: f64) -> Self {
        Self::of(Sampling::Time(interval))
    }

    /// The first observation, and then the first that comes an interval of wall-clock time, or more,
    /// after the last that was recorded. The clock is one that is never set back; a recording that
    /// is resumed records its first observation. Any interval but 0; one above 584 years counts as
    /// that.
    pub fn wall(interval: Duration) -> Self {
        Self::of(Sampling::Wall(u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Observations in which the field called `field`, of any stream or none, has another value
    /// than in the last that was recorded, bit for bit.
    pub fn change_of(field: impl Into<String>) -> Self {
        Self::of(Sampling::ChangeOf(field.into()))
    }

    /// Observations for which `predicate`, told iteration and physical time, says so. It may not
    /// use the recorder.
    pub fn when(predicate: impl Fn(i64, Option<f64>) -> bool + Send + Sync + 'static) -> Self {
        Self { sampling: Sampling::Predicate, predicate: Some(Arc::new(predicate)) }
    }

    fn of(sampling: Sampling) -> Self {
        Self { sampling, predicate: None }
    }

    /// The rule of a stream that goes on; a predicate picks nothing.
    pub(in crate::recording) fn again(sampling: Sampling) -> Self {
        Self::of(sampling)
    }

    pub(in crate::recording) fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// The field that it watches.
    pub(in crate::recording) fn watched(&self) -> Option<&str> {
        match &self.sampling {
            Sampling::ChangeOf(field) => Some(field),
            _ => None,
        }
    }

    /// Whether it goes by wall-clock time.
    pub(in crate::recording) fn is_by_wall(&self) -> bool {
        matches!(self.sampling, Sampling::Wall(_))
    }

    /// Whether it goes by physical time.
    pub(in crate::recording) fn is_by_time(&self) -> bool {
        matches!(self.sampling, Sampling::Time(_))
    }

    /// What is wrong with it, if anything is, for records that are `timed` or not.
    pub(in crate::recording) fn fault(&self, timed: bool) -> Option<String> {
        match self.sampling {
            Sampling::Iterations(0) | Sampling::Wall(0) => Some("its interval is zero".into()),
            Sampling::Time(interval) if !(interval > 0.0 && interval.is_finite()) => {
                Some(format!("its interval {interval} is not above zero and finite"))
            }
            Sampling::Time(_) if !timed => {
                Some("it goes by physical time, and the records have none".into())
            }
            _ => None,
        }
    }

    /// Whether the observation at `now` is recorded, after a record at `last`.
    pub(in crate::recording) fn due(
        &self,
        now: Moment,
        last: Option<(i64, Option<f64>)>,
        is_wall_due: impl FnOnce(u64) -> bool,
    ) -> Due {
        let is_due = match &self.sampling {
            Sampling::All => true,
            Sampling::Iterations(interval) => {
                i128::from(now.iteration).rem_euclid(i128::from(*interval).max(1)) == 0
            }
            Sampling::Time(interval) => match (now.time, last.and_then(|(_, time)| time)) {
                (Some(now), Some(last)) => {
                    let (at, before) = (ticks(now, *interval), ticks(last, *interval));
                    if at.is_finite() { at > before } else { now > last }
                }
                _ => true,
            },
            Sampling::Wall(interval) => is_wall_due(*interval),
            Sampling::ChangeOf(_) => return Due::IfChanged,
            Sampling::Predicate => {
                self.predicate.as_ref().is_some_and(|asks| asks(now.iteration, now.time))
            }
        };
        if is_due { Due::Yes } else { Due::No }
    }
}

/// How many whole intervals fit into `time`.
fn ticks(time: f64, interval: f64) -> f64 {
    let (exact, near) = (time / interval, (time / interval).round());
    let tolerance = (NEAR.0 + exact.abs() * NEAR.1).min(NEAR.2);
    if (exact - near).abs() <= tolerance { near } else { exact.floor() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does a sum of steps meet each interval once, whatever rounding does?
    #[test]
    fn steps_of_a_tenth_meet_every_interval() {
        let every = Every::time(0.5);
        let (mut time, mut last, mut taken) = (0.0f64, None, Vec::new());
        for iteration in 0..1_000_000i64 {
            let now = Moment { iteration, time: Some(time) };
            if every.due(now, last, |_| false) == Due::Yes {
                last = Some((iteration, Some(time)));
                taken.push(iteration);
            }
            time += 0.1;
        }
        let each_fifth = (0..1_000_000).step_by(5);
        assert!(taken.iter().copied().eq(each_fifth), "{} taken", taken.len());
    }

    /// Where the number of intervals is beyond a double, is every later time still recorded?
    #[test]
    fn intervals_that_no_double_counts_are_each_later_time() {
        for (interval, times) in [
            (1e-310, [0.0, 1.0, 1.0, 2.0, 1e300]),
            (0.1, [1e308, 1.1e308, 1.1e308, 1.2e308, f64::MAX]),
            (0.1, [f64::MIN, -1.1e308, -1.1e308, -1e308, 0.0]),
        ] {
            let every = Every::time(interval);
            let (mut last, mut taken) = (None, Vec::new());
            for (iteration, time) in (0i64..).zip(times) {
                let now = Moment { iteration, time: Some(time) };
                if every.due(now, last, |_| false) == Due::Yes {
                    last = Some((iteration, Some(time)));
                    taken.push(iteration);
                }
            }
            assert_eq!(taken, [0, 1, 3, 4], "{interval}");
        }
    }

    /// Are iterations below zero and the largest interval counted right?
    #[test]
    fn intervals_of_iterations_go_below_zero() {
        let is_due = |interval, iteration| {
            let now = Moment { iteration, time: None };
            Every::iterations(interval).due(now, None, |_| false) == Due::Yes
        };
        assert!(is_due(3, -3) && is_due(3, 0) && !is_due(3, -2) && !is_due(3, 4));
        assert!(is_due(u64::MAX, 0) && !is_due(u64::MAX, i64::MAX) && !is_due(u64::MAX, i64::MIN));
    }
}
