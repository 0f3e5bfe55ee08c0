//! Does the simulated disk break what is broken, and nothing else?

use std::collections::BTreeSet;
use std::path::Path;

use sealstone::vfs::sim::{Event, Outcome, Outcomes, Profile, Rng, SimDisk};
use sealstone::vfs::{Access, Disk, read_exact_at, read_whole, write_all_at};

const POWER: [Profile; 2] = [Profile::PosixHarshest, Profile::Ext4Ordered];

fn put(disk: &SimDisk, path: &str, bytes: &[u8], sync: bool) {
    let file = disk.open(Path::new(path), Access::CreateNew).unwrap();
    write_all_at(&*file, bytes, 0).unwrap();
    if sync {
        file.sync_data().unwrap();
    }
}

fn get(disk: &SimDisk, path: &str) -> Option<Vec<u8>> {
    let file = disk.open(Path::new(path), Access::Read).ok()?;
    read_whole(&*file, 1 << 20).ok()
}

fn rename(disk: &SimDisk, from: &str, to: &str) {
    disk.rename(Path::new(from), Path::new(to)).unwrap();
}

fn sync_dir(disk: &SimDisk, path: &str) {
    disk.sync_dir(Path::new(path)).unwrap();
}

/// What a crash image must satisfy, given the last note before the crash.
type Check = fn(&SimDisk, Option<&[u8]>) -> bool;

/// Crashes `write` at every event under `profile`: how many images there were, and the first that
/// `check` refused.
fn crash(write: fn(&SimDisk), check: Check, profile: Profile) -> (usize, Option<String>) {
    let disk = SimDisk::new(11);
    write(&disk);
    let log = disk.events();
    let mut cursor = log.cursor(profile);
    let mut rng = Rng::new(12);
    let (mut images, mut refused) = (0, None);
    loop {
        for image in cursor.images(&mut rng, 60) {
            images += 1;
            let note = cursor.notes().last().map(|note| &**note);
            if !check(&image.disk(), note) {
                refused.get_or_insert_with(|| image.outcomes().to_string());
            }
        }
        if cursor.advance().is_none() {
            return (images, refused);
        }
    }
}

fn passes(write: fn(&SimDisk), check: Check, profile: Profile) {
    let (images, refused) = crash(write, check, profile);
    assert!(images > 1, "{profile:?}: only {images} images");
    assert_eq!(refused, None, "{profile:?}: a right writer was refused");
}

fn fails(write: fn(&SimDisk), check: Check, profile: Profile) {
    let (images, refused) = crash(write, check, profile);
    assert!(refused.is_some(), "{profile:?}: none of {images} images caught a broken writer");
}

/// Replaces `/state` twice, each time in four steps, of which some may be left out.
fn replace_twice(disk: &SimDisk, sync_file: bool, sync_names: bool) {
    for (name, content) in [("one", [1u8; 6000]), ("two", [2; 6000])] {
        put(disk, "/state.next", &content, sync_file);
        rename(disk, "/state.next", "/state");
        if sync_names {
            sync_dir(disk, "/");
        }
        disk.note(name);
    }
}

fn state_is_whole(disk: &SimDisk, note: Option<&[u8]>) -> bool {
    let state = get(disk, "/state");
    let is = |byte: u8| state.as_deref() == Some(&[byte; 6000][..]);
    match note {
        None => state.is_none() || is(1),
        Some(b"one") => is(1) || is(2),
        _ => is(2),
    }
}

/// Is a writer caught that gives a file its name before the content is synced?
#[test]
fn a_rename_before_the_data_sync_is_caught() {
    for profile in POWER {
        passes(|disk| replace_twice(disk, true, true), state_is_whole, profile);
        fails(|disk| replace_twice(disk, false, true), state_is_whole, profile);
    }
}

/// Is a writer caught that acknowledges a rename without syncing the directory?
#[test]
fn an_acknowledged_rename_without_directory_sync_is_caught() {
    for profile in POWER {
        fails(|disk| replace_twice(disk, true, false), state_is_whole, profile);
    }
    passes(|disk| replace_twice(disk, true, false), state_is_whole, Profile::ProcessKill);
}

/// Ext4 promises to write a file's data before it renames the file over another one. Is that, and
/// no more, what sets the two power profiles apart?
#[test]
fn ext4_forgives_only_what_it_promises() {
    fn over(disk: &SimDisk) {
        put(disk, "/state", &[1; 6000], true);
        sync_dir(disk, "/");
        disk.note("one");
        put(disk, "/state.next", &[2; 6000], false);
        rename(disk, "/state.next", "/state");
    }
    fn once_there(disk: &SimDisk, note: Option<&[u8]>) -> bool {
        note.is_none() || state_is_whole(disk, note)
    }
    passes(over, once_there, Profile::Ext4Ordered);
    fails(over, once_there, Profile::PosixHarshest);
}

/// Writes a payload, then a commit record that names it.
fn commit_with(disk: &SimDisk, sync_payload: bool) {
    put(disk, "/commits", &[0; 8], true);
    put(disk, "/payload", &[0; 4096], true);
    sync_dir(disk, "/");
    let payload = disk.open(Path::new("/payload"), Access::ReadWrite).unwrap();
    let commits = disk.open(Path::new("/commits"), Access::ReadWrite).unwrap();
    write_all_at(&*payload, &[7; 4096], 0).unwrap();
    if sync_payload {
        payload.sync_data().unwrap();
    }
    write_all_at(&*commits, &[1], 0).unwrap();
    commits.sync_data().unwrap();
    disk.note("committed");
}

fn commit_names_a_whole_payload(disk: &SimDisk, note: Option<&[u8]>) -> bool {
    let committed = get(disk, "/commits").is_some_and(|bytes| bytes.first() == Some(&1));
    let whole = get(disk, "/payload").is_some_and(|bytes| bytes == [7; 4096]);
    if committed { whole } else { note.is_none() }
}

/// Is a writer caught whose commit record names a payload that was not synced?
#[test]
fn a_commit_before_the_payload_sync_is_caught() {
    for profile in POWER {
        passes(|disk| commit_with(disk, true), commit_names_a_whole_payload, profile);
        fails(|disk| commit_with(disk, false), commit_names_a_whole_payload, profile);
    }
    passes(|disk| commit_with(disk, false), commit_names_a_whole_payload, Profile::ProcessKill);
}

/// Overwrites a record of two equal halves; the right writer writes a second copy and then one
/// byte that says which copy counts.
fn overwrite(disk: &SimDisk, in_place: bool) {
    put(disk, "/record", &[0; 8193], true);
    sync_dir(disk, "/");
    let record = disk.open(Path::new("/record"), Access::ReadWrite).unwrap();
    if in_place {
        record.write_at(&[5; 4096], 0).unwrap();
    } else {
        record.write_at(&[5; 4096], 4096).unwrap();
        record.sync_data().unwrap();
        record.write_at(&[1], 8192).unwrap();
    }
    record.sync_data().unwrap();
    disk.note("five");
}

fn record_is_not_torn(disk: &SimDisk, note: Option<&[u8]>) -> bool {
    let bytes = get(disk, "/record").unwrap_or_default();
    let Some(which) = bytes.get(8192) else { return note.is_none() };
    let copy = &bytes[usize::from(*which) * 4096..][..4096];
    copy == [5; 4096] || (note.is_none() && copy == [0; 4096])
}

/// Is a writer caught that overwrites in place what must never be half new, under each profile?
#[test]
fn an_overwrite_in_place_is_caught() {
    for profile in Profile::ALL {
        passes(|disk| overwrite(disk, false), record_is_not_torn, profile);
        fails(|disk| overwrite(disk, true), record_is_not_torn, profile);
    }
}

/// Is a writer caught that acknowledges before the kernel has the bytes?
#[test]
fn an_acknowledgement_before_the_write_is_caught() {
    fn early(disk: &SimDisk) {
        put(disk, "/log", b"", true);
        sync_dir(disk, "/");
        let log = disk.open(Path::new("/log"), Access::ReadWrite).unwrap();
        disk.note("written");
        log.write_at(b"x", 0).unwrap();
    }
    fn late(disk: &SimDisk) {
        put(disk, "/log", b"x", false);
        disk.note("written");
    }
    fn written(disk: &SimDisk, note: Option<&[u8]>) -> bool {
        note.is_none() || get(disk, "/log").is_some_and(|bytes| bytes == b"x")
    }
    fails(early, written, Profile::ProcessKill);
    passes(late, written, Profile::ProcessKill);
    fails(late, written, Profile::PosixHarshest);
}

/// Does a link stand in for the name it was made from, only once its directory is synced?
#[test]
fn an_unlink_before_the_links_directory_sync_is_caught() {
    fn birth(disk: &SimDisk, sync_between: bool) {
        disk.mkdir(Path::new("/tmp")).unwrap();
        sync_dir(disk, "/");
        put(disk, "/tmp/new", &[3; 100], true);
        sync_dir(disk, "/tmp");
        disk.note("born");
        disk.link(Path::new("/tmp/new"), Path::new("/manifest")).unwrap();
        if sync_between {
            sync_dir(disk, "/");
        }
        disk.unlink(Path::new("/tmp/new")).unwrap();
    }
    fn one_name_stands(disk: &SimDisk, note: Option<&[u8]>) -> bool {
        let is = |path| get(disk, path).is_some_and(|bytes| bytes == [3; 100]);
        note.is_none() || is("/tmp/new") || is("/manifest")
    }
    passes(|disk| birth(disk, true), one_name_stands, Profile::PosixHarshest);
    fails(|disk| birth(disk, false), one_name_stands, Profile::PosixHarshest);
}

/// Each file of the random run, as a plain list of what each byte may be after a crash.
#[derive(Default, Clone)]
struct Allowed {
    bytes: Vec<BTreeSet<u8>>,
    len_min: usize,
}

impl Allowed {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, BTreeSet::from([0]));
        }
        for (set, byte) in self.bytes[offset..end].iter_mut().zip(bytes) {
            set.insert(*byte);
        }
    }

    fn sync(&mut self, content: &[u8]) {
        self.bytes = content.iter().map(|byte| BTreeSet::from([*byte])).collect();
        self.len_min = content.len();
    }

    fn admits(&self, content: &[u8]) -> bool {
        (self.len_min..=self.bytes.len()).contains(&content.len())
            && content.iter().zip(&self.bytes).all(|(byte, set)| set.contains(byte))
    }
}

/// RELIABILITY's contract: single bytes are atomic, bytes outside a write do not change, a sync
/// that succeeded is honoured. Does every image of a random run keep it, whatever the profile?
#[test]
fn every_byte_is_old_or_new_and_synced_bytes_stay() {
    for seed in 0..3 {
        let mut rng = Rng::new(seed);
        let disk = SimDisk::new(seed);
        put(&disk, "/f", b"", false);
        sync_dir(&disk, "/");
        let file = disk.open(Path::new("/f"), Access::ReadWrite).unwrap();
        // What is allowed after each event, by its number.
        let mut allowed = vec![Allowed::default(); disk.events().len() + 1];
        for _ in 0..25 {
            let mut now = allowed.last().unwrap().clone();
            if rng.one_in(5) {
                file.sync_data().unwrap();
                now.sync(&read_whole(&*file, 1 << 20).unwrap());
            } else {
                let mut bytes = vec![0; 1 + rng.index(2000)];
                rng.fill(&mut bytes);
                let offset = rng.index(6000);
                file.write_at(&bytes, offset as u64).unwrap();
                now.write(offset, &bytes);
            }
            allowed.push(now);
        }
        for profile in Profile::ALL {
            let mut cursor = disk.events().cursor(profile);
            loop {
                for image in cursor.images(&mut rng, 16) {
                    let content = get(&image.disk(), "/f").unwrap_or_default();
                    let outcomes = image.outcomes();
                    assert!(allowed[cursor.cut()].admits(&content), "seed {seed}: {outcomes}");
                }
                if cursor.advance().is_none() {
                    break;
                }
            }
        }
    }
}

fn image_of(disk: &SimDisk, profile: Profile, pending: Vec<Outcome>) -> SimDisk {
    let log = disk.events();
    log.image(&Outcomes { profile, cut: log.len(), pending }).disk()
}

/// Do names come and go apart from content, and directories with all that is in them?
#[test]
fn names_and_content_survive_apart() {
    use Outcome::{Full, Lost};
    let disk = SimDisk::new(1);
    put(&disk, "/a", b"content", false);
    let after =
        |pending: &[Outcome]| get(&image_of(&disk, Profile::PosixHarshest, pending.to_vec()), "/a");
    assert_eq!(after(&[Full, Lost]).as_deref(), Some(&b""[..]), "a name without its content");
    assert_eq!(after(&[Lost, Full]), None, "content without a name");
    assert_eq!(after(&[Full, Outcome::Zeroed]).as_deref(), Some(&[0; 7][..]));
    assert_eq!(after(&[Full, Outcome::Cut(3)]).as_deref(), Some(&b"con"[..]));
    assert_eq!(after(&[Full, Full]).as_deref(), Some(&b"content"[..]));

    let disk = SimDisk::new(1);
    disk.mkdir(Path::new("/d")).unwrap();
    put(&disk, "/d/a", b"content", true);
    sync_dir(&disk, "/d");
    let image = image_of(&disk, Profile::PosixHarshest, vec![Lost]);
    assert_eq!(image.meta(Path::new("/d")).unwrap(), None, "mkdir was not synced");
    sync_dir(&disk, "/");
    let image = image_of(&disk, Profile::PosixHarshest, vec![]);
    assert_eq!(get(&image, "/d/a").as_deref(), Some(&b"content"[..]));
}

/// Is a rename old or new and never neither; and is a rename across directories whole once the
/// directory it left is synced, but perhaps there twice when only its target is?
#[test]
fn a_rename_never_loses_both_names() {
    let disk = SimDisk::new(1);
    for path in ["/tmp", "/sealed"] {
        disk.mkdir(Path::new(path)).unwrap();
    }
    put(&disk, "/tmp/a", b"content", true);
    for path in ["/", "/tmp"] {
        sync_dir(&disk, path);
    }
    rename(&disk, "/tmp/a", "/sealed/a");
    let names = |disk: &SimDisk| (get(disk, "/tmp/a").is_some(), get(disk, "/sealed/a").is_some());
    let after =
        |disk: &SimDisk, outcome| names(&image_of(disk, Profile::PosixHarshest, vec![outcome]));
    assert_eq!(after(&disk, Outcome::Lost), (true, false));
    assert_eq!(after(&disk, Outcome::Full), (false, true));
    assert_eq!(after(&disk, Outcome::Torn(0)), (true, true));
    sync_dir(&disk, "/sealed");
    assert_eq!(after(&disk, Outcome::Lost), (true, true));
    assert_eq!(after(&disk, Outcome::Full), (false, true));
    sync_dir(&disk, "/tmp");
    assert_eq!(after(&disk, Outcome::Lost), (false, true));

    put(&disk, "/tmp/b", b"content", true);
    sync_dir(&disk, "/tmp");
    rename(&disk, "/tmp/b", "/sealed/b");
    sync_dir(&disk, "/tmp");
    let image = image_of(&disk, Profile::PosixHarshest, vec![]);
    assert!(get(&image, "/sealed/b").is_some(), "the source's sync takes the new name along");
}

/// Does a name that survived tell of all that happened to it before? Else a file whose old name was
/// given to another one would be lost by a rename.
#[test]
fn a_reused_name_does_not_lose_the_file_that_had_it() {
    let disk = SimDisk::new(1);
    put(&disk, "/a", b"first", true);
    sync_dir(&disk, "/");
    rename(&disk, "/a", "/b");
    put(&disk, "/a", b"second", true);
    let after = |pending: &[Outcome]| {
        let image = image_of(&disk, Profile::PosixHarshest, pending.to_vec());
        (get(&image, "/a"), get(&image, "/b"))
    };
    let some = |text: &str| Some(text.as_bytes().to_vec());
    assert_eq!(after(&[Outcome::Lost, Outcome::Lost]), (some("first"), None));
    assert_eq!(after(&[Outcome::Full, Outcome::Lost]), (None, some("first")));
    assert_eq!(after(&[Outcome::Lost, Outcome::Full]), (some("second"), some("first")));
}

/// On ext4 a file's sync commits the names before it if it has metadata to commit, and only then.
#[test]
fn on_ext4_a_sync_of_new_metadata_commits_names() {
    let names_after = |profile, resize: bool| {
        let disk = SimDisk::new(1);
        put(&disk, "/a", b"content", true);
        sync_dir(&disk, "/");
        rename(&disk, "/a", "/b");
        let file = disk.open(Path::new("/b"), Access::ReadWrite).unwrap();
        let other = disk.open(Path::new("/c"), Access::CreateNew).unwrap();
        other.sync_data().unwrap();
        let a_commit = get(&image_of(&disk, profile, vec![]), "/b").is_some();
        disk.mkdir(Path::new("/d")).unwrap();
        file.write_at(b"x", if resize { 7 } else { 0 }).unwrap();
        file.sync_data().unwrap();
        let image = image_of(&disk, profile, vec![]);
        (a_commit, image.meta(Path::new("/d")).unwrap().is_some())
    };
    assert_eq!(names_after(Profile::Ext4Ordered, true), (true, true));
    assert_eq!(names_after(Profile::Ext4Ordered, false), (true, false));
    assert_eq!(names_after(Profile::PosixHarshest, true), (false, false));
}

/// After a kill the kernel still has what was not synced. Does a power failure during the next
/// process's recovery take it, and a sync keep it?
#[test]
fn what_a_killed_process_wrote_is_not_yet_durable() {
    let disk = SimDisk::new(1);
    put(&disk, "/a", b"", true);
    sync_dir(&disk, "/");
    let file = disk.open(Path::new("/a"), Access::ReadWrite).unwrap();
    file.write_at(b"unsynced", 0).unwrap();
    let killed = image_of(&disk, Profile::ProcessKill, vec![Outcome::Full]);
    assert_eq!(get(&killed, "/a").as_deref(), Some(&b"unsynced"[..]));
    assert_eq!(killed.boot_id(), disk.boot_id());
    let powerless = image_of(&killed, Profile::PosixHarshest, vec![Outcome::Lost]);
    assert_eq!(get(&powerless, "/a").as_deref(), Some(&b""[..]));
    assert_ne!(powerless.boot_id(), disk.boot_id());
    killed.open(Path::new("/a"), Access::ReadWrite).unwrap().sync_data().unwrap();
    let kept = image_of(&killed, Profile::PosixHarshest, vec![]);
    assert_eq!(get(&kept, "/a").as_deref(), Some(&b"unsynced"[..]));
    // The last write of a killed process may be short.
    let short = image_of(&disk, Profile::ProcessKill, vec![Outcome::Cut(2)]);
    assert_eq!(get(&short, "/a").as_deref(), Some(&b"un"[..]));
}

/// Does each marked step get its crashes, also where an earlier one looked the same, and nothing
/// else get them twice? A campaign counts steps, and one once went uncut.
#[test]
fn each_step_is_cut_once() {
    let disk = SimDisk::new(1);
    put(&disk, "/a", b"content", false);
    let mut cursor = disk.events().cursor(Profile::PosixHarshest);
    let mut rng = Rng::new(1);
    cursor.advance_to(usize::MAX);
    while !cursor.images(&mut rng, 30).is_empty() {}
    disk.mark(sealstone::vfs::Step::SealSync);
    let mut cursor = disk.events().cursor(Profile::PosixHarshest);
    let mut images = Vec::new();
    loop {
        images.push(cursor.images(&mut rng, 2).len());
        if cursor.advance().is_none() {
            break;
        }
    }
    assert_eq!(images.last(), Some(&2), "none and all, in the step just marked");
    assert!(cursor.images(&mut rng, 2).is_empty());
    assert!(cursor.duplicates() >= 2);
}

/// Does the text of a failing case rebuild the very image, and does a cursor that walked there?
#[test]
fn a_fixture_rebuilds_its_image() {
    let disk = SimDisk::new(3);
    replace_twice(&disk, false, false);
    let log = disk.events();
    for profile in Profile::ALL {
        let mut cursor = log.cursor(profile);
        let mut rng = Rng::new(4);
        cursor.advance_to(5);
        for image in cursor.images(&mut rng, 40) {
            let text = image.outcomes().to_string();
            let again = log.image(&text.parse().unwrap());
            assert_eq!(again.fingerprint(), image.fingerprint(), "{text}");
        }
    }
}

/// Does one seed give one run, whatever came of it, and another seed another one?
#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let disk = SimDisk::new(seed);
        replace_twice(&disk, true, true);
        let mut chance = [0; 16];
        disk.entropy(&mut chance).unwrap();
        put(&disk, "/chance", &chance, true);
        for name in 0..20 {
            put(&disk, &format!("/{name}"), b"", false);
        }
        for entry in disk.list(Path::new("/")).unwrap() {
            disk.note(entry.name);
        }
        let log = disk.events();
        let mut images = Vec::new();
        let mut cursor = log.cursor(Profile::PosixHarshest);
        cursor.advance_to(9);
        let mut rng = Rng::new(seed);
        images.extend(cursor.images(&mut rng, 20).iter().map(|image| image.fingerprint()));
        (log.trace_hash(), images)
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5).0, run(6).0);
}

/// Does a crash image know nothing of the handles and locks of the world it came from, and never
/// repeat its chance?
#[test]
fn an_image_is_a_new_world() {
    let disk = SimDisk::new(1);
    put(&disk, "/a", b"", true);
    sync_dir(&disk, "/");
    let file = disk.open(Path::new("/a"), Access::ReadWrite).unwrap();
    let whole = sealstone::vfs::LockRange::WHOLE;
    file.lock(whole, sealstone::vfs::Sharing::Exclusive).unwrap();
    let image = image_of(&disk, Profile::PosixHarshest, vec![]);
    assert_eq!((image.counts().open_handles, image.counts().locks_held), (0, 0));
    let other = image.open(Path::new("/a"), Access::ReadWrite).unwrap();
    assert!(other.try_lock(whole, sealstone::vfs::Sharing::Exclusive).unwrap());
    assert!(image.wall_nanos() > disk.wall_nanos().map(|now| now - 1_000_000));
    let chance = |disk: &SimDisk| {
        let mut bytes = [0; 16];
        disk.entropy(&mut bytes).unwrap();
        bytes
    };
    let later = image_of(&image, Profile::PosixHarshest, vec![]);
    let all = BTreeSet::from([chance(&disk), chance(&image), chance(&later)]);
    assert_eq!(all.len(), 3);
}

/// Does the log name what happened, step by step?
#[test]
fn the_log_tells_what_happened() {
    let disk = SimDisk::new(1);
    disk.mkdir(Path::new("/d")).unwrap();
    disk.mark(sealstone::vfs::Step::HeadWrite);
    put(&disk, "/d/a", b"abc", true);
    rename(&disk, "/d/a", "/d/b");
    disk.note("done");
    let log = disk.events();
    let last = log.len() - 1;
    assert_eq!(log.describe(last - 1), "5: rename /d/a to /d/b");
    assert_eq!(log.describe(3), "3: write 3 bytes at 0 of /d/a");
    assert_eq!(log.step_at(1), None);
    assert_eq!(log.step_at(4), Some(sealstone::vfs::Step::HeadWrite));
    assert_eq!(log.notes(last).count(), 0);
    assert_eq!(log.notes(last + 1).collect::<Vec<_>>(), [b"done"]);
    assert_eq!(log.disk_operations(), log.len() - 2);
    assert!(matches!(log.events()[last], Event::Note(_)));
    let file = disk.open(Path::new("/d/b"), Access::Read).unwrap();
    let mut bytes = [0; 3];
    read_exact_at(&*file, &mut bytes, 0).unwrap();
    assert_eq!(file.len().unwrap(), 3);
}
