//! Time, from the two clocks of the machine. No clock decides order, ownership or survival.
//!
//! What is written and what is sampled takes its time from the disk (`vfs::Disk`), which a simulation
//! drives. By the clock here go only waits of threads for one another, whose condition variables know
//! no other: how long an observer waits for room in the queue.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Wall-clock nanoseconds since 1970; `None` where the clock cannot be represented.
pub fn wall_nanos() -> Option<i64> {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).ok(),
        Err(before) => i64::try_from(before.duration().as_nanos()).ok().map(|n| -n),
    }
}

/// Nanoseconds since this process first asked.
pub fn monotonic_nanos() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}
