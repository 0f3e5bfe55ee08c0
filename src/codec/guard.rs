//! Values of the caller's types, in bounded depth: what nests deeper than a stack holds is refused
//! when it is written, and is no crash when bytes claim it. So is a list that is long without bytes.
//!
//! ```text
//!   value ─▶ Guarded ─▶ serde's calls, each level counted ─▶ the codec
//! ```

mod read;
mod write;

use std::cell::Cell;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, Result};

/// The most levels of a value: structures, options, lists and variants within each other.
pub const DEPTH_MAX: usize = 128;
/// The most elements of all lists together, beyond one for each byte of the value. Elements of no
/// bytes are no reason for a reader to run for ever.
pub const BARE_ELEMENTS_MAX: u64 = 1 << 16;

const TOO_DEEP: &str = "it nests deeper than 128 levels";
const TOO_MANY: &str = "it has more than 65,536 elements without bytes";

/// What a value may still take.
#[derive(Debug, Clone, Copy)]
struct Guard<'g> {
    depth: usize,
    /// Whether what is in it was counted by bytes, or by its type.
    is_list: bool,
    elements: &'g Cell<u64>,
}

impl<'g> Guard<'g> {
    fn new(elements: &'g Cell<u64>) -> Self {
        Self { depth: DEPTH_MAX, is_list: false, elements }
    }

    fn deeper<E>(self, is_list: bool, refuse: fn(&'static str) -> E) -> Result<Self, E> {
        match self.depth.checked_sub(1) {
            Some(depth) => Ok(Self { depth, is_list, ..self }),
            None => Err(refuse(TOO_DEEP)),
        }
    }

    /// Counts an element of a list. Those of structures and tuples are as many as their type says.
    fn element<E>(self, refuse: fn(&'static str) -> E) -> Result<(), E> {
        if !self.is_list {
            return Ok(());
        }
        let left = self.elements.get().checked_sub(1).ok_or_else(|| refuse(TOO_MANY))?;
        self.elements.set(left);
        Ok(())
    }

    /// How many elements can come where `hint` are said to.
    fn at_most(self, hint: usize) -> usize {
        hint.min(usize::try_from(self.elements.get()).unwrap_or(usize::MAX))
    }
}

struct Writing<'v, T: ?Sized> {
    value: &'v T,
    guard: Guard<'v>,
}

impl<T: Serialize + ?Sized> Serialize for Writing<'_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(write::Guarded { to, guard: self.guard })
    }
}

thread_local! {
    /// How many elements the value that is read may have. serde gives a type nothing but its bytes.
    static ELEMENTS: Cell<u64> = const { Cell::new(0) };
}

struct Read<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Read<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let elements = Cell::new(ELEMENTS.get());
        T::deserialize(read::Guarded { from, guard: Guard::new(&elements) }).map(Self)
    }
}

/// Encodes a value of a caller's type, so that [`decode`] takes it.
///
/// # Errors
/// As [`encode`](super::encode); `Invalid` for a value that is too deep, or has too many elements
/// without bytes.
pub fn encode<T: Serialize + ?Sized>(what: &'static str, value: &T) -> Result<Vec<u8>> {
    let elements = Cell::new(u64::MAX);
    let guard = Guard::new(&elements);
    let bytes = super::encode(what, &Writing { value, guard })?;
    if u64::MAX - elements.get() > bytes.len() as u64 + BARE_ELEMENTS_MAX {
        return Err(Error::invalid("encode", what, TOO_MANY));
    }
    Ok(bytes)
}

/// Decodes the whole of `bytes` as a value of a caller's type.
///
/// # Errors
/// As [`decode`](super::decode).
pub fn decode<T: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T> {
    let before = ELEMENTS.replace(bytes.len() as u64 + BARE_ELEMENTS_MAX);
    let decoded = super::decode::<Read<T>>(what, bytes);
    ELEMENTS.set(before);
    decoded.map(|Read(value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    enum Chain {
        End,
        More(Box<Chain>),
    }

    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Tree {
        weight: [f64; 16],
        left: Option<Box<Tree>>,
        right: Vec<Tree>,
    }

    fn chain(levels: usize) -> Chain {
        (1..levels).fold(Chain::End, |chain, _| Chain::More(Box::new(chain)))
    }

    /// Runs on a stack as threads have it, so that a crash would be seen as one.
    fn on_a_small_stack(work: fn()) {
        let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap();
        thread.join().unwrap();
    }

    /// Do bytes that claim endless nesting end a process, and is a value read back that is as deep as one
    /// may be?
    #[test]
    fn g22_nesting_is_bounded_both_ways() {
        on_a_small_stack(|| {
            let deep = [1u8, 0, 0, 0].repeat(1 << 18);
            let e = decode::<Chain>("value", &deep).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Damage);
            assert!(e.chain().contains("128 levels"), "{}", e.chain());
            let node = [&[0; 128][..], &[1]].concat();
            assert!(
                decode::<Tree>("value", &node.repeat(4000)).unwrap_err().chain().contains("128")
            );
            let node = [&[0; 129][..], &1u64.to_le_bytes()].concat();
            assert!(
                decode::<Tree>("value", &node.repeat(4000)).unwrap_err().chain().contains("128")
            );
            assert_eq!(encode("value", &chain(129)).unwrap_err().kind(), ErrorKind::Invalid);
            let most = chain(128);
            assert_eq!(decode::<Chain>("value", &encode("value", &most).unwrap()).unwrap(), most);
        });
    }

    /// Do elements without bytes keep a reader busy for ever, and are a few of them read?
    #[test]
    fn g22_lists_of_nothing_are_bounded_both_ways() {
        let e = decode::<Vec<()>>("value", &u64::MAX.to_le_bytes()).unwrap_err();
        assert!(e.chain().contains("without bytes"), "{}", e.chain());
        let claims = [&1u64.to_le_bytes()[..], &u64::MAX.to_le_bytes()].concat();
        assert!(decode::<Vec<Vec<()>>>("value", &claims).is_err());
        assert!(decode::<std::collections::BTreeMap<(), ()>>("value", &[0xff; 8]).is_err());
        for (len, is_taken) in [(0, true), (65_536, true), (70_000, false)] {
            let encoded = encode("value", &vec![(); len]);
            assert_eq!(encoded.is_ok(), is_taken, "{len}");
            if let Ok(bytes) = encoded {
                assert_eq!(decode::<Vec<()>>("value", &bytes).unwrap().len(), len);
            }
        }
        // What has bytes is not counted against it, nor what a type says.
        let long = vec![(7u8, [(); 30]); 100_000];
        assert_eq!(
            decode::<Vec<(u8, [(); 30])>>("value", &encode("value", &long).unwrap()).unwrap(),
            long
        );
    }

    /// Are the bytes those of the codec without a guard, whatever a type is made of?
    #[test]
    fn the_bytes_are_the_same() {
        use std::collections::BTreeMap;
        #[derive(Serialize, Deserialize, PartialEq, Debug)]
        enum Kind {
            Unit,
            New(u8),
            Pair(i64, char),
            Named { text: String, maybe: Option<f32> },
        }
        #[derive(Serialize, Deserialize, PartialEq, Debug)]
        struct New(u128);
        #[derive(Serialize, Deserialize, PartialEq, Debug)]
        struct Nothing;
        let kinds = vec![
            Kind::Unit,
            Kind::New(1),
            Kind::Pair(-2, 'é'),
            Kind::Named { text: "t".into(), maybe: Some(0.5) },
            Kind::Named { text: String::new(), maybe: None },
        ];
        let map: BTreeMap<String, (bool, [u16; 3])> = [("k".to_owned(), (true, [1, 2, 3]))].into();
        let value = (kinds, map, New(5), Nothing, ());
        let bytes = encode("value", &value).unwrap();
        assert_eq!(bytes, super::super::encode("value", &value).unwrap());
        type Map = BTreeMap<String, (bool, [u16; 3])>;
        let read: (Vec<Kind>, Map, New, Nothing, ()) = decode("value", &bytes).unwrap();
        assert_eq!(read, value);
    }
}
