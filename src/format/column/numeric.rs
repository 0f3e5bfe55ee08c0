//! pco: numbers of two bytes and more, in bins that follow their distribution.
//!
//! Its decoder is given what may be hostile, so nothing that allocates by a number in the bytes is
//! let in: no other version than ours, no dictionaries, no differences over a window. What it does
//! with the rest is bounded by the count that the caller has checked. It may panic on overflow
//! where that is compiled in, so a panic is caught. What is encoded is decoded once and compared.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pco::data_types::Number as PcoNumber;
use pco::metadata::{DeltaEncoding, Mode};
use pco::wrapped::{FileCompressor, FileDecompressor};
use pco::{ChunkConfig, DeltaSpec, PagingSpec};

use super::plain::Kind;
use super::transform::Word;
use crate::error::{Error, Result};

/// The level: higher ones take twice the time for a hundredth.
const LEVEL: usize = 4;
/// The first byte of what we write: pco's major version.
const MAJOR: u8 = 4;
/// The fifth mode of pco, and those after it, are not ours.
const MODES: u8 = 4;

/// A word that pco takes, or not.
pub trait Binned: Word {
    /// The words as pco's bytes, differences of `order` taken; none where pco does not take them.
    fn compress(words: &[Self], kind: Kind, order: u8) -> Option<Vec<u8>>;

    /// The inverse: exactly `count` words, which are all of `stored`.
    ///
    /// # Errors
    /// `Damage` for anything else.
    fn expand(stored: &[u8], count: usize, kind: Kind) -> Result<Vec<Self>>;
}

impl Binned for u8 {
    fn compress(_: &[Self], _: Kind, _: u8) -> Option<Vec<u8>> {
        None
    }

    fn expand(_: &[u8], _: usize, _: Kind) -> Result<Vec<Self>> {
        wrong("numbers of one byte".into())
    }
}

macro_rules! integers {
    ($($word:ty)*) => {$(
        impl Binned for $word {
            fn compress(words: &[Self], kind: Kind, order: u8) -> Option<Vec<u8>> {
                let sign = sign_of::<$word>(kind);
                let numbers: Vec<$word> = words.iter().map(|w| w ^ sign).collect();
                compress(&numbers, order, |a, b| a == b)
            }

            fn expand(stored: &[u8], count: usize, kind: Kind) -> Result<Vec<Self>> {
                let sign = sign_of::<$word>(kind);
                Ok(expand::<$word>(stored, count)?.into_iter().map(|w| w ^ sign).collect())
            }
        }
    )*};
}
integers! { u16 }

macro_rules! floats {
    ($($word:ty, $float:ty;)*) => {$(
        impl Binned for $word {
            fn compress(words: &[Self], kind: Kind, order: u8) -> Option<Vec<u8>> {
                if kind == Kind::Float {
                    let numbers: Vec<$float> = words.iter().map(|w| <$float>::from_bits(*w)).collect();
                    return compress(&numbers, order, |a, b| a.to_bits() == b.to_bits());
                }
                let sign = sign_of::<$word>(kind);
                let numbers: Vec<$word> = words.iter().map(|w| w ^ sign).collect();
                compress(&numbers, order, |a, b| a == b)
            }

            fn expand(stored: &[u8], count: usize, kind: Kind) -> Result<Vec<Self>> {
                if kind == Kind::Float {
                    return Ok(expand::<$float>(stored, count)?.into_iter().map(<$float>::to_bits).collect());
                }
                let sign = sign_of::<$word>(kind);
                Ok(expand::<$word>(stored, count)?.into_iter().map(|w| w ^ sign).collect())
            }
        }
    )*};
}
floats! { u32, f32; u64, f64; }

/// What makes signed integers sort as unsigned ones.
fn sign_of<W: Word>(kind: Kind) -> W {
    if kind == Kind::Signed { W::default().ordered() } else { W::default() }
}

fn compress<T: PcoNumber>(numbers: &[T], order: u8, same: fn(&T, &T) -> bool) -> Option<Vec<u8>> {
    let stored = catch_unwind(AssertUnwindSafe(|| encode(numbers, order))).ok()??;
    let back = expand::<T>(&stored, numbers.len()).ok()?;
    let is_same = back.len() == numbers.len() && back.iter().zip(numbers).all(|(a, b)| same(a, b));
    is_same.then_some(stored)
}

fn encode<T: PcoNumber>(numbers: &[T], order: u8) -> Option<Vec<u8>> {
    let delta = match order {
        0 => DeltaSpec::NoOp,
        order => DeltaSpec::TryConsecutive(usize::from(order)),
    };
    let config = ChunkConfig::default()
        .with_compression_level(LEVEL)
        .with_delta_spec(delta)
        .with_paging_spec(PagingSpec::Exact(vec![numbers.len()]));
    let file = FileCompressor::default();
    let mut stored = Vec::new();
    file.write_header(&mut stored).ok()?;
    let mut chunk = file.chunk_compressor(numbers, &config).ok()?;
    chunk.write_meta(&mut stored).ok()?;
    chunk.write_page(0, &mut stored).ok()?;
    Some(stored)
}

fn expand<T: PcoNumber + Default>(stored: &[u8], count: usize) -> Result<Vec<T>> {
    match catch_unwind(AssertUnwindSafe(|| decode(stored, count))) {
        Ok(decoded) => decoded,
        Err(_) => wrong("pco gave up on it".into()),
    }
}

fn decode<T: PcoNumber + Default>(stored: &[u8], count: usize) -> Result<Vec<T>> {
    let refused = |e| Error::damage("decode", "block", "pco refused").with_source(e);
    if stored.first() != Some(&MAJOR) {
        return wrong("a version of pco that is not ours".into());
    }
    let (file, rest) = FileDecompressor::new(stored).map_err(refused)?;
    // P9: a dictionary is allocated before it is read, a window as long as it says.
    if rest.first().is_none_or(|byte| byte % 16 >= MODES) {
        return wrong("a mode of pco that is not ours".into());
    }
    let (mut chunk, rest) = file.chunk_decompressor::<T, _>(rest).map_err(refused)?;
    let meta = chunk.meta();
    let is_ours = !matches!(meta.mode, Mode::Dict(_))
        && matches!(meta.delta_encoding, DeltaEncoding::NoOp | DeltaEncoding::Consecutive { .. });
    if !is_ours {
        return wrong("a form of pco that is not ours".into());
    }
    let mut numbers = vec![T::default(); count];
    let mut page = chunk.page_decompressor(rest, count).map_err(refused)?;
    let progress = page.read(&mut numbers).map_err(refused)?;
    let left = page.into_src().len();
    if progress.n_processed != count || !progress.finished || left > 0 {
        return wrong(format!("{} of {count} numbers, {left} bytes left", progress.n_processed));
    }
    Ok(numbers)
}

fn wrong<T>(cause: String) -> Result<T> {
    Err(Error::damage("decode", "block", cause))
}
