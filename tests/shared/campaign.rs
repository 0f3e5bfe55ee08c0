//! A small slice of the campaign of two owners; all of it: `campaign --slice shared`.

use sealstone::campaign::{
    OF_SHARED, SharedCase, Tally, hunt_shared, is_caught, play_shared, replay_shared, shared_slice,
};
use sealstone::clock::monotonic_nanos;

use crate::child::seed;

/// Do the interleaved steps of two owners, killed and robbed among them, keep every promise when the
/// power is cut at any event?
#[test]
fn g1_two_owners_interleaved_and_cut_keep_what_was_told() {
    let seed = seed("two owners");
    let until = monotonic_nanos() + 8_000_000_000;
    let (mut tally, mut inside) = (Tally::default(), 0);
    for n in 0.. {
        match shared_slice(seed.wrapping_add(n), until, &mut tally) {
            Ok(more) => inside += more,
            Err((case, finding)) => panic!("{finding}\n  campaign --replay {:?}", case.to_string()),
        }
        if monotonic_nanos() > until {
            break;
        }
    }
    print!("{}", tally.table());
    println!("{inside} operations inside another owner's");
    assert!(tally.images > 20, "{} images", tally.images);
}

/// Does a play that follows from its seed alone come out the same again?
#[test]
fn g4_the_same_seed_gives_the_same_play() {
    for seed in 0..4 {
        let (one, other) = (play_shared(seed, 20), play_shared(seed, 20));
        assert_eq!(one.log.trace_hash(), other.log.trace_hash(), "seed {seed}");
    }
    let case: SharedCase = "shared:7:20".parse().unwrap();
    assert_eq!(case.to_string(), "shared:7:20");
    replay_shared(&case).unwrap();
}

/// Is each protection between owners missed when it is switched off?
#[test]
fn a_missing_protection_between_owners_is_noticed() {
    for protection in OF_SHARED {
        let mutant = hunt_shared(protection, 1, 60);
        println!("{}", mutant.line());
        assert!(is_caught(&mutant), "{}", mutant.line());
    }
}
