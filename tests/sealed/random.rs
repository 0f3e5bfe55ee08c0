//! Any extents and any blocks; and 10,000 mutations of sealed bytes.

use std::path::Path;
use std::process::Command;

use crate::support::{Rng, World, extent, label};
use proptest::prelude::*;
use sealstone::digest::checksum;
use sealstone::sealed::{Built, Expect, Reader};
use sealstone::{ErrorKind, Result};

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any extents and block length: does every extent, every range and the digest come back?
    #[test]
    fn any_extents_come_back(
        extents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3000), 0..8),
        block in prop_oneof![1u64..40, 1000u64..5000],
        cut in any::<prop::sample::Index>(),
        end in any::<prop::sample::Index>(),
    ) {
        let world = World::new();
        let mut builder = world.builder(1, block);
        for stored in &extents {
            builder.add(&extent(stored), stored).unwrap();
        }
        let built = builder.finish(&label()).unwrap();
        let expect = Expect { len: Some(built.len), digest: Some(built.digest), store: None };
        let reader = Reader::open(&world.disk, &built.tmp, &expect).unwrap();
        reader.verify(&built.digest).unwrap();
        prop_assert_eq!(reader.footer().unwrap().extents.len(), extents.len());
        for (at, stored) in built.extents.iter().zip(&extents) {
            prop_assert_eq!(&reader.read(at.offset, at.stored_len).unwrap(), stored);
            let end = end.index(stored.len() + 1);
            let from = cut.index(end + 1);
            let range = from as u64..end as u64;
            let part = reader.read_range(at.offset, at.stored_len, range).unwrap();
            prop_assert_eq!(&part, &stored[from..end]);
        }
    }
}

/// What an enemy or a bad disk does to the bytes of a file.
fn mutate(rng: &mut Rng, bytes: &mut Vec<u8>, content_len: usize) {
    let any = |rng: &mut Rng, bytes: &[u8]| rng.below(bytes.len() as u64) as usize;
    match rng.below(9) {
        0 => {
            let at = any(rng, bytes);
            bytes[at] ^= 1 << rng.below(8);
        }
        1 => {
            let at = any(rng, bytes);
            let end = (at + rng.below(64) as usize).min(bytes.len());
            rng.fill(&mut bytes[at..end]);
        }
        2 => {
            let at = any(rng, bytes);
            let end = (at + rng.below(600) as usize).min(bytes.len());
            bytes[at..end].fill(0);
        }
        3 => bytes.truncate(rng.below(bytes.len() as u64) as usize),
        4 => {
            let more = rng.below(200) as usize;
            bytes.extend(rng.bytes(more));
        }
        5 => {
            let (from, to) = (any(rng, bytes), any(rng, bytes));
            let len = (rng.below(100) as usize).min(bytes.len() - from.max(to));
            bytes.copy_within(from..from + len, to);
        }
        6 => {
            let at = any(rng, bytes);
            let cut = at + (rng.below(50) as usize).min(bytes.len() - at);
            bytes.drain(at..cut);
        }
        7 => lie(rng, bytes, 0, 24),
        _ => {
            // The trailer's own word is trusted only as far as its checksum, which enemies can make.
            if content_len <= bytes.len() {
                lie(rng, bytes, content_len - 56, 44);
            }
        }
    }
}

/// Puts an extreme number into a field of a fixed part, and makes its checksum fit.
fn lie(rng: &mut Rng, bytes: &mut [u8], from: usize, crc_at: usize) {
    if bytes.len() < from + crc_at + 4 {
        return;
    }
    let extremes = [0, 1, u64::from(u32::MAX), 1 << 40, u64::MAX - 27, u64::MAX, rng.next()];
    let value = extremes[rng.below(7) as usize].to_le_bytes();
    let width = if rng.below(2) == 0 { 4 } else { 8 };
    let at = from + (rng.below((crc_at / 4) as u64) as usize * 4).min(crc_at - width);
    bytes[at..at + width].copy_from_slice(&value[..width]);
    let crc = checksum(&bytes[from..from + crc_at]);
    bytes[from + crc_at..from + crc_at + 4].copy_from_slice(&crc.to_le_bytes());
}

/// 10,000 mutations, up to four at once: does anything panic or allocate without measure, and is any
/// byte ever returned that was not sealed? (P6, P9, G12, G22)
#[test]
fn g22_mutated_bytes_are_refused_or_right() {
    within_memory("random::g22_mutated_bytes_are_refused_or_right", 512 << 10, || {
        let (mut told, mut whole) = (0, 0);
        for seed in 0..100 {
            let mut rng = Rng(seed);
            let world = World::new();
            let block = [1, 16, 100, 4096][rng.below(4) as usize];
            let lens: Vec<u64> = (0..1 + rng.below(5)).map(|_| rng.below(600)).collect();
            let stored: Vec<_> = lens.iter().map(|&len| rng.bytes(len as usize)).collect();
            let built = world.build(1, block, &stored);
            let good = world.bytes(&built.tmp);
            let content_len = good.len() - label().to_bytes(&built.digest, 0).unwrap().len();
            for n in 0..100 {
                let mut bytes = good.clone();
                for _ in 0..1 + rng.below(4) {
                    if !bytes.is_empty() {
                        mutate(&mut rng, &mut bytes, content_len);
                    }
                }
                let path = world.file(&bytes);
                let same = bytes.get(..content_len) == Some(&good[..content_len]);
                match look(&world, &path, &built, &stored) {
                    Ok(()) => whole += 1,
                    Err(e) => {
                        let kinds = [ErrorKind::Damage, ErrorKind::NewerFormat];
                        assert!(
                            kinds.contains(&e.kind()) && !same,
                            "seed {seed}, mutation {n}: {e}"
                        );
                        told += 1;
                    }
                }
            }
        }
        println!("seeds 0..100: {told} told, {whole} had their content whole");
        assert!(told > 7000 && whole > 100, "{told} told, {whole} whole");
    });
}

/// Asks everything; the first error, or nothing when all content is right.
fn look(world: &World, path: &Path, built: &Built, stored: &[Vec<u8>]) -> Result<()> {
    let reader = Reader::open(&world.disk, path, &Expect::default())?;
    let mut first = reader.verify(&built.digest);
    for (extent, stored) in built.extents.iter().zip(stored) {
        match reader.read(extent.offset, extent.stored_len) {
            Ok(bytes) => assert!(bytes == *stored, "wrong bytes of {extent:?}"),
            Err(e) => first = first.and(Err(e)),
        }
    }
    // The label and a footer that lies may fail or not; they must only do so in order.
    let _ = reader.label();
    for described in reader.footer().map(|footer| footer.extents).unwrap_or_default() {
        let _ = reader.read(described.extent.offset, described.extent.stored_len);
    }
    let expect = Expect { digest: Some(built.digest), ..Expect::default() };
    if Reader::open(&world.disk, path, &expect).is_err() {
        assert!(first.is_err(), "a whole file was refused");
    }
    first
}

/// Runs `test`, the test called `name`, in a child that may have so many KiB of address space.
fn within_memory(name: &str, kib: u64, test: impl FnOnce()) {
    const INSIDE: &str = "SEALED_TEST_WITHIN_MEMORY";
    if std::env::var_os(INSIDE).is_some() {
        return test();
    }
    let script = format!("ulimit -v {kib} && exec \"$0\" \"$@\"");
    let child = Command::new("sh")
        .args(["-c", &script])
        .arg(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&child.stdout);
    let ran = out.contains("1 passed");
    assert!(child.status.success() && ran, "{out}\n{}", String::from_utf8_lossy(&child.stderr));
    println!("{out}");
}
