//! Do framed bytes give back what was put, and refuse everything else?

use super::framed::*;
use crate::digest::checksum;
use crate::error::ErrorKind;

/// Raw bytes that compress, none of them like another.
fn raw(len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (at / 64 % 251) as u8 ^ (at % 16) as u8).collect()
}

const FRAME: usize = FRAME_BYTES as usize;

fn pushed(raw: &[u8], step: usize) -> Vec<u8> {
    let mut stored = Vec::new();
    let mut out = |bytes: &[u8]| {
        stored.extend_from_slice(bytes);
        Ok(())
    };
    let mut encoder = Encoder::new().unwrap();
    raw.chunks(step).for_each(|part| encoder.push(part, &mut out).unwrap());
    encoder.finish(&mut out).unwrap();
    stored
}

/// Are the stored bytes the same however they are pushed, and do all lengths around a frame come back?
#[test]
fn obj1_framed_bytes_come_back_whatever_their_length() {
    for len in [0, 1, 1000, FRAME - 1, FRAME, FRAME + 1, 2 * FRAME, 2 * FRAME + 77] {
        let raw = raw(len);
        let stored = encode(&raw).unwrap();
        for step in [FRAME / 3 + 1, FRAME, 5 * FRAME] {
            assert!(pushed(&raw, step) == stored, "{len} in steps of {step}");
        }
        assert!(decode_all(&stored, len as u64).unwrap() == raw, "{len}");
        assert!(len < 1000 || stored.len() < len, "{len} bytes took {}", stored.len());
    }
    assert_eq!(encode(&[]).unwrap().len(), END_BYTES);
}

/// Does a range read the table and the frames that hold it, and nothing else?
#[test]
fn obj2_a_range_reads_only_its_frames() {
    let raw = raw(3 * FRAME + 500);
    let stored = encode(&raw).unwrap();
    let (stored_len, len) = (stored.len() as u64, raw.len() as u64);
    let ends = [0, 1, FRAME - 1, FRAME, FRAME + 1, 2 * FRAME + 9, 3 * FRAME, raw.len()];
    for start in ends {
        for end in ends.into_iter().filter(|end| *end >= start) {
            let mut asked = Vec::new();
            let got = read_range(stored_len, len, &(start as u64..end as u64), &mut |range| {
                asked.push(range.clone());
                Ok(stored[range.start as usize..range.end as usize].to_vec())
            });
            assert!(got.unwrap() == raw[start..end], "{start}..{end}");
            let frames = if start == end { 0 } else { end.div_ceil(FRAME) - start / FRAME };
            assert_eq!(asked.len(), 1 + frames, "{start}..{end}");
        }
    }
    for beyond in [len..len + 1, 0..len + 1] {
        let refused = read_range(stored_len, len, &beyond, &mut |_| unreachable!()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
    }
}

/// Is what was cut anywhere, or changed in any byte, damage and never other bytes? (P9)
#[test]
fn p9_cut_and_changed_framed_bytes_are_damage() {
    let raw = raw(5000);
    let stored = encode(&raw).unwrap();
    for len in 0..stored.len() {
        let cut = decode_all(&stored[..len], 5000).unwrap_err();
        assert_eq!(cut.kind(), ErrorKind::Damage, "cut at {len}");
    }
    for at in 0..stored.len() {
        for flip in [1, 0x80, 0xff] {
            let mut bad = stored.clone();
            bad[at] ^= flip;
            match decode_all(&bad, 5000) {
                Ok(got) => assert!(got == raw, "byte {at}"),
                Err(e) => assert_eq!(e.kind(), ErrorKind::Damage, "byte {at}"),
            }
        }
    }
    for len in [0, 1, 4999, 5001, FRAME_BYTES + 1, 1 << 40, u64::MAX] {
        let other = decode_all(&stored, len).unwrap_err();
        assert_eq!(other.kind(), ErrorKind::Damage, "as {len} bytes");
    }
}

/// Stored bytes with a table of these lengths, whose checksum fits.
fn lying(body: &[u8], lens: &[u32], raw_len: u64, frames: u32) -> Vec<u8> {
    let mut table: Vec<u8> = lens.iter().flat_map(|len| len.to_le_bytes()).collect();
    table.extend_from_slice(&raw_len.to_le_bytes());
    table.extend_from_slice(&frames.to_le_bytes());
    table.extend_from_slice(&checksum(&table).to_le_bytes());
    [body, &table].concat()
}

/// Is a table that lies refused, whole as its checksum may be? (P9)
#[test]
fn p9_tables_that_lie_are_refused() {
    let raw = raw(FRAME + 100);
    let stored = encode(&raw).unwrap();
    let table = Frames::table_of(stored.len() as u64, raw.len() as u64).unwrap();
    let body = &stored[..table.start as usize];
    let frames =
        Frames::read(&stored[table.start as usize..], stored.len() as u64, FRAME_BYTES + 100);
    let frames = frames.unwrap();
    assert_eq!(frames.count(), 2);
    let first = frames.stored(0).end as u32;
    let (second, len) = (body.len() as u32 - first, raw.len() as u64);
    assert!(decode_all(&lying(body, &[first, second], len, 2), len).unwrap() == raw);
    let lies: &[(&[u32], u64, u32)] = &[
        (&[second, first], len, 2),
        (&[first - 1, second + 1], len, 2),
        (&[0, first + second], len, 2),
        (&[u32::MAX, u32::MAX], len, 2),
        (&[first + second], len, 1),
        (&[first, second, 0], len, 3),
        (&[first, second], len, 3),
        (&[first, second], len - 1, 2),
        (&[first, second], u64::MAX, 2),
    ];
    for lie in lies {
        let refused = decode_all(&lying(body, lie.0, lie.1, lie.2), len).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Damage, "{lie:?}");
    }
    // A frame that would give more than its share is not given room for it.
    let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 3).unwrap();
    let stored = lying(&bomb, &[bomb.len() as u32], 1000, 1);
    assert_eq!(decode_all(&stored, 1000).unwrap_err().kind(), ErrorKind::Damage);
}

/// Is the rule of what pays kept: an eighth of its length, over the whole of it?
#[test]
fn compressing_pays_from_an_eighth_on() {
    let mut state = 1u64;
    let mut noise = |len: usize| -> Vec<u8> {
        let mut next = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 56) as u8
        };
        (0..len).map(|_| next()).collect()
    };
    assert!(pays(&raw(2000)) && pays(&vec![7; 1 << 20]));
    assert!(!pays(&[]) && !pays(&[7; 1000]) && !pays(&noise(1 << 20)));
    // The beginning alone says nothing about the rest.
    assert!(!pays(&[vec![7; 8 << 10], noise(1 << 20)].concat()));
    assert!(pays(&[noise(20 << 10), vec![7; 1 << 20]].concat()));
}
