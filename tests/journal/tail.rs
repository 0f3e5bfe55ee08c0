//! Tears against damage.

use sealstone::error::ErrorKind;
use sealstone::format::frame::HEADER_BYTES;
use sealstone::journal::{Level, Tail};

use super::rig::*;

/// Frames 0..3 durable, frame 3 written: the file's bytes, the ends of the frames, the salt.
fn small() -> (Vec<u8>, Vec<u64>, [u8; 16]) {
    let mut limits = limits();
    limits.journal_prewrite_bytes = 256;
    let rig = Rig::new(limits);
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
