//! The life of 550 files in a store.

use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use sealstone::Store;
use sealstone::check::{CheckOptions, check};
use sealstone::engine::{Budget, Layout};
use sealstone::manifest::Table;
use sealstone::objects::{Digest, Expected, Gone, Name, Publish};
use sealstone::vfs::{Access, Disk, RealDisk};

use super::source::{FAMILIES, FILES, LARGE, OF_FAMILY, SMALL, Source};

/// What may stand in a store that holds nothing.
const MAY_STAND: [Table; 3] = [Table::Meta, Table::Owners, Table::Receipts];

struct Life {
    root: PathBuf,
    layout: Layout,
    source: Source,
    store: Store,
    /// Of each file, by version.
    digests: Vec<Vec<Digest>>,
    since: Instant,
    over_percent: u64,
}

fn open(root: &Path, layout: Layout) -> Store {
    let mut limits = sealstone::Limits::default();
    // Pieces go into files, however short: it is those that are looked at.
    limits.object_inline_bytes_max = 64;
    // What the rows take is told beside it.
    limits.snapshot_chain_max = 0;
    Store::options().limits(limits).layout(layout).open_or_create(root).unwrap()
}

fn name(version: usize, file: usize) -> Name {
    let kind = if file < LARGE { "large" } else { "small" };
    Name::new(format!("version-{version}"), format!("{kind}/{file:03}")).unwrap()
}

impl Life {
    /// Puts all files of a version and publishes them together.
    fn put(&mut self, version: usize) {
        let prep = self.store.objects().prepare("import").unwrap();
        let (source, options) = (self.source, self.source.options());
        let mut digests = Vec::new();
        for family in 0..FAMILIES {
            let blocks = source.family(family, version);
            for of in 0..OF_FAMILY {
                let [first, last] = blocks.parts(of);
                let put = prep.put_reader(first.chain(last), &options).unwrap();
                assert_eq!(put.len, source.large_bytes as u64);
                digests.push(put.digest);
            }
        }
        let small: Vec<_> = (0..SMALL).map(|number| source.small(number, version)).collect();
        let contents: Vec<&[u8]> = small.iter().map(Vec::as_slice).collect();
        digests.extend(prep.put_batch(&contents, &Default::default()).unwrap());
        assert_eq!(digests.len(), FILES);
        let publish = |(file, digest): (usize, &Digest)| {
            Publish::new(name(version, file), Expected::Nothing, *digest)
        };
        let changes: Vec<_> = digests.iter().enumerate().map(publish).collect();
        let published = prep.publish(&changes).unwrap();
        assert_eq!((published.names.len(), published.replaced), (FILES, 0));
        prep.abandon("all of it is published").unwrap();
        match self.digests.get(version) {
            Some(before) => assert_eq!(*before, digests, "the same content has the same digests"),
            None => self.digests.push(digests),
        }
    }

    /// Opens the store again, with nothing of its files in memory.
    fn reopen(mut self) -> Self {
        self.store.close().unwrap();
        let disk = RealDisk::new();
        for (path, _) in sealed_files(&self.root) {
            disk.open(&path, Access::Read).unwrap().evict().unwrap();
        }
        self.store = open(&self.root, self.layout);
        self
    }

    /// Every byte of every file of these versions is what was put.
    fn read(&self, versions: &[usize]) {
        let objects = self.store.objects();
        for version in versions {
            for family in 0..FAMILIES {
                let blocks = self.source.family(family, *version);
                for of in 0..OF_FAMILY {
                    let file = family * OF_FAMILY + of;
                    let object = objects.open(&name(*version, file)).unwrap();
                    assert_eq!(object.digest(), self.digests[*version][file]);
                    assert_eq!(object.len(), self.source.large_bytes as u64);
                    let mut reader = object.reader();
                    let mut bytes = Vec::new();
                    for part in blocks.parts(of) {
                        bytes.resize(part.len(), 0);
                        reader.read_exact(&mut bytes).unwrap();
                        assert!(bytes == part, "version {version}, file {file}");
                    }
                    assert_eq!(reader.read(&mut [0]).unwrap(), 0);
                }
            }
            for number in 0..SMALL {
                let object = objects.open(&name(*version, LARGE + number)).unwrap();
                assert_eq!(object.digest(), self.digests[*version][LARGE + number]);
                assert!(object.bytes().unwrap() == self.source.small(number, *version));
            }
        }
    }

    fn retire(&self, versions: &[usize]) {
        let names = |version| (0..FILES).map(move |file| Gone::Name(name(version, file)));
        let things: Vec<Gone> = versions.iter().flat_map(|version| names(*version)).collect();
        let commit = self.store.stats().unwrap().commit;
        let retired = self.store.objects().retire(&things, "superseded").unwrap();
        assert_eq!((retired.things, retired.transactions), (things.len() as u64, 1));
        assert!(retired.unknown.is_empty());
        assert_eq!(self.store.stats().unwrap().commit.0, commit.0 + 1, "OBJ15: one transaction");
    }

    fn reclaim(&self) {
        let budget = Budget { copy_bytes: u64::MAX, dead_percent: Some(1), ..Budget::default() };
        loop {
            let done = self.store.reclaim(budget).unwrap();
            assert_eq!(done.unreadable, 0);
            if !done.is_more_left {
                return;
            }
        }
    }

    /// What the disk holds is what the unique content of these versions needs, to `over_percent`. What the
    /// manifest takes, the rows, is told beside it.
    fn weigh(&self, step: &str, versions: &[usize]) {
        let accounts = self.store.accounts().unwrap();
        assert!(accounts.are_closed(), "P10: {accounts:?}");
        let sealed: u64 = match self.layout {
            Layout::SingleFile => accounts.live + accounts.dead + accounts.condemned,
            _ => sealed_files(&self.root).iter().map(|(_, len)| len).sum(),
        };
        let needed = self.source.unique_bytes(versions);
        println!(
            "{step:<24} {:>7.1} s {needed:>12} needed {sealed:>12} sealed ({:+.2} %) {:>12} manifest",
            self.since.elapsed().as_secs_f64(),
            100.0 * (sealed as f64 / needed.max(1) as f64 - 1.0),
            self.store.stats().unwrap().manifest_bytes
        );
        assert!(sealed >= needed, "{step}: something is not stored");
        assert!(
            sealed <= needed + needed * self.over_percent / 100,
            "{step}: {sealed} bytes for {needed}: {accounts:?}"
        );
    }

    /// OBJ27: nothing is left, in the tables and on the disk.
    fn end(self) {
        for (table, rows) in self.store.stats().unwrap().rows {
            assert!(rows == 0 || MAY_STAND.contains(&table), "{rows} rows of {}", table.name());
        }
        assert!(sealed_files(&self.root).is_empty(), "OBJ27: payload files are left");
        let accounts = self.store.accounts().unwrap();
        let left = accounts.live + accounts.dead + accounts.condemned + accounts.orphan;
        assert_eq!(left, 0, "{accounts:?}");
        self.store.close().unwrap();
        let report =
            check(&self.root, &CheckOptions::default(), &mut |_| ControlFlow::Continue(()));
        let report = report.unwrap();
        assert!(report.is_good(), "{:#?}", report.findings);
        let empty = self.root.with_file_name("empty.stone");
        open(&empty, self.layout).close().unwrap();
        let compacted = |root: &Path| Store::options().compact(root).unwrap().bytes_after;
        let (after, of_empty) = (compacted(&self.root), compacted(&empty));
        println!("manifest: {after} bytes, {of_empty} of a store that never held anything");
        // Receipts and owners may take a few pages more.
        assert!(after <= 2 * of_empty, "OBJ27: {after} bytes, {of_empty} of an empty store");
    }
}

/// Sealed files and their lengths.
fn sealed_files(root: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    let Ok(folders) = std::fs::read_dir(root.join("sealed")) else { return found };
    for folder in folders {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let file = file.unwrap();
            found.push((file.path(), file.metadata().unwrap().len()));
        }
    }
    found
}

fn live(layout: Layout, large_bytes: usize) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run.stone");
    let (source, since) = (Source { large_bytes }, Instant::now());
    let store = open(&root, layout);
    let mut life =
        Life { root, layout, source, store, digests: Vec::new(), since, over_percent: 5 };
    life.put(0);
    life.weigh("stored and published", &[0]);
    let mut life = life.reopen();
    life.read(&[0]);
    life.weigh("read, opened again", &[0]);
    life.retire(&[0]);
    life.reclaim();
    life.weigh("unpublished, reclaimed", &[]);
    life.put(0);
    life.weigh("put again", &[0]);
    let mut life = life.reopen();
    life.read(&[0]);
    life.put(1);
    life.weigh("1 % edited", &[0, 1]);
    life.put(2);
    life.weigh("1 % edited again", &[0, 1, 2]);
    let life = life.reopen();
    life.read(&[1, 2]);
    life.retire(&[0, 1]);
    life.reclaim();
    life.weigh("old versions reclaimed", &[2]);
    let life = life.reopen();
    life.read(&[2]);
    life.retire(&[2]);
    life.reclaim();
    life.weigh("nothing published", &[]);
    life.end();
}

/// Is all of 550 files, in three versions, stored once, read back, and gone in the end, with nothing left?
#[test]
fn obj3_obj15_obj27_550_files_live_and_leave_nothing() {
    let asked = std::env::var("SEALSTONE_LIFE_FILE_MIB");
    let mib = asked.map_or(2, |text| text.parse::<usize>().unwrap());
    live(Layout::Directory, mib << 20);
}
