//! Tears against damage.

use sealstone::error::ErrorKind;
use sealstone::format::frame::HEADER_BYTES;
use sealstone::journal::{Level, Tail};
use sealstone::protection::{Protection, switch_off};

use super::rig::*;

/// Frames 0..3 durable, frame 3 written: the file's bytes, the ends of the frames, the salt.
fn small() -> (Vec<u8>, Vec<u64>, [u8; 16]) {
    small_on(7)
}

/// The same frames with the salt of another seed.
fn small_on(seed: u64) -> (Vec<u8>, Vec<u64>, [u8; 16]) {
    let mut limits = limits();
    limits.journal_prewrite_bytes = 256;
    let rig = Rig::on(fresh_disk(seed), limits);
    let mut ends = vec![HEADER_BYTES as u64];
    for (n, record) in numbered(0, 4).into_iter().enumerate() {
        let ticket = rig.journal.enqueue([record]).unwrap();
        let level = if n < 3 { Level::Durable } else { Level::Written };
        rig.journal.wait(&ticket, level).unwrap();
        ends.push(rig.journal.files()[0].end);
    }
    (rig.bytes(0), ends, rig.salt(0))
}

/// Tear the last record at every byte, cut or zeroed: is every earlier one returned, and the tear told?
#[test]
fn g2_a_tear_at_any_byte_leaves_the_frames_before() {
    let (bytes, ends, salt) = small();
    let (last, end) = (ends[3] as usize, ends[4] as usize);
    for cut in last..end {
        for zeroed in [false, true] {
            let mut torn = bytes[..cut].to_vec();
            if zeroed {
                torn.resize(bytes.len(), 0);
            }
            let (found, records) = scan_bytes(&torn, salt, None);
            let found = found.unwrap();
            // Zeros at its end are not missed when the frame ends in zeros itself.
            let whole = zeroed && torn[..end] == bytes[..end];
            assert_eq!(records, numbered(0, if whole { 4 } else { 3 }), "{cut} {zeroed}");
            assert_eq!(found.end, if whole { ends[4] } else { ends[3] });
            let used = torn.iter().rposition(|&b| b != 0).unwrap() + 1;
            let bytes = (used.saturating_sub(last)) as u64;
            let tail = if whole || bytes == 0 { Tail::Clean } else { Tail::Torn { bytes } };
            assert_eq!(found.tail, tail, "{cut} {zeroed}");
        }
    }
}

/// Flip every byte: is the answer only ever what was written, a tear above the highest synced-up-to,
/// or damage below it?
#[test]
fn g12_a_flipped_byte_is_damage_exactly_below_the_synced_end() {
    let (bytes, ends, salt) = small();
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut bad = bytes.clone();
            bad[at] ^= flip;
            let (found, records) = scan_bytes(&bad, salt, None);
            let found = found.unwrap();
            let frames = ends.iter().take_while(|&&end| end <= at as u64).count();
            let kept = frames.saturating_sub(1).min(4) as u64;
            assert_eq!(records, numbered(0, kept), "byte {at}");
            match found.tail {
                Tail::Damaged { offset, upto } => {
                    assert!((at as u64) < ends[3], "byte {at} was never known durable");
                    assert!(offset <= at as u64 && (at as u64) < upto, "{offset} {at} {upto}");
                }
                Tail::Torn { .. } => assert!(at as u64 >= ends[3], "byte {at} was durable"),
                Tail::Clean => panic!("byte {at} was not noticed"),
            }
        }
    }
}

/// An empty file, a half header, zeros: rubbish without a row, damage with one.
#[test]
fn g21_a_header_that_is_not_there_is_damage_only_with_a_row() {
    let (bytes, _, salt) = small();
    for cut in 0..HEADER_BYTES {
        let row = Row { n: 0, salt, end: None };
        let disk = disk_with(&bytes[..cut]);
        let tail = scan_on(&disk, 0, Some(&row)).0.unwrap().tail;
        assert_eq!(tail, Tail::Damaged { offset: 0, upto: 88 });
        let found = scan_on(&disk, 0, None).0.unwrap();
        assert_eq!(found.header, None);
        assert!(!matches!(found.tail, Tail::Damaged { .. }));
    }
}

/// Is the file of another store, owner, number or salt told apart?
#[test]
fn g21_foreign_files_are_called_foreign() {
    let (bytes, _, salt) = small();
    let disk = disk_with(&bytes);
    let path = path(0);
    let good = expect(0, Some(&Row { n: 0, salt, end: None }));
    let kind = |expect: &sealstone::journal::Expect| {
        sealstone::journal::scan(&disk, &path, expect, &mut |_, _| Ok(())).unwrap_err().kind()
    };
    let mut other = good.clone();
    other.store.0[0] ^= 1;
    assert_eq!(kind(&other), ErrorKind::Foreign);
    let mut other = good.clone();
    other.owner.0[0] ^= 1;
    assert_eq!(kind(&other), ErrorKind::Foreign);
    assert_eq!(kind(&sealstone::journal::Expect { n: 1, ..good.clone() }), ErrorKind::Foreign);
    let salt = Some([0; 16]);
    assert_eq!(kind(&sealstone::journal::Expect { salt, ..good.clone() }), ErrorKind::Foreign);
    let gone = sealstone::journal::scan(&disk, root(), &good, &mut |_, _| Ok(()));
    assert_eq!(gone.unwrap_err().kind(), ErrorKind::Io, "a directory");
    let gone = sealstone::journal::scan(&disk, &super::rig::path(5), &good, &mut |_, _| Ok(()));
    assert_eq!(gone.unwrap_err().kind(), ErrorKind::NotFound);
}

/// Valid frames of an older file on the same blocks behind a tear: are they ever taken?
#[test]
fn stale_frames_of_another_salt_are_a_tear() {
    let mixed = || {
        let ((bytes, ends, salt), (stale, _, other)) = (small_on(7), small_on(8));
        assert_ne!(salt, other);
        let last = ends[3] as usize;
        let mixed = [&bytes[..last], &stale[last..]].concat();
        let (found, records) = scan_bytes(&mixed, salt, None);
        (found.unwrap().tail, records.len())
    };
    assert!(matches!(mixed(), (Tail::Torn { .. }, 3)), "{:?}", mixed());
    let _off = switch_off(Protection::FrameSalt);
    assert_eq!(mixed().1, 4, "frame_salt is not missed");
}

/// Would the rule that tells damage from a tear be missed?
#[test]
fn g13_without_synced_up_to_damage_is_a_silent_rollback() {
    let (mut bytes, ends, salt) = small();
    bytes[ends[1] as usize + 30] ^= 1;
    let durable_end = Tail::Damaged { offset: ends[1], upto: ends[2] };
    assert_eq!(scan_bytes(&bytes, salt, None).0.unwrap().tail, durable_end);
    let _off = switch_off(Protection::SyncedUpTo);
    assert!(matches!(scan_bytes(&bytes, salt, None).0.unwrap().tail, Tail::Torn { .. }));
}

/// Unsynced frames that reached the medium in any order: is what survives the prefix, and no damage?
#[test]
fn g2_frames_that_persisted_out_of_order_are_a_prefix() {
    let rig = Rig::new(limits());
    rig.journal.enqueue(numbered(0, 1)).unwrap();
    rig.journal.barrier().unwrap();
    let mut starts = vec![rig.journal.files()[0].end as usize];
    for record in numbered(1, 7) {
        let ticket = rig.journal.enqueue([record]).unwrap();
        rig.journal.wait(&ticket, Level::Written).unwrap();
        starts.push(rig.journal.files()[0].end as usize);
    }
    let (whole, salt) = (rig.bytes(0), rig.salt(0));
    for kept in 0u32..1 << 6 {
        let mut bytes = whole.clone();
        for lost in (0..6).filter(|frame| kept >> frame & 1 == 0) {
            bytes[starts[lost]..starts[lost + 1]].fill(0);
        }
        let (found, records) = scan_bytes(&bytes, salt, None);
        let prefix = u64::from(kept.trailing_ones());
        assert_eq!(records, numbered(0, 1 + prefix), "{kept:b}");
        let gone = kept >> kept.trailing_ones() == 0;
        let tail = found.unwrap().tail;
        assert!(if gone { tail == Tail::Clean } else { matches!(tail, Tail::Torn { .. }) });
    }
}

/// A journal that grows by one byte at a time under a reader: each record once, in order, no error?
#[test]
fn a_growing_file_is_never_an_error() {
    let (bytes, ends, salt) = small();
    for len in HEADER_BYTES..=bytes.len() {
        let (found, records) = scan_bytes(&bytes[..len], salt, None);
        let whole = ends[1..].iter().filter(|&&end| end <= len as u64).count() as u64;
        assert_eq!(records, numbered(0, whole), "{len}");
        assert!(!matches!(found.unwrap().tail, Tail::Damaged { .. }), "{len}");
    }
}

/// The row says where the file ends: is anything before missing it, or anything behind taken?
#[test]
fn g10_the_end_in_the_row_is_the_end() {
    let (bytes, ends, salt) = small();
    for (frames, &end) in ends.iter().enumerate() {
        let mut behind = bytes.clone();
        behind[end as usize..].fill(0xa5);
        for bytes in [&bytes[..], &bytes[..end as usize], &behind] {
            let (found, records) = scan_bytes(bytes, salt, Some(end));
            let found = found.unwrap();
            assert_eq!((found.tail, found.end), (Tail::Clean, end));
            assert_eq!(records, numbered(0, frames as u64));
        }
        for cut in 0..end as usize {
            let (found, records) = scan_bytes(&bytes[..cut], salt, Some(end));
            assert!(matches!(found.unwrap().tail, Tail::Damaged { .. }), "{cut} of {end}");
            assert!(records.len() < frames.max(1));
        }
        if let Some(&next) = ends.get(frames + 1) {
            let (found, _) = scan_bytes(&bytes, salt, Some(next - 8));
            let across = Tail::Damaged { offset: end, upto: next };
            assert_eq!(found.unwrap().tail, across, "a frame across the end");
        }
    }
}
