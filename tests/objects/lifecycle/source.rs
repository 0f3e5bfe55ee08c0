//! What the files hold: ten families of five large files, which hold the same blocks, each beginning with
//! another one, and small files, each like no other.

use sealstone::objects::{Pieces, PutOptions};

pub const FAMILIES: usize = 10;
pub const OF_FAMILY: usize = 5;
pub const LARGE: usize = FAMILIES * OF_FAMILY;
pub const SMALL: usize = 500;
pub const FILES: usize = LARGE + SMALL;

const SMALL_BYTES: usize = 4096;
const PIECE_BYTES: usize = 32 << 10;

/// The files by size.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    pub large_bytes: usize,
}

/// What a family holds in one version.
pub struct Family {
    bytes: Vec<u8>,
}

fn fill(kind: &str, number: usize, version: usize, into: &mut [u8]) {
    let mut hasher = blake3::Hasher::new();
    hasher.update(format!("{kind} {number} {version}").as_bytes());
    hasher.finalize_xof().fill(into);
}

impl Source {
    /// Large files are cut by their content. Of 2 MiB too much of each would be new where a block begins, since a
    /// piece costs some 300 bytes beside itself and cannot be short: those are cut into equal pieces.
    pub fn options(&self) -> PutOptions {
        let len = PIECE_BYTES as u32;
        let pieces = match self.large_bytes < 64 << 20 {
            true => Pieces::Of { min: len, avg: len, max: len },
            false => Pieces::Auto,
        };
        PutOptions { pieces, ..PutOptions::default() }
    }

    /// What is different in each version: a hundredth of it, in one place.
    pub fn family(&self, family: usize, version: usize) -> Family {
        let mut bytes = vec![0; self.large_bytes];
        fill("family", family, 0, &mut bytes);
        for version in 1..=version {
            let edit = self.large_bytes / 100;
            let from = self.large_bytes / 16 + (version - 1) * self.large_bytes / 2;
            fill("family", family, version, &mut bytes[from..from + edit]);
        }
        Family { bytes }
    }

    /// A hundredth of the small files has other bytes in each version.
    pub fn small(&self, number: usize, version: usize) -> Vec<u8> {
        let edited = (0..=version).rev().find(|edited| *edited == 0 || number % 100 == *edited);
        let mut bytes = vec![0; SMALL_BYTES + number];
        fill("small", number, edited.unwrap_or(0), &mut bytes);
        bytes
    }

    /// Bytes of all that is in some of `versions`, each counted once.
    pub fn unique_bytes(&self, versions: &[usize]) -> u64 {
        let small = |number: usize| {
            let last = versions.iter().max().copied().unwrap_or(0);
            let edits = (1..=last).filter(|version| number % 100 == *version);
            let oldest = versions.iter().min().copied().unwrap_or(0);
            let later = edits.filter(|version| *version > oldest).count();
            (SMALL_BYTES + number) * (1 + later)
        };
        let edits = versions.len().saturating_sub(1) * (self.large_bytes / 100);
        let large = FAMILIES * (self.large_bytes + edits);
        if versions.is_empty() { 0 } else { (large + (0..SMALL).map(small).sum::<usize>()) as u64 }
    }
}

impl Family {
    /// The parts of one of its files, in order.
    pub fn parts(&self, of: usize) -> [&[u8]; 2] {
        let pieces = self.bytes.len() / PIECE_BYTES;
        let (last, first) = self.bytes.split_at(pieces / OF_FAMILY * of * PIECE_BYTES);
        [first, last]
    }
}
