//! How a block is stored: the codecs, their tags, and which types they suit.

use super::axes::Shape;
use super::value::FieldType;

/// How a block is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockCodec {
    /// The raw form.
    Raw = 0,
    /// One value for all records, or nothing where all are missing.
    Constant = 1,
    /// zstd of the raw form.
    Zstd = 2,
    /// zstd of the raw form with numbers and lengths in byte planes.
    ShuffleZstd = 3,
    /// As before, of zigzag differences in the order-preserving integer domain.
    Delta1 = 4,
    /// The same, of second differences.
    Delta2 = 5,
    /// The same, of third differences.
    Delta3 = 6,
    /// pco of numbers of two bytes and more, behind flags and lengths in raw form.
    Pco = 7,
}

impl BlockCodec {
    /// Every codec, in the order of their tags.
    pub const ALL: [BlockCodec; 8] = [
        Self::Raw,
        Self::Constant,
        Self::Zstd,
        Self::ShuffleZstd,
        Self::Delta1,
        Self::Delta2,
        Self::Delta3,
        Self::Pco,
    ];

    /// Its tag on disk.
    pub fn tag(self) -> u8 {
        self as u8
    }

    /// The codec with this tag.
    pub fn from_tag(tag: u8) -> Option<Self> {
        Self::ALL.get(usize::from(tag)).copied()
    }

    /// Whether numbers and lengths are in byte planes.
    pub(super) fn has_planes(self) -> bool {
        self == Self::ShuffleZstd || self.delta_order() > 0
    }

    /// How often differences are taken.
    pub(super) fn delta_order(self) -> u8 {
        match self {
            Self::Delta1 => 1,
            Self::Delta2 => 2,
            Self::Delta3 => 3,
            _ => 0,
        }
    }
}

/// How a block is stored, as its tag on disk says: the codec in the lower four bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Coding {
    pub codec: BlockCodec,
    /// Elements of arrays: all first ones, record by record, then all second ones.
    pub is_transposed: bool,
}

impl Coding {
    const TRANSPOSED: u8 = 0x10;

    pub fn of(codec: BlockCodec) -> Self {
        Self { codec, is_transposed: false }
    }

    pub fn tag(self) -> u8 {
        self.codec.tag() | if self.is_transposed { Self::TRANSPOSED } else { 0 }
    }

    pub fn from_tag(tag: u8) -> Option<Self> {
        let is_transposed = tag & Self::TRANSPOSED != 0;
        Some(Self { codec: BlockCodec::from_tag(tag & !Self::TRANSPOSED)?, is_transposed })
    }
}

/// Whether a column of this type can be stored so.
pub(super) fn suits(coding: Coding, ty: FieldType, shape: &Shape) -> bool {
    let is_scalar = shape.is_scalar();
    let in_rows = shape.fixed_len().is_some() && !is_scalar && ty.width() > 0;
    if coding.is_transposed && (!in_rows || ty == FieldType::Bool) {
        return false;
    }
    match coding.codec {
        BlockCodec::Raw | BlockCodec::Constant if coding.is_transposed => false,
        BlockCodec::Pco => ty.width() > 1,
        BlockCodec::Raw | BlockCodec::Constant | BlockCodec::Zstd => true,
        BlockCodec::ShuffleZstd => ty != FieldType::Bool || !is_scalar,
        _ => ty.is_number() && ty != FieldType::Bool,
    }
}
