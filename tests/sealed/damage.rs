//! Damage: every byte of a small file, every length, swapped files, enemies.

use crate::support::{Rng, World, label};
use sealstone::digest::Digest;
use sealstone::ids::StoreId;
use sealstone::sealed::{Built, Expect, Reader};
use sealstone::{Error, ErrorKind, Result};
use std::path::Path;

/// What a reader may say about a file: the stored bytes of each extent, the footer, the label.
struct Said {
    open: Result<()>,
    extents: Vec<Result<Vec<u8>>>,
    verify: Result<()>,
    footer: Result<usize>,
    label: Result<()>,
}

fn ask(world: &World, path: &Path, built: &Built, expect: &Expect) -> Said {
    let reader = match Reader::open(&world.disk, path, expect) {
        Ok(reader) => reader,
        Err(e) => {
            let refused = || Err(e.clone());
            let extents = built.extents.iter().map(|_| Err(e.clone())).collect();
            let footer = Err(e.clone());
            return Said { open: refused(), extents, verify: refused(), footer, label: refused() };
        }
    };
    let read = |e: &sealstone::sealed::ExtentAt| reader.read(e.offset, e.stored_len);
    Said {
        open: Ok(()),
        extents: built.extents.iter().map(read).collect(),
        verify: reader.verify(&built.digest),
        footer: reader.footer().map(|footer| footer.extents.len()),
        label: reader.label().map(|found| assert_eq!(found, label())),
    }
}

fn is_damage(error: &Error) -> bool {
    error.kind() == ErrorKind::Damage
}

fn three_extents() -> Vec<Vec<u8>> {
    let mut rng = Rng(7);
    vec![rng.bytes(40), rng.bytes(16), rng.bytes(33)]
}

/// Can one changed byte pass? Each byte of a small file in turn: content damage is told by `verify`,
/// no read gives other bytes, label damage stays with the label, and blocks that are not hit stay
/// readable (P6, G12).
#[test]
fn g12_a_changed_byte_is_told_and_hurts_nothing_else() {
    let world = World::new();
    let stored = three_extents();
    let built = world.build(1, 16, &stored);
    let good = world.bytes(&built.tmp);
    let content = good.len() - label().to_bytes(&built.digest, 0).unwrap().len();
    for at in 0..good.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[at] ^= flip;
            let said = ask(&world, &world.file(&bad), &built, &Expect::default());
            said.open.unwrap();
            let in_label = at >= content;
            assert_eq!(said.label.is_err(), in_label, "byte {at}");
            assert_eq!(said.verify.is_err(), !in_label, "byte {at}");
            assert!(said.verify.as_ref().err().is_none_or(is_damage));
            for (n, (read, stored)) in said.extents.iter().zip(&stored).enumerate() {
                let extent = built.extents[n];
                let span = extent.stored_len + 4 * extent.stored_len.div_ceil(16);
                let hit = (extent.offset..extent.offset + span).contains(&(at as u64));
                match read {
                    Ok(bytes) => assert!(bytes == stored && !hit, "byte {at}, extent {n}"),
                    Err(e) => assert!(is_damage(e) && hit, "byte {at}, extent {n}: {e}"),
                }
            }
        }
    }
}

/// With the label's word about the content gone, is the file still known to be the right one? And is
/// another one still refused? (P6)
#[test]
fn a_damaged_label_does_not_hide_which_file_it_is() {
    let world = World::new();
    let built = world.build(1, 16, &three_extents());
    let mut bad = world.bytes(&built.tmp);
    let last = bad.len() - 1;
    bad[last] ^= 1;
    let path = world.file(&bad);
    let expect = |digest| Expect { digest: Some(digest), ..Expect::default() };
    Reader::open(&world.disk, &path, &expect(built.digest)).unwrap();
    let refused = Reader::open(&world.disk, &path, &expect(Digest::of(b"other"))).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Damage);
}

/// Does a file cut at any length pass for whole? (G21)
#[test]
fn g21_a_file_cut_short_is_damage_and_says_so() {
    let world = World::new();
    let stored = three_extents();
    let built = world.build(1, 16, &stored);
    let good = world.bytes(&built.tmp);
    for len in 0..good.len() {
        let path = world.file(&good[..len]);
        let expect = Expect { len: Some(built.len), ..Expect::default() };
        let refused = Reader::open(&world.disk, &path, &expect).unwrap_err();
        assert!(is_damage(&refused) && refused.cause().contains("cut short"), "{refused}");
        let said = ask(&world, &path, &built, &Expect::default());
        assert!(is_damage(&said.label.unwrap_err()));
        if let Ok(extents) = said.footer {
            assert_eq!(extents, stored.len());
            said.verify.unwrap();
        }
        for (read, stored) in said.extents.iter().zip(&stored) {
            match read {
                Ok(bytes) => assert_eq!(bytes, stored),
                Err(e) => assert!(is_damage(e), "{e}"),
            }
        }
    }
    let longer = [&good[..], &[0]].concat();
    let expect = Expect { len: Some(built.len), ..Expect::default() };
    let refused = Reader::open(&world.disk, &world.file(&longer), &expect).unwrap_err();
    assert!(is_damage(&refused) && refused.cause().contains("too long"), "{refused}");
}

/// Do zeros, nothing and foreign bytes of the right length pass, and does the error say what is there?
#[test]
fn g21_zeros_and_garbage_are_damage_and_say_what_is_there() {
    let world = World::new();
    let built = world.build(1, 16, &three_extents());
    let expect = Expect { len: Some(built.len), ..Expect::default() };
    let garbage = Rng(8).bytes(built.len as usize);
    for (bytes, says) in [(vec![0; built.len as usize], "zeros"), (garbage, "begins with")] {
        let refused = Reader::open(&world.disk, &world.file(&bytes), &expect).unwrap_err();
        assert!(is_damage(&refused) && refused.cause().contains(says), "{refused}");
        assert!(refused.place().contains("some-file at 0"), "{refused}");
    }
    let absent = Reader::open(&world.disk, &world.root.join("absent"), &expect).unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::NotFound);
}

/// Two files of equal shape change places: does one pass for the other? The row knows the digest; and
/// without it, no read of the wrong one may succeed for a single block moved over.
#[test]
fn g21_files_that_changed_places_are_told_apart() {
    let world = World::new();
    let mine = world.build(1, 16, &[Rng(1).bytes(160)]);
    let other = world.build(2, 16, &[Rng(2).bytes(160)]);
    assert_eq!(mine.len, other.len);
    let open = |store| {
        let expect = Expect { len: Some(mine.len), digest: Some(mine.digest), store };
        Reader::open(&world.disk, &other.tmp, &expect).unwrap_err()
    };
    assert_eq!(open(None).kind(), ErrorKind::Damage);
    assert_eq!(open(Some(label().store)).kind(), ErrorKind::Damage);
    let foreign = open(Some(StoreId::from_parts(0, [0; 10])));
    assert_eq!(foreign.kind(), ErrorKind::Foreign);
    assert!(foreign.cause().contains(&other.digest.to_string()), "{foreign}");
}

/// A disk reads a whole block from a wrong place, of this file or of another: does it pass?
#[test]
fn g12_a_block_from_another_place_does_not_pass() {
    let world = World::new();
    let mine = world.build(1, 16, &[Rng(1).bytes(160)]);
    let other = world.build(2, 16, &[Rng(2).bytes(160)]);
    let good = world.bytes(&mine.tmp);
    let foreign = world.bytes(&other.tmp);
    let block = |n: usize| 28 + 20 * n..28 + 20 * (n + 1);
    for to in 0..10 {
        for from in 0..10 {
            for source in [&good, &foreign] {
                let mut bad = good.clone();
                bad[block(to)].copy_from_slice(&source[block(from)]);
                let said = ask(&world, &world.file(&bad), &mine, &Expect::default());
                let passes = std::ptr::eq(source, &good) && from == to;
                assert_eq!(said.extents[0].is_ok(), passes, "block {from} at {to}");
            }
        }
    }
}

/// Does the error of a damaged block name file, offset and what it held? (P6)
#[test]
fn p6_damage_names_file_offset_and_what_it_held() {
    let world = World::new();
    let built = world.build(1, 16, &[Rng(1).bytes(40)]);
    let mut bad = world.bytes(&built.tmp);
    bad[28 + 20 + 3] ^= 1;
    bad[28 + 40..28 + 48].fill(0);
    let reader = world.open(&world.file(&bad));
    let error = reader.read(28, 40).unwrap_err();
    assert!(error.place().ends_with("some-file at 48"), "{error}");
    assert!(error.cause().contains("bytes 16..32 of the extent at 28"), "{error}");
    let error = reader.read_range(28, 40, 32..40).unwrap_err();
    assert!(error.cause().ends_with("begins with zeros"), "{error}");
    assert!(reader.verify(&built.digest).unwrap_err().place().ends_with("at 48"));
}

/// A row lies about where an extent is and how long: is anything allocated, read or shown for it? (P9)
#[test]
fn p9_a_lying_place_is_damage_without_allocation() {
    let world = World::new();
    let built = world.build(1, 16, &three_extents());
    let reader = world.open(&built.tmp);
    for offset in [0, 27, 28, 29, built.len - 1, built.len, 1 << 40, u64::MAX] {
        for len in [1, 39, 41, built.len, 1 << 40, u64::MAX - 64, u64::MAX] {
            let error = reader.read(offset, len).unwrap_err();
            assert!(is_damage(&error), "{offset} {len}: {error}");
        }
    }
}
