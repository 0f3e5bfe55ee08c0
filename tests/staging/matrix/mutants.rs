//! The matrix with one rule of the contract off: it must see that.

use std::panic::{AssertUnwindSafe, catch_unwind};

use sealstone::engine::Layout;
use sealstone::protection::{Protection, switch_off};
use sealstone::vfs::sim::Profile;

use super::cuts::{Effort, cut, sound};
use super::judge::{Look, judge};
use crate::child::fixed_seed;

/// What a crash or the next pass of this run misses. What keeps threads, processes and lying converters
/// apart is missed by tests of its own.
const SEEN: [Protection; 2] = [Protection::StageProducerWindow, Protection::StageRetireConsumed];

/// What was seen; nothing where all was as it should be.
fn hunt(seed: u64) -> Option<String> {
    let (play, log) = match catch_unwind(AssertUnwindSafe(|| sound(Layout::Directory, seed))) {
        Ok(played) => played,
        Err(_) => return Some("the run itself failed".to_owned()),
    };
    // What needs no crash is seen at its end.
    let facts = play.now();
    play.disk.kill();
    if let Err(why) = judge(&play, &play.disk.process(77), &facts, Look::NextPass) {
        return Some(why);
    }
    let effort = Effort { draws: 3, kill_stride: 1, pass_one_in: 8, seed };
    [Profile::PosixHarshest, Profile::ProcessKill]
        .into_iter()
        .find_map(|profile| cut(&play, &log, profile, effort).wrong)
}

/// Is each of these rules missed?
#[test]
fn stg25_the_matrix_misses_what_is_switched_off() {
    let seed = fixed_seed("mutants");
    for protection in SEEN {
        let off = switch_off(protection);
        let seen = hunt(seed);
        drop(off);
        let first = seen.as_deref().map(|why| why.lines().next().unwrap_or_default().to_owned());
        println!("{:<28} {}", protection.name(), first.as_deref().unwrap_or("NOT SEEN"));
        assert!(seen.is_some(), "{} was not missed", protection.name());
    }
}
