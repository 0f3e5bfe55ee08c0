//! One random run on the real disk and on the simulated one: is every result the same, refusals
//! and their causes included?

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealstone::vfs::sim::{Rng, SimDisk};
use sealstone::vfs::{Access, Disk, EntryKind, File, Held, LockRange, RealDisk, Sharing};

/// What a call gave, in a form that two disks can agree on.
#[derive(Debug, PartialEq, Eq)]
enum Gave {
    Done,
    Number(u64),
    Bytes(Vec<u8>),
    Names(Vec<(String, EntryKind)>),
    Nothing,
    Refused(Option<i32>, io::ErrorKind),
}

impl From<io::Error> for Gave {
    fn from(error: io::Error) -> Self {
        Self::Refused(error.raw_os_error(), error.kind())
    }
}

fn gave<T>(result: io::Result<T>, value: impl FnOnce(T) -> Gave) -> Gave {
    result.map_or_else(Gave::from, value)
}

/// One call, with everything it needs chosen already.
#[derive(Debug, Clone)]
enum Call {
    Open(usize, Access),
    Close(usize),
    Read { file: usize, offset: u64, len: usize },
    Write { file: usize, offset: u64, bytes: Vec<u8> },
    SetLen { file: usize, len: u64 },
    Len(usize),
    Sync { file: usize, all: bool },
    Evict(usize),
    Identity { file: usize, path: usize },
    Lock { file: usize, range: LockRange, sharing: Sharing },
    Unlock { file: usize, range: LockRange },
    IsLocked { file: usize, range: LockRange },
    Meta(usize),
    Rename(usize, usize),
    Link(usize, usize),
    Unlink(usize),
    Mkdir(usize),
    List(usize),
    SyncDir(usize),
    LockDir(usize, Sharing),
    UnlockDir,
}

fn paths(root: &Path) -> Vec<PathBuf> {
    let long = "n".repeat(256);
    let names =
        ["a", "b", "c", "d", "d/a", "d/b", "e", "e/a", "d/../a", "./b", "none/a", "a/b", &long];
    let mut paths: Vec<_> = names.iter().map(|name| root.join(name)).collect();
    paths.push(root.to_owned());
    paths.push(PathBuf::new());
    paths
}

fn range(rng: &mut Rng) -> LockRange {
    let base = if rng.one_in(3) { 1 << 62 } else { 0 };
    let start = base + rng.below(12);
    let end = (!rng.one_in(5)).then(|| start + rng.below(8));
    LockRange { start, end }
}

fn sharing(rng: &mut Rng) -> Sharing {
    if rng.one_in(2) { Sharing::Shared } else { Sharing::Exclusive }
}

fn offset(rng: &mut Rng) -> u64 {
    match rng.below(20) {
        0 => u64::MAX,
        1 => rng.below(1 << 20),
        _ => rng.below(9000),
    }
}

fn call(rng: &mut Rng, paths: usize) -> Call {
    let file = rng.index(6);
    let path = rng.index(paths);
    match rng.below(26) {
        0..=4 => {
            let access =
                [Access::Read, Access::ReadWrite, Access::CreateNew, Access::CreateNewDirect];
            Call::Open(path, access[rng.index(4)])
        }
        5 => Call::Close(file),
        6 | 7 => Call::Read { file, offset: offset(rng), len: rng.index(6000) },
        8 | 9 => {
            let mut bytes = vec![0; rng.index(6000)];
            rng.fill(&mut bytes);
            Call::Write { file, offset: offset(rng), bytes }
        }
        10 => Call::SetLen { file, len: rng.below(10_000) },
        11 => Call::Len(file),
        12 => Call::Sync { file, all: rng.one_in(2) },
        13 => Call::Evict(file),
        14 => Call::Identity { file, path },
        15 | 16 => Call::Lock { file, range: range(rng), sharing: sharing(rng) },
        17 => Call::Unlock { file, range: range(rng) },
        18 => Call::IsLocked { file, range: range(rng) },
        19 => Call::Meta(path),
        20 => Call::Rename(path, rng.index(paths)),
        21 => Call::Link(path, rng.index(paths)),
        22 => Call::Unlink(path),
        23 => Call::Mkdir(path),
        24 => match rng.below(3) {
            0 => Call::List(path),
            1 => Call::SyncDir(path),
            _ => Call::UnlockDir,
        },
        _ => Call::LockDir(path, sharing(rng)),
    }
}

/// One of the two disks, and what the run holds open on it.
struct Side {
    disk: Arc<dyn Disk>,
    paths: Vec<PathBuf>,
    files: Vec<Arc<dyn File>>,
    held: Vec<Box<dyn Held>>,
}

impl Side {
    fn new(disk: Arc<dyn Disk>, root: &Path) -> Self {
        Self { disk, paths: paths(root), files: Vec::new(), held: Vec::new() }
    }

    fn run(&mut self, call: &Call) -> Gave {
        match call {
            Call::Open(path, access) => gave(self.disk.open(&self.paths[*path], *access), |file| {
                self.files.push(file);
                Gave::Done
            }),
            Call::UnlockDir => {
                self.held.pop();
                Gave::Done
            }
            Call::Close(file) if *file < self.files.len() => {
                self.files.remove(*file);
                Gave::Done
            }
            Call::Meta(_)
            | Call::Rename(..)
            | Call::Link(..)
            | Call::Unlink(_)
            | Call::Mkdir(_) => self.run_on_names(call),
            Call::List(_) | Call::SyncDir(_) | Call::LockDir(..) => self.run_on_directory(call),
            _ => self.run_on_file(call),
        }
    }

    fn run_on_names(&mut self, call: &Call) -> Gave {
        let (disk, paths) = (&self.disk, &self.paths);
        match call {
            Call::Meta(path) => gave(disk.meta(&paths[*path]), |meta| match meta {
                None => Gave::Nothing,
                Some(meta) if meta.kind == EntryKind::File => {
                    assert_eq!(meta.mode, 0o600);
                    Gave::Number(meta.len)
                }
                Some(_) => Gave::Done,
            }),
            Call::Rename(from, to) => {
                gave(disk.rename(&paths[*from], &paths[*to]), |()| Gave::Done)
            }
            Call::Link(from, to) => gave(disk.link(&paths[*from], &paths[*to]), |()| Gave::Done),
            Call::Unlink(path) => gave(disk.unlink(&paths[*path]), |()| Gave::Done),
            Call::Mkdir(path) => gave(disk.mkdir(&paths[*path]), |()| Gave::Done),
            other => panic!("not about names: {other:?}"),
        }
    }

    fn run_on_directory(&mut self, call: &Call) -> Gave {
        let (disk, paths) = (&self.disk, &self.paths);
        match call {
            Call::List(path) => gave(disk.list(&paths[*path]), |entries| {
                let mut names: Vec<_> = entries.into_iter().map(|e| (e.name, e.kind)).collect();
                names.sort_by(|a, b| a.0.cmp(&b.0));
                Gave::Names(names)
            }),
            Call::SyncDir(path) => gave(disk.sync_dir(&paths[*path]), |()| Gave::Done),
            Call::LockDir(path, sharing) => {
                gave(disk.lock_dir(&paths[*path], *sharing), |held| match held {
                    None => Gave::Nothing,
                    Some(held) => {
                        self.held.push(held);
                        Gave::Done
                    }
                })
            }
            other => panic!("not about a directory: {other:?}"),
        }
    }

    fn run_on_file(&mut self, call: &Call) -> Gave {
        let (Call::Close(at)
        | Call::Read { file: at, .. }
        | Call::Write { file: at, .. }
        | Call::SetLen { file: at, .. }
        | Call::Len(at)
        | Call::Sync { file: at, .. }
        | Call::Evict(at)
        | Call::Identity { file: at, .. }
        | Call::Lock { file: at, .. }
        | Call::Unlock { file: at, .. }
        | Call::IsLocked { file: at, .. }) = call
        else {
            panic!("not about a file: {call:?}");
        };
        let Some(file) = self.files.get(*at) else { return Gave::Nothing };
        let truth = |yes: bool| Gave::Number(u64::from(yes));
        match call {
            Call::Read { offset, len, .. } => {
                let mut bytes = vec![0; *len];
                gave(file.read_at(&mut bytes, *offset), |read| {
                    bytes.truncate(read);
                    Gave::Bytes(bytes)
                })
            }
            Call::Write { offset, bytes, .. } => {
                gave(file.write_at(bytes, *offset), |n| Gave::Number(n as u64))
            }
            Call::SetLen { len, .. } => gave(file.set_len(*len), |()| Gave::Done),
            Call::Len(_) => gave(file.len(), Gave::Number),
            Call::Sync { all: true, .. } => gave(file.sync_all(), |()| Gave::Done),
            Call::Sync { .. } => gave(file.sync_data(), |()| Gave::Done),
            Call::Evict(_) => gave(file.evict(), |()| Gave::Done),
            Call::Identity { path, .. } => {
                let named = self.disk.meta(&self.paths[*path]).ok().flatten();
                gave(file.identity(), |own| truth(named.is_some_and(|meta| meta.identity == own)))
            }
            Call::Lock { range, sharing, .. } => gave(file.try_lock(*range, *sharing), truth),
            Call::Unlock { range, .. } => gave(file.unlock(*range), |()| Gave::Done),
            Call::IsLocked { range, .. } => gave(file.is_locked(*range), truth),
            _ => Gave::Nothing,
        }
    }
}

/// Every result of thousands of calls: is it the same on both disks?
#[test]
fn real_and_simulated_disk_agree_on_every_result() {
    let seeds = std::env::var("SEALSTONE_SEED").map_or(0..40, |seed| {
        let seed = seed.parse().unwrap();
        seed..seed + 1
    });
    let (mut done, mut refused, mut differing) = (0, 0, Vec::new());
    for seed in seeds {
        let real_root = tempfile::tempdir().unwrap();
        let sim = SimDisk::new(seed);
        sim.mkdir(Path::new("/root")).unwrap();
        let mut real = Side::new(RealDisk::new(), real_root.path());
        let mut sim = Side::new(Arc::new(sim), Path::new("/root"));
        let mut rng = Rng::new(seed);
        for turn in 0..400 {
            let call = call(&mut rng, real.paths.len());
            let (on_real, on_sim) = (real.run(&call), sim.run(&call));
            if on_sim != on_real {
                let call: String = format!("{call:?}").chars().take(120).collect();
                differing.push(format!(
                    "seed {seed}, call {turn}: {call}\n real {on_real:.200?}\n sim {on_sim:.200?}"
                ));
                break;
            }
            match on_real {
                Gave::Refused(..) => refused += 1,
                _ => done += 1,
            }
        }
    }
    println!("{done} calls done, {refused} refused alike; SEALSTONE_SEED=n runs one seed");
    println!("paths by number: {:?}", paths(Path::new("/root")));
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    assert!(done > 0 && refused > 0);
}
