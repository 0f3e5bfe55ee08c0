//! Every byte of a manifest, flipped: the same values or a typed error, in bounded time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use sealstone::error::{Error, ErrorKind, Result};
use sealstone::format::layout;
use sealstone::manifest::{CheckIntegrity, Manifest, Open, Witness};
use sealstone::vfs::sim::{Rng, SimDisk};
use sealstone::vfs::{Access, Disk, File, Step, read_exact_at, read_whole, write_all_at};

use crate::support::{World, contents, owner, publish, store};

const STEP: Step = Step::PublishCommit;

struct Victim {
    world: World,
    sim: SimDisk,
    file: Arc<dyn File>,
    whole: Vec<u8>,
    expected: Vec<String>,
    open: Open,
}

/// A store with some rows; killed, or closed.
fn victim(killed: bool) -> Victim {
    let (world, sim) = World::sim(1);
    let writer: Arc<dyn Disk> = Arc::new(sim.process(2));
    let manifest = Manifest::open(&writer, &world.root, &Open::default()).unwrap();
    let row = crate::support::owner_row(1);
    manifest.write(None, STEP, |w| w.put(&owner(1), &row)).unwrap();
    for n in 0..5 {
        manifest.write(Some(owner(1)), STEP, |w| publish(w, 10 * n, 10)).unwrap();
    }
    let expected = contents(&manifest.read().unwrap()).unwrap();
    let commit = manifest.commit_seq();
    if killed {
        sim.process(2).kill();
    } else {
        manifest.close().unwrap();
    }
    drop(manifest);
    let witness = Witness { place: "HEAD".to_owned(), store: store(1), commit };
    let open = Open { witnesses: vec![witness], ..Open::default() };
    let file = sim.open(&layout::manifest(&world.root), Access::ReadWrite).unwrap();
    let whole = read_whole(&*file, 1 << 30).unwrap();
    Victim { world, sim, file, whole, expected, open }
}

impl Victim {
    fn read(&self, open: &Open) -> Result<Vec<String>> {
        let manifest = Manifest::open_read_only(&self.world.disk, &self.world.root, open)?;
        let snapshot = manifest.read()?;
        contents(&snapshot)
    }

    /// Flips bits, reads the store, and puts the bytes back: what the reader said.
    fn flip(&self, at: usize, mask: u8, open: &Open) -> Result<Vec<String>> {
        write_all_at(&*self.file, &[self.whole[at] ^ mask], at as u64).unwrap();
        let before = self.sim.counts();
        let said = self.read(open);
        let used = self.sim.counts().since(&before);
        assert_eq!(used.mutations(), 0);
        let bound = 32 * self.whole.len() as u64 + (64 << 20);
        assert!(used.bytes_read < bound, "byte {at}: {} bytes read", used.bytes_read);
        write_all_at(&*self.file, &[self.whole[at]], at as u64).unwrap();
        said
    }
}

fn count(tally: &mut BTreeMap<&'static str, u64>, said: &Result<Vec<String>>) {
    let name = said.as_ref().map_or_else(|e| e.kind().name(), |_| "same");
    *tally.entry(name).or_default() += 1;
}

fn acceptable(error: &Error) -> bool {
    use ErrorKind::{Damage, NewerFormat, RolledBack};
    matches!(error.kind(), Damage | NewerFormat | RolledBack)
}

/// G12: with the integrity check, which is the default: each byte of the header, one in 400 of the
/// pages, in a closed store and in one whose writer was killed.
#[test]
fn g12_a_flipped_byte_is_an_error_or_changes_nothing() {
    let mut rng = Rng::new(2);
    for killed in [false, true] {
        let victim = victim(killed);
        assert_eq!(victim.read(&victim.open).unwrap(), victim.expected);
        let mut tally = BTreeMap::new();
        let header = 0..320usize;
        let pages = (4096..victim.whole.len()).filter(|_| rng.one_in(400)).collect::<Vec<_>>();
        for at in header.chain(pages) {
            let said = victim.flip(at, 1 << rng.below(8), &victim.open);
            count(&mut tally, &said);
            match said {
                Ok(said) => assert!(said == victim.expected, "byte {at}: wrong values"),
                Err(error) => assert!(acceptable(&error), "byte {at}: {error:?}"),
            }
        }
        println!("killed {killed}: {tally:?} of {} bytes", victim.whole.len());
        assert!(tally["same"] > 100 && tally["damage"] > 15, "{tally:?}");
    }
}

/// Without the integrity check a flip may hide rows, and redb may panic on it. Are the values of
/// the rows that are read still right, and is a panic an error?
#[test]
fn without_the_check_a_flip_never_invents_a_value() {
    let mut rng = Rng::new(3);
    let victim = victim(false);
    let open = Open { check_integrity: CheckIntegrity::Never, ..victim.open.clone() };
    let mut tally = BTreeMap::new();
    for at in (4096..victim.whole.len()).filter(|_| rng.one_in(250)).collect::<Vec<_>>() {
        let said = victim.flip(at, 1 << rng.below(8), &open);
        count(&mut tally, &said);
        if let Ok(said) = said {
            let wrong = said.iter().find(|line| !victim.expected.contains(line));
            assert_eq!(wrong, None, "byte {at}");
        }
    }
    println!("{tally:?}");
    assert!(tally["damage"] > 5, "{tally:?}");
}

/// G12: a writer that meets a flipped byte errs before it changes anything.
#[test]
fn g12_a_writer_writes_nothing_into_a_damaged_file() {
    let mut rng = Rng::new(4);
    let victim = victim(true);
    let mut refused = 0;
    for at in (4096..victim.whole.len()).filter(|_| rng.one_in(1_500)).collect::<Vec<_>>() {
        write_all_at(&*victim.file, &[victim.whole[at] ^ 16], at as u64).unwrap();
        let before = victim.sim.counts();
        let opened = Manifest::open(&victim.world.disk, &victim.world.root, &victim.open);
        if let Some(error) = opened.err() {
            assert!(acceptable(&error), "byte {at}: {error:?}");
            refused += 1;
            let made = victim.sim.counts().since(&before);
            assert_eq!((made.writes, made.set_lens), (0, 0), "byte {at}");
            let mut now = [0];
            read_exact_at(&*victim.file, &mut now, at as u64).unwrap();
            assert_eq!(now[0], victim.whole[at] ^ 16);
        }
        victim.file.set_len(victim.whole.len() as u64).unwrap();
        write_all_at(&*victim.file, &victim.whole, 0).unwrap();
    }
    assert!(refused > 5, "{refused}");
    assert!(Path::new("/run.stone") == victim.world.root);
}
