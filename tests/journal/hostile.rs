//! Bytes that no writer of ours wrote: bounded, typed, never taken for records.

use sealstone::error::ErrorKind;
use sealstone::format::frame::{
    FRAME_HEADER_BYTES, FrameHeader, FrameKind, HEADER_BYTES, Header, body_checksum, padded,
};
use sealstone::format::record::encode_body;
use sealstone::ids::{CommitSeq, Epoch};
use sealstone::journal::{Tail, read_header, scan};
use sealstone::vfs::sim::Rng;

use super::rig::*;

const SALT: [u8; 16] = [5; 16];

fn header() -> Vec<u8> {
    let commit = CommitSeq(0);
    Header { store: STORE, owner: OWNER, salt: SALT, epoch: Epoch(1), n: 0, commit }.encode().into()
}

/// A frame at the end of `file`, whatever it holds.
fn put(file: &mut Vec<u8>, kind: FrameKind, body: &[u8], synced: u64) {
    let header = FrameHeader::new(kind, body.len(), body_checksum(body), synced);
    file.extend(header.encode(&SALT, file.len() as u64));
    file.extend(body);
    file.resize(padded(file.len()), 0);
}

/// Right checksums over bodies that are none: damage, not a tear, and not the end of what came before?
#[test]
fn p6_a_body_that_does_not_decode_is_damage() {
    for body in [&b""[..], b"\0\0\0\0", b"\x01\0\0\0", &[0xff; 40]] {
        let mut file = header();
        put(&mut file, FrameKind::Records, &encode_body(&numbered(0, 2)), 88);
        let offset = file.len() as u64;
        put(&mut file, FrameKind::Records, body, 88);
        let upto = file.len() as u64;
        put(&mut file, FrameKind::Records, &encode_body(&numbered(2, 4)), 88);
        let (found, records) = scan_bytes(&file, SALT, None);
        assert_eq!(found.unwrap().tail, Tail::Damaged { offset, upto });
        assert_eq!(records, numbered(0, 2));
    }
}

/// A frame kind of a later release: is it skipped, or called damage?
#[test]
fn g26_an_unknown_frame_is_a_newer_format() {
    let mut file = header();
    put(&mut file, FrameKind::Unknown(77), b"later", 88);
    let (found, _) = scan_bytes(&file, SALT, None);
    assert_eq!(found.unwrap_err().kind(), ErrorKind::NewerFormat);
    let disk = disk_with(&file);
    assert_eq!(read_header(&disk, &path(0)).unwrap().store, STORE);
    let short = read_header(&disk_with(&file[..80]), &path(0)).unwrap_err();
    assert_eq!(short.kind(), ErrorKind::Damage);
    assert_eq!(read_header(&disk_with(&[7; 99]), &path(0)).unwrap_err().kind(), ErrorKind::Damage);
}

/// The error of whoever takes the records: does the scan end with it?
#[test]
fn a_refusal_of_the_caller_ends_the_scan() {
    let mut file = header();
    for n in 0..5 {
        put(&mut file, FrameKind::Records, &encode_body(&numbered(n, n + 1)), 88);
    }
    let disk = disk_with(&file);
    let row = Row { n: 0, salt: SALT, end: None };
    let mut seen = 0;
    let refused = scan(&disk, &path(0), &expect(0, Some(&row)), &mut |_, _| {
        seen += 1;
        match seen {
            3 => Err(sealstone::error::Error::invalid("take", "a frame", "enough")),
            _ => Ok(()),
        }
    });
    assert_eq!((refused.unwrap_err().kind(), seen), (ErrorKind::Invalid, 3));
}

/// Peak resident memory of this process, where the platform tells.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

/// Files made of nothing but plausible headers: is the work linear, and the memory the file's own length
/// at most?
#[test]
fn g22_hostile_headers_cost_a_few_readings() {
    const LEN: usize = 8 << 20;
    // Each claims the rest of the file, as long as a frame may be, or a little; with and without claims
    // of durability.
    for (claim, synced) in [(usize::MAX, 88), (4 << 20, 88), (600, 88), (3, 88), (usize::MAX, 0)] {
        let mut file = header();
        while file.len() < LEN {
            let at = file.len();
            let body = claim.min(LEN - at).max(3);
            let stated = if synced == 0 { at as u64 } else { synced };
            let made = FrameHeader::new(FrameKind::Records, body, 1234, stated);
            file.extend(made.encode(&SALT, at as u64));
            file.resize(at + padded(FRAME_HEADER_BYTES + 3), 1);
        }
        let disk = disk_with(&file);
        let before = (disk.counts(), peak_bytes());
        let row = Row { n: 0, salt: SALT, end: None };
        let (found, records) = scan_on(&disk, 0, Some(&row));
        let found = found.unwrap();
        assert!(records.is_empty());
        let damaged = matches!(found.tail, Tail::Damaged { offset: 88, .. });
        assert_eq!(damaged, synced == 0, "{:?}", found.tail);
        let read = disk.counts().since(&before.0).bytes_read;
        assert!(read <= 5 * LEN as u64, "{read} bytes read of {LEN}");
        if let (Some(before), Some(after)) = (before.1, peak_bytes()) {
            assert!(after - before <= 2 * LEN as u64 + (4 << 20), "{} more bytes", after - before);
        }
    }
}

/// Any damage whatever, to a journal of several frames: only a prefix comes back, or a typed error.
#[test]
fn g11_random_damage_yields_a_prefix_or_a_typed_error() {
    let seed = 11;
    let mut rng = Rng::new(seed);
    let rig = Rig::new(limits());
    for record in numbered(0, 12) {
        rig.journal.enqueue([record]).unwrap();
        if rng.one_in(3) {
            rig.journal.barrier().unwrap();
        }
    }
    rig.journal.barrier().unwrap();
    let (good, salt) = (rig.bytes(0), rig.salt(0));
    for trial in 0..4000 {
        let mut bytes = good.clone();
        for _ in 0..=rng.below(3) {
            let at = rng.index(bytes.len());
            let len = rng.index(80).min(bytes.len() - at);
            match rng.below(5) {
                0 => bytes[at] ^= 1 << rng.below(8),
                1 => rng.fill(&mut bytes[at..at + len]),
                2 => bytes[at..at + len].fill(0),
                3 => bytes.truncate(at.max(1)),
                _ => {
                    let from = rng.index(bytes.len() - len);
                    bytes.copy_within(from..from + len, at);
                }
            }
        }
        let end = rng.one_in(4).then(|| rig.journal.files()[0].end);
        let (found, records) = scan_bytes(&bytes, salt, end);
        let case = format!("seed {seed}, trial {trial}");
        assert_eq!(records, numbered(0, records.len() as u64), "{case}");
        match found {
            Ok(found) if found.tail == Tail::Clean && end.is_none() => {
                // What was cut at the end of a frame, or is all zeros from there, leaves no trace.
                let behind = bytes.get(found.end as usize..).unwrap_or_default();
                let statement = behind.len().min(24);
                let zeros = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
                assert!(zeros(behind) || zeros(&behind[statement..]), "{case}");
            }
            Ok(found) => assert!(end.is_none() || records.len() == 12 || found.tail != Tail::Clean),
            Err(e) => assert_eq!(e.kind(), ErrorKind::Foreign, "{case}"),
        }
    }
    assert!(good.len() > HEADER_BYTES);
}
