//! A tree of files in three versions, staged, published and snapshotted, of which the first two are retired:
//! how many bytes are stored at each step, and how many does what is kept need?
//!
//! `cargo run --release --example stage_files [FAMILIES | DIRECTORY]`
//!
//! Made from a seed, the tree has five large files (2 MiB) in each family, all with one content, and fifty small
//! ones; each version replaces 1 % of one large file of every tenth family, and one small file of each. A
//! directory that is given is copied, and its copy changed in the same way. Either way the store may hold 5 %
//! more than the unique content needs.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use sealstone::Store;
use sealstone::engine::{Budget, Phases};
use sealstone::objects::{Digest, Expected, Gone, Name, Pieces, Publish, Published, PutOptions};

const FAMILIES: u64 = 40;
const FILES_OF_FAMILY: u64 = 5;
const LARGE_BYTES: usize = 2 << 20;
const EDIT_BYTES: usize = LARGE_BYTES / 100;
const SMALL_OF_FAMILY: u64 = 50;
const SMALL_BYTES: usize = 6 << 10;
const VERSIONS: u64 = 3;
const NAMESPACE: &str = "tree";

type Done<T = ()> = Result<T, Box<dyn Error>>;

/// Bytes that no compressor makes smaller, the same ones for the same seed.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend((word ^ (word >> 31)).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// The bytes that all versions together need, as far as the tree was made here.
struct Made {
    families: u64,
    /// Of what stands now, and of what earlier versions had in its place.
    now: u64,
    before: u64,
}

impl Made {
    fn tree(root: &Path, families: u64) -> Done<Self> {
        for family in 0..families {
            let folder = root.join(format!("family-{family:03}"));
            fs::create_dir_all(&folder)?;
            let content = noise(family << 32, LARGE_BYTES);
            for file in 0..FILES_OF_FAMILY {
                fs::write(folder.join(format!("large-{file}.bin")), &content)?;
            }
            for file in 0..SMALL_OF_FAMILY {
                let content = noise((family << 32) + (1 << 31) + (file << 20), SMALL_BYTES);
                fs::write(folder.join(format!("small-{file:02}.bin")), content)?;
            }
        }
        let each = LARGE_BYTES as u64 + SMALL_OF_FAMILY * SMALL_BYTES as u64;
        Ok(Self { families, now: families * each, before: 0 })
    }
}

/// Changes a tree into its next version: 1 % of some large files, whole small ones. Counts what is new.
fn edit(root: &Path, version: u64, made: Option<&mut Made>) -> Done {
    let files = files_below(root)?;
    let large: Vec<&PathBuf> =
        files.iter().filter(|path| len_of(path) >= LARGE_BYTES as u64).collect();
    let small: Vec<&PathBuf> =
        files.iter().filter(|path| len_of(path) <= SMALL_BYTES as u64).collect();
    let (mut edited, mut replaced) = (0, 0);
    // Another one in each version: the second of every tenth family, then the third.
    let step = (10 * FILES_OF_FAMILY) as usize;
    for path in large.iter().skip(version as usize).step_by(step) {
        let mut bytes = fs::read(path)?;
        let new = noise(version << 48 | edited, EDIT_BYTES);
        let at = bytes.len() / 2;
        bytes[at..at + EDIT_BYTES].copy_from_slice(&new);
        fs::write(path, bytes)?;
        edited += 1;
    }
    for path in small.iter().skip(version as usize).step_by(SMALL_OF_FAMILY as usize) {
        let len = len_of(path) as usize;
        fs::write(path, noise(version << 48 | 1 << 40 | replaced << 20, len))?;
        replaced += 1;
    }
    if let Some(made) = made {
        // Of an edited file all but the edit is the family's; of a replaced one nothing stands any more.
        made.now += edited * EDIT_BYTES as u64;
        made.before += replaced * SMALL_BYTES as u64;
    }
    Ok(())
}

fn len_of(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}

/// Every file below `root`, in order.
fn files_below(root: &Path) -> Done<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

fn copy_tree(from: &Path, to: &Path) -> Done {
    for path in files_below(from)? {
        let target = to.join(path.strip_prefix(from)?);
        fs::create_dir_all(target.parent().ok_or("no folder")?)?;
        fs::copy(&path, &target)?;
    }
    Ok(())
}

/// Stages a tree, publishes all of it in one transaction, and keeps it in a snapshot.
fn stage(store: &Store, root: &Path, version: u64) -> Done<Published> {
    let objects = store.objects();
    let prep = objects.prepare("stage_files")?;
    let mut changes = Vec::new();
    for path in files_below(root)? {
        let stored = prep.put_file(&path, &PutOptions::default())?;
        let name = path.strip_prefix(root)?.to_str().ok_or("a path that is not UTF-8")?;
        changes.push(Publish::new(Name::new(NAMESPACE, name)?, Expected::Any, stored.digest));
    }
    let published = prep.publish(&changes)?;
    prep.abandon("published")?;
    let snapshot = objects.snapshot(&format!("v{version}"))?;
    snapshot.add_namespace(NAMESPACE)?;
    snapshot.commit()?;
    Ok(published)
}

/// Stored bytes of objects, wherever they lie: all but the manifest's rows, journals and the ballast.
fn stored(store: &Store) -> Done<u64> {
    let usage = store.du()?;
    let accounts = usage.accounts;
    assert!(accounts.are_closed(), "the books do not close: {accounts:?}");
    Ok(accounts.live + accounts.dead + accounts.condemned + accounts.orphan + usage.inline)
}

fn tell(store: &Store, step: &str, needs: Option<u64>) -> Done {
    let bytes = stored(store)?;
    let on_disk = store.du()?.accounts.on_disk;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let Some(needs) = needs else {
        println!("{step:<34} {:>9.2} MiB stored, {:>9.2} on disk", mib(bytes), mib(on_disk));
        return Ok(());
    };
    let over = (bytes as f64 / needs as f64 - 1.0) * 100.0;
    println!(
        "{step:<34} {:>9.2} MiB stored, {:>9.2} on disk, {:>9.2} needed ({over:+.2} %)",
        mib(bytes),
        mib(on_disk),
        mib(needs),
    );
    match over.abs() <= 5.0 {
        true => Ok(()),
        false => Err(format!("{step}: more than 5 % off what the content needs").into()),
    }
}

/// What the trees at `roots` need: what a new store takes that never held anything else.
fn needed_anew(folder: &Path, roots: &[PathBuf]) -> Done<u64> {
    let path = folder.join("anew.stone");
    let store = Store::create(&path)?;
    for (version, root) in (1..).zip(roots) {
        stage(&store, root, version)?;
    }
    let bytes = stored(&store)?;
    store.close()?;
    fs::remove_dir_all(path)?;
    Ok(bytes)
}

/// Every file reads back as it is on disk.
fn compare(store: &Store, root: &Path) -> Done<u64> {
    let objects = store.objects();
    let mut compared = 0;
    for path in files_below(root)? {
        let name = path.strip_prefix(root)?.to_str().ok_or("a path that is not UTF-8")?;
        let object = objects.open(&Name::new(NAMESPACE, name)?)?;
        if object.digest() != Digest::of(&fs::read(&path)?) {
            return Err(format!("{name} is another one").into());
        }
        object.verify()?;
        compared += 1;
    }
    Ok(compared)
}

fn phases(phases: &Phases) -> String {
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    format!(
        "retire {:.1} ms, index {:.1} ms, manifest {:.1} ms, unlink {:.1} ms",
        ms(phases.retire),
        ms(phases.index),
        ms(phases.manifest),
        ms(phases.unlink)
    )
}

fn main() -> Done {
    let asked = std::env::args().nth(1);
    let given = asked.as_deref().map(Path::new).filter(|path| path.is_dir());
    let folder = tempfile::tempdir()?;
    let mut roots = vec![folder.path().join("v1")];
    let mut made = match given {
        Some(given) => copy_tree(given, &roots[0]).map(|()| None)?,
        None => {
            let families = asked.as_deref().map_or(Ok(FAMILIES), str::parse)?;
            Some(Made::tree(&roots[0], families)?)
        }
    };
    if let Some(made) = &made {
        println!("{} families, Pieces::{:?}", made.families, Pieces::default());
    }
    let store = Store::create(folder.path().join("files.stone"))?;
    for version in 1..=VERSIONS {
        let since = Instant::now();
        let root = folder.path().join(format!("v{version}"));
        if version > 1 {
            copy_tree(&roots[roots.len() - 1], &root)?;
            edit(&root, version, made.as_mut())?;
            roots.push(root.clone());
        }
        let published = stage(&store, &root, version)?;
        let needs = match &made {
            Some(made) => made.now + made.before,
            None => needed_anew(folder.path(), &roots)?,
        };
        let seconds = since.elapsed().as_secs_f64();
        println!("version {version}: {} names published, {seconds:.2} s", published.names.len());
        tell(&store, &format!("  versions 1 to {version}"), Some(needs))?;
    }
    let gone = [Gone::Snapshot("v1".to_owned()), Gone::Snapshot("v2".to_owned())];
    let retired = store.objects().retire(&gone, "superseded")?;
    println!(
        "retired v1 and v2 in {} transaction: {} objects, {}",
        retired.transactions,
        retired.objects,
        phases(&retired.phases)
    );
    tell(&store, "  before reclaim", None)?;
    let reclaimed = store.reclaim(Budget { dead_percent: Some(1), ..Budget::default() })?;
    println!("reclaimed: {}", phases(&reclaimed.phases));
    let needs = match &made {
        Some(made) => made.now,
        None => needed_anew(folder.path(), &roots[roots.len() - 1..])?,
    };
    tell(&store, "  version 3 alone", Some(needs))?;
    store.close()?;
    let store = Store::open(folder.path().join("files.stone"))?;
    let last = &roots[roots.len() - 1];
    println!("{} files read back as they are on disk", compare(&store, last)?);

    store.objects().retire(&[Gone::Snapshot("v3".to_owned())], "the end")?;
    let names = store.objects().names(NAMESPACE, "", None, usize::MAX)?;
    let gone: Vec<Gone> = names.into_iter().map(|view| Gone::Name(view.name)).collect();
    let retired = store.objects().retire(&gone, "the end")?;
    store.reclaim(Budget::default())?;
    tell(&store, &format!("{} names retired", retired.things), None)?;
    assert_eq!(stored(&store)?, store.du()?.accounts.live, "something is left over");
    store.close()?;
    Ok(())
}
