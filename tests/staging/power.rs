//! Power cuts and kills: what was acknowledged is there, once, with the position that stands behind it;
//! and what was recovered twice is as if it were recovered once.

use sealstone::engine::{Layout, Store};
use sealstone::staging::{Level, Produced, Ready, Stage};
use sealstone::vfs::sim::{Image, Profile, Rng};

use crate::support::{LAYOUTS, NAME, batch, books_close, key, on, reopen, root, shape, sim, texts};

const BATCHES: u64 = 14;

/// One batch: its number is its text and its position.
fn send(stage: &Stage, n: u64, level: Option<Level>) {
    let produced = Produced::new("p", n).at(n.to_le_bytes());
    let text = if n % 5 == 4 { format!("{n:03} {}", "x".repeat(2500)) } else { format!("{n:03}") };
    let key = key("a", n as i64 % 3);
    let appended = stage.append(&key, batch(&text), Some(&produced)).unwrap();
    assert!(!appended.is_repeat);
    if let Some(level) = level {
        stage.wait(&appended.ticket, level).unwrap();
    }
}

/// Plays a life of a stage, noting after each batch how many are durable by then.
fn live(disk: &sealstone::vfs::sim::SimDisk, layout: Layout) {
    let store = on(disk, layout).create(root()).unwrap();
    let stage = store.create_stage(NAME, &shape()).unwrap();
    disk.restart_log();
    disk.note(0u64.to_le_bytes());
    for n in 0..BATCHES {
        let waits = n % 2 == 1;
        send(&stage, n, waits.then_some(Level::Durable));
        let mut durable = waits;
        match n {
            4 | 9 => drop(stage.seal().unwrap()),
            6 => drop(stage.flush(&Ready::All).unwrap()),
            11 => drop(stage.flush(&Ready::Before("minute", 2)).unwrap()),
            _ => {}
        }
        durable |= matches!(n, 4 | 6 | 9 | 11);
        if durable {
            disk.note((n + 1).to_le_bytes());
        }
    }
    disk.kill();
}

/// What an image holds: the first batches and no hole, as many as were durable at least; the position is
/// that of the last of them.
fn judge(image: &Image, layout: Layout, durable: u64) {
    let disk = image.disk();
    let at = || format!("{layout:?}, {durable} durable, {}", image.outcomes());
    let (store, stage) = reopen(&disk, layout);
    let count = |store: &Store, stage: &Stage| {
        let texts = texts(store);
        for (n, text) in texts.iter().enumerate() {
            assert!(text.starts_with(&format!("{n:03}")), "{}: {texts:?}", at());
        }
        let progress = stage.progress("p").unwrap();
        let position =
            progress.as_ref().map(|p| u64::from_le_bytes(p.position[..].try_into().unwrap()));
        assert_eq!(position.map_or(0, |n| n + 1), texts.len() as u64, "{}", at());
        assert_eq!(progress.map_or(0, |p| p.batches), texts.len() as u64, "{}", at());
        let groups = stage.groups().unwrap();
        assert_eq!(groups.iter().map(|g| g.batches).sum::<u64>(), texts.len() as u64, "{}", at());
        texts.len() as u64
    };
    let there = count(&store, &stage);
    assert!(there >= durable && there <= BATCHES, "{}: {there}", at());
    disk.kill();
    drop((store, stage));
    let disk = disk.process(2);
    // STG16
    let (store, stage) = reopen(&disk, layout);
    assert_eq!(count(&store, &stage), there, "{}: recovered again", at());
    stage.flush(&Ready::All).unwrap();
    assert_eq!(count(&store, &stage), there, "{}", at());
    // Whoever sends everything again adds what is missing, and nothing twice.
    for n in there..BATCHES {
        send(&stage, n, None);
    }
    assert_eq!(count(&store, &stage), BATCHES, "{}", at());
    books_close(&store);
    store.close().unwrap();
}

/// Is each batch that was durable there, once and in order, wherever the power goes, its source's position
/// never ahead of it nor behind; and is recovery that is cut off and done again the same?
#[test]
fn stg9_stg16_a_cut_takes_no_durable_batch() {
    for (seed, layout) in (51..).zip(LAYOUTS) {
        println!("seed {seed}");
        let disk = sim(seed);
        live(&disk, layout);
        let log = disk.events();
        let mut rng = Rng::new(seed);
        let mut images = 0;
        for profile in Profile::ALL {
            let mut cursor = log.cursor(profile);
            let mut turn = 0u64;
            loop {
                let last =
                    cursor.notes().last().map(|n| u64::from_le_bytes(n[..].try_into().unwrap()));
                turn += 1;
                if turn.is_multiple_of(6) {
                    for image in cursor.images(&mut rng, 1) {
                        images += 1;
                        judge(&image, layout, last.unwrap_or(0));
                    }
                }
                if cursor.advance().is_none() {
                    break;
                }
            }
        }
        println!("{images} images of {} events", log.len());
        assert!(images > 100, "{images}");
    }
}
