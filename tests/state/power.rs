//! Power cuts: a state after a cut is the one after k or k+1 transactions, never a part of one.

use std::collections::BTreeMap;

use sealstone::engine::Options;
use sealstone::vfs::sim::{Image, Profile, Rng, SimDisk};

use crate::support::{Values, books_close, on, root, shown, sim, single};

const KEEP: u64 = 1;
/// Batches that are cut.
const STEPS: u64 = 6;

/// Is each batch there whole or not at all, wherever the power goes, and what was acknowledged for
/// ever?
#[test]
fn p1_p4_g1_g3_a_cut_leaves_whole_batches() {
    cut_everywhere(11, on);
}

/// The same in one file.
#[test]
fn p1_p4_g1_g3_a_cut_leaves_whole_batches_in_one_file() {
    cut_everywhere(12, single);
}

fn cut_everywhere(seed: u64, create: fn(&SimDisk, u64) -> Options) {
    println!("seed {seed}");
    let disk = sim(seed);
    let store = create(&disk, KEEP).create(root()).unwrap();
    disk.restart_log();
    let state = store.state();
    let mut states: Vec<BTreeMap<String, Values>> = vec![shown(&state)];
    let mut rng = Rng::new(seed);
    for step in 0..STEPS {
        disk.note(step.to_le_bytes());
        // Equal bytes under several names, inline and in files, replaced, removed, put again.
        let large = vec![(step / 3) as u8; 700];
        let small = step.to_le_bytes();
        let batch = match step % 5 {
            0 => state.batch().put_bytes("a", &small).put_bytes("b", &large),
            1 => state.batch().put_bytes("b", &large).put_bytes("c", &large).remove("a"),
            2 => state.batch().put("typed", &(step, "text".to_owned())).remove("c"),
            3 => {
                let stands = state.entry("b").unwrap().map(|entry| entry.generation);
                state.batch().compare_and_set_bytes("b", stands, &small).put_bytes("d", &large)
            }
            _ => state.batch().remove("b").remove("d").put_bytes("a", &large),
        };
        batch.commit().unwrap();
        if step == 3 {
            store.reclaim(Default::default()).unwrap();
        }
        states.push(shown(&state));
    }
    disk.note(STEPS.to_le_bytes());
    let log = disk.events();
    let mut images = 0;
    for profile in Profile::ALL {
        let mut cursor = log.cursor(profile);
        loop {
            let last = cursor.notes().last().map(|n| u64::from_le_bytes(n[..].try_into().unwrap()));
            let step = last.unwrap_or(0) as usize;
            for image in
                cursor.images(&mut rng, if profile == Profile::PosixHarshest { 2 } else { 1 })
            {
                images += 1;
                judge(&image, &states, step);
            }
            if cursor.advance().is_none() {
                break;
            }
        }
    }
    println!("{images} images of {} events", log.len());
    assert!(images > 200);
}

/// The image shows the state before the step under way, or after it, to a reader and a writer.
fn judge(image: &Image, states: &[BTreeMap<String, Values>], step: usize) {
    let disk = image.disk();
    let at = || format!("{}, step {step}", image.outcomes());
    // Before the batch under way, or after it.
    let which = |seen: &BTreeMap<String, Values>| {
        let found = (step..states.len().min(step + 2)).rev().find(|k| states[*k] == *seen);
        found.unwrap_or_else(|| panic!("{}: {seen:?}", at()))
    };
    let reader = on(&disk, KEEP).open_read_only(root());
    let read = which(&shown(&reader.unwrap_or_else(|e| panic!("{}: {e:?}", at())).state()));
    let store = on(&disk, KEEP).open(root()).unwrap();
    let seen = shown(&store.state());
    assert!(which(&seen) >= read, "{}: a reader was shown more", at());
    books_close(&store);
    // Nothing that was there before can be taken for what is put now.
    let generation = store.state().put_bytes("a", b"new").unwrap();
    let before = states[..=step].iter().chain([&seen]).filter_map(|state| state.get("a"));
    assert!(before.map(|values| values[0].0).max() < Some(generation), "{}", at());
    disk.kill();
}
