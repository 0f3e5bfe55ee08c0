//! The axes of a field: none for one value in each record, else an array with so many.

use std::fmt;

use super::block::VALUE_BYTES_MAX;

/// The most axes an array may have.
pub const RANK_MAX: usize = 8;

/// One axis of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Axis {
    /// As long in each record.
    Fixed(u32),
    /// As long as each record says.
    Free,
}

/// The axes of a field, the slowest first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape(Vec<Axis>);

impl Shape {
    /// An array of these axes; one value where there is none. Too many are taken as one too many, and
    /// refused where a schema takes the field.
    pub fn new(axes: impl IntoIterator<Item = Axis>) -> Self {
        // One more than there may be shows that there are too many.
        Self(axes.into_iter().take(RANK_MAX + 1).collect())
    }

    /// The axes, the slowest first.
    pub fn axes(&self) -> &[Axis] {
        &self.0
    }

    /// How many axes there are; 0 for a single value.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// Whether each record has one value and no array.
    pub fn is_scalar(&self) -> bool {
        self.0.is_empty()
    }

    /// How many axes each record says the length of.
    pub fn free_count(&self) -> usize {
        self.0.iter().filter(|axis| **axis == Axis::Free).count()
    }

    /// How many elements each record has, where that is fixed. It saturates.
    pub fn fixed_len(&self) -> Option<u64> {
        self.0.iter().try_fold(1u64, |product, axis| match axis {
            Axis::Fixed(len) => Some(product.saturating_mul(u64::from(*len))),
            Axis::Free => None,
        })
    }

    /// Whether an array of these lengths fits.
    pub(crate) fn fits(&self, lens: &[u32]) -> bool {
        let fits = |(axis, len): (&Axis, &u32)| match axis {
            Axis::Fixed(fixed) => fixed == len,
            Axis::Free => true,
        };
        lens.len() == self.0.len() && self.0.iter().zip(lens).all(fits)
    }

    /// The lengths of all axes, given those of the free ones.
    pub(super) fn lens(&self, mut free: impl FnMut() -> u32) -> ([u32; RANK_MAX], u8) {
        let mut lens = [0; RANK_MAX];
        for (len, axis) in lens.iter_mut().zip(&self.0) {
            *len = match axis {
                Axis::Fixed(fixed) => *fixed,
                Axis::Free => free(),
            };
        }
        (lens, self.0.len().min(RANK_MAX) as u8)
    }

    /// Its form in a schema's bytes: the lengths, 0 for a free one.
    pub(super) fn to_lens(&self) -> Vec<u32> {
        let len = |axis: &Axis| match axis {
            Axis::Fixed(len) => *len,
            Axis::Free => 0,
        };
        self.0.iter().map(len).collect()
    }

    pub(super) fn of_lens(lens: &[u32]) -> Self {
        let axis = |len: &u32| if *len == 0 { Axis::Free } else { Axis::Fixed(*len) };
        Self(lens.iter().map(axis).collect())
    }
}

/// The most places before the first empty axis of an array: each of them costs text, and no bytes.
pub(super) const EMPTY_PLACES_MAX: usize = 1 << 16;

/// How many elements an array of these lengths has; none where any array of such axes, or one of
/// which an axis is empty, would be longer than a value may be, and for more than
/// [`EMPTY_PLACES_MAX`] places without elements.
pub(super) fn count_of(lens: &[u32]) -> Option<usize> {
    let most = lens.iter().try_fold(1usize, |n, len| {
        let n = n.checked_mul((*len as usize).max(1))?;
        (n <= VALUE_BYTES_MAX).then_some(n)
    })?;
    if !lens.contains(&0) {
        return Some(most);
    }
    let places: usize = lens.iter().take_while(|len| **len > 0).map(|len| *len as usize).product();
    (places <= EMPTY_PLACES_MAX).then_some(0)
}

/// As in a type: `[3, _]`, and nothing for a single value.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, axis) in self.0.iter().enumerate() {
            f.write_str(if at == 0 { "[" } else { ", " })?;
            match axis {
                Axis::Fixed(len) => write!(f, "{len}")?,
                Axis::Free => f.write_str("_")?,
            }
        }
        if self.0.is_empty() { Ok(()) } else { f.write_str("]") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Can an array without elements stand for endless text, and an endless list of axes for memory?
    #[test]
    fn g22_what_has_no_elements_is_bounded_too() {
        assert_eq!(count_of(&[1 << 16, 0]), Some(0));
        assert_eq!(count_of(&[256, 256, 0, 1 << 10]), Some(0));
        assert_eq!(count_of(&[0, 1 << 28]), Some(0));
        assert_eq!(count_of(&[(1 << 16) + 1, 0]), None);
        assert_eq!(count_of(&[1 << 28, 0]), None);
        assert_eq!(count_of(&[1 << 20, 1]), Some(1 << 20));
        assert_eq!(Shape::new(std::iter::repeat(Axis::Free)).rank(), RANK_MAX + 1);
    }
}
