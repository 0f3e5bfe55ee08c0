//! Building and placing.

use crate::support::{FOLDERS, Rng, World, extent, id, label, owner};
use sealstone::ErrorKind;
use sealstone::digest::Digest;
use sealstone::format::sealed::HEADER_BYTES;
use sealstone::format::trailer::TRAILER_BYTES;
use sealstone::ids::{CommitSeq, StoreId};
use sealstone::sealed::{Builder, Expect, Label, Reader, SLICE_BYTES, place};

fn extents(seed: u64, lens: &[usize]) -> Vec<Vec<u8>> {
    let mut rng = Rng(seed);
    lens.iter().map(|&len| rng.bytes(len)).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Has the format of version 1 changed? Then files of a released version no longer open (G26).
#[test]
fn g26_golden_vector() {
    let world = World::new();
    let built = world.build(1, 4, &[b"seal me".to_vec(), b"x".to_vec()]);
    assert_eq!(hex(&world.bytes(&built.tmp)), GOLDEN.replace([' ', '\n'], ""));
}

// Header: magic, version, block bytes, seed, crc. Two extents of blocks with their crcs. Footer: two
// entries, padding. Trailer. Label: body, end. Every crc was computed a second time by hand.
const GOLDEN: &str = "
895345414c45440a 01000000 04000000 28d4b9b9ee896e1c 75da47a4
7365616c 02eb0824 206d65 3bd581b9 78 5fb03d8f
1c6e89eeb9b9d4286e3b16a871b8da2bdcc3c917f8d23910c1f4c9cc3d75286c
0700000000000000 1c00000000000000 0700000000000000 00000000 03000000 736561
3ae7d805f6789a6402acb70ad4096a85a56bf6804eaf25c0493ac697548d30b5
0100000000000000 2b00000000000000 0100000000000000 00000000 01000000 78 00000000
3000000000000000 f000000000000000 0200000000000000 28d4b9b9ee896e1c 04000000
894ccca7 01000000 70eb7538 89434c4f5345440a
0100000000000000 01 00000000 0f 0400000000000000 00000007
0300000000000000 010203 0100000000000000 e33fb19325cbc72b5905e783e0c47290468c610090e376de9215e8b5f8ba83d3
5bf8e9032329b2435e4a9714a5ceca0345722413faab97141bd9553d33b41bc1
00000000000303030303030303030303 f000000000000000 2900000000000000
4d000000 270eea77 01000000 98bf301a 894c4142454c2e0a";

/// Is the content a function of the extents alone? Another store, id, label or way of pushing must
/// give the same digest and the same bytes.
#[test]
fn content_depends_on_nothing_but_the_extents() {
    let world = World::new();
    let extents = extents(1, &[100_000, 0, 5, 4096, SLICE_BYTES * 2 + 17, 65_536]);
    let built = world.build(1, 4096, &extents);
    let bytes = world.bytes(&built.tmp);
    let other = Label {
        store: StoreId::from_parts(9, [9; 10]),
        commit: CommitSeq(0),
        referrers: Vec::new(),
        inputs: Vec::new(),
    };
    for (n, piece) in [1usize, 3, 4095, 65_536, 1 << 20].into_iter().enumerate() {
        let world = World::new();
        let mut builder = world.builder(2 + n as u8, 4096);
        for stored in &extents {
            builder.begin().unwrap();
            for piece in stored.chunks(piece) {
                builder.push(piece).unwrap();
            }
            builder.end(&extent(stored)).unwrap();
        }
        let again = builder.finish(&other).unwrap();
        assert_eq!((again.digest, &again.extents), (built.digest, &built.extents));
        let content = built.len as usize - label_len(&label());
        assert_eq!(world.bytes(&again.tmp)[..content], bytes[..content], "pieces of {piece}");
        // The extents are in it by their digests, which the footer holds.
        let trailer = content - TRAILER_BYTES;
        let footer = u64::from_le_bytes(bytes[trailer..trailer + 8].try_into().unwrap()) as usize;
        let named = [&bytes[..HEADER_BYTES], &bytes[footer..content]].concat();
        assert_eq!(Digest::of(&named), built.digest);
    }
}

fn label_len(label: &Label) -> usize {
    label.to_bytes(&Digest::of(b""), 0).unwrap().len()
}

/// Does a changed block length, order or single byte of the extents give another digest?
#[test]
fn other_content_has_another_digest() {
    let world = World::new();
    let first = extents(2, &[300, 200]);
    let digest = world.build(1, 64, &first).digest;
    let mut changed = first.clone();
    changed[1][199] ^= 1;
    let swapped = vec![first[1].clone(), first[0].clone()];
    for (n, (block, extents)) in [(65, &first), (64, &changed), (64, &swapped)].iter().enumerate() {
        assert_ne!(world.build(2 + n as u8, *block, extents).digest, digest);
    }
}

/// Do the books close? Stored bytes and framing make the file, and nothing lies between extents (P10).
#[test]
fn p10_stored_bytes_and_framing_make_the_file() {
    let world = World::new();
    let extents = extents(3, &[1, 64, 65, 0, 1000]);
    let built = world.build(1, 64, &extents);
    assert_eq!(world.bytes(&built.tmp).len() as u64, built.len);
    let stored: u64 = extents.iter().map(|e| e.len() as u64).sum();
    assert_eq!(built.len, stored + built.framing);
    let mut at = 28;
    for (extent, stored) in built.extents.iter().zip(&extents) {
        assert_eq!((extent.offset, extent.stored_len), (at, stored.len() as u64));
        at += extent.stored_len + 4 * extent.stored_len.div_ceil(64);
    }
}

/// Does a placed file read back under its own name, with everything said about it, and does the name
/// leave tmp/?
#[test]
fn a_placed_file_reads_back() {
    let world = World::new();
    let stored = extents(4, &[70_000, 10]);
    let built = world.build(1, 1 << 20, &stored);
    let second = world.build(2, 1 << 20, &stored);
    place(&world.disk, &world.root, &[built.clone(), second.clone()], FOLDERS).unwrap();
    assert!(world.disk.meta(&built.tmp).unwrap().is_none());
    for built in [built, second] {
        let expect =
            Expect { len: Some(built.len), digest: Some(built.digest), store: Some(label().store) };
        let reader = Reader::open(&world.disk, &world.path(&built), &expect).unwrap();
        for (described, stored) in reader.footer().unwrap().extents.iter().zip(&stored) {
            let at = described.extent;
            assert_eq!(&reader.read(at.offset, at.stored_len).unwrap(), stored);
            assert_eq!(described.about, stored[..3]);
        }
        assert_eq!(reader.label().unwrap(), label());
        reader.verify(&built.digest).unwrap();
        reader.sync().unwrap();
    }
}

/// Can a placed file be replaced? A path taken is refused, and neither file changes (G7).
#[test]
fn g7_a_placed_file_is_never_replaced() {
    let world = World::new();
    let stored = extents(5, &[500]);
    let built = world.build(1, 64, &stored);
    place(&world.disk, &world.root, std::slice::from_ref(&built), FOLDERS).unwrap();
    let before = world.bytes(&world.path(&built));
    let same = world.build(1, 64, &stored);
    let other = world.build(2, 64, &stored);
    let refused = place(&world.disk, &world.root, &[other.clone(), same.clone()], FOLDERS);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Exists);
    let twice = place(&world.disk, &world.root, &[other.clone(), other.clone()], FOLDERS);
    assert_eq!(twice.unwrap_err().kind(), ErrorKind::Exists);
    assert_eq!(world.bytes(&world.path(&built)), before);
    assert!(world.disk.meta(&world.path(&other)).unwrap().is_none());
    assert!(world.disk.meta(&other.tmp).unwrap().is_some());
}

/// Does a builder that is given up leave its file behind, or take another's away?
#[test]
fn a_builder_given_up_leaves_nothing() {
    let world = World::new();
    let mut builder = world.builder(1, 64);
    builder.add(&extent(b"abc"), b"abc").unwrap();
    let taken = Builder::create(&world.disk, &world.root, owner(), id(1), 64).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Exists);
    let tmp = sealstone::format::layout::tmp_dir(&world.root);
    assert_eq!(world.disk.list(&tmp).unwrap().len(), 1);
    drop(builder);
    assert!(world.disk.list(&tmp).unwrap().is_empty());
    let built = world.build(1, 64, &[b"abc".to_vec()]);
    assert!(world.disk.meta(&built.tmp).unwrap().is_some());
}

/// Are calls out of order refused, with the file still whole afterwards?
#[test]
fn calls_out_of_order_are_refused() {
    let world = World::new();
    let kind = |error: sealstone::Error| error.kind();
    let mut builder = world.builder(1, 64);
    assert_eq!(kind(builder.push(b"a").unwrap_err()), ErrorKind::Invalid);
    assert_eq!(kind(builder.end(&extent(b"")).unwrap_err()), ErrorKind::Invalid);
    builder.begin().unwrap();
    assert_eq!(kind(builder.begin().unwrap_err()), ErrorKind::Invalid);
    assert_eq!(kind(builder.add(&extent(b""), b"").unwrap_err()), ErrorKind::Invalid);
    builder.push(b"abc").unwrap();
    builder.end(&extent(b"abc")).unwrap();
    let digest = builder.finish(&label()).unwrap().digest;
    assert_eq!(digest, world.build(2, 64, &[b"abc".to_vec()]).digest);
    let mut open = world.builder(3, 64);
    open.begin().unwrap();
    assert_eq!(kind(open.finish(&label()).unwrap_err()), ErrorKind::Invalid);
    for block in [0, (64 << 20) + 1, u64::MAX] {
        let refused = Builder::create(&world.disk, &world.root, owner(), id(4), block);
        assert_eq!(kind(refused.unwrap_err()), ErrorKind::Invalid);
    }
}

/// Does direct I/O put other bytes into the file, where slices, tails or a whole file are not aligned?
#[test]
fn direct_and_buffered_files_are_identical() {
    let (real, memory) = (World::real(), World::new());
    println!("the real disk here: {:?}", real.disk.direct_io(&real.root));
    let lens = [SLICE_BYTES - 28 - 4, SLICE_BYTES, SLICE_BYTES + 1, 3 * SLICE_BYTES, 1];
    for (n, len) in lens.into_iter().enumerate() {
        let stored = extents(n as u64, &[len, 9]);
        let direct = real.build(n as u8, 1 << 20, &stored);
        let buffered = memory.build(n as u8, 1 << 20, &stored);
        assert_eq!(direct.digest, buffered.digest);
        assert!(real.bytes(&direct.tmp) == memory.bytes(&buffered.tmp), "extent of {len} bytes");
    }
}
