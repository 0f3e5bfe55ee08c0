//! Whether a text is one JSON value that every converter can read.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Objects of more keys are looked up by hash.
const FEW: usize = 16;

/// Looks at all of `text` as it will be read: texts with their escapes, numbers with their size, how deep it
/// goes (128 levels), and that no key of an object is there twice.
///
/// # Errors
/// Where it stops being one value that can be read.
pub(crate) fn check_json(text: &[u8]) -> Result<(), serde_json::Error> {
    serde_json::from_slice::<Looked>(text).map(drop)
}

/// A value that was read, and is not kept.
struct Looked;

impl<'de> Deserialize<'de> for Looked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Look)
    }
}

struct Look;

impl<'de> Visitor<'de> for Look {
    type Value = Looked;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Looked, E> {
        Ok(Looked)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Looked, E> {
        Ok(Looked)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Looked, E> {
        Ok(Looked)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Looked, E> {
        Ok(Looked)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Looked, E> {
        Ok(Looked)
    }

    fn visit_str<E>(self, _: &str) -> Result<Looked, E> {
        Ok(Looked)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Looked, A::Error> {
        while items.next_element::<Looked>()?.is_some() {}
        Ok(Looked)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Looked, A::Error> {
        let mut keys = Keys::default();
        while let Some(Key(key)) = map.next_key::<Key<'de>>()? {
            if !keys.insert(key) {
                return Err(A::Error::custom("a key is there twice in one object"));
            }
            map.next_value::<Looked>()?;
        }
        Ok(Looked)
    }
}

/// A key, as it is read.
#[derive(PartialEq, Eq)]
struct Key<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfKey;
        impl<'de> Visitor<'de> for OfKey {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_str<E>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        deserializer.deserialize_str(OfKey)
    }
}

/// Keys of one object.
#[derive(Default)]
struct Keys<'de> {
    few: Vec<Cow<'de, str>>,
    many: HashSet<Cow<'de, str>>,
}

impl<'de> Keys<'de> {
    /// Whether it is new.
    fn insert(&mut self, key: Cow<'de, str>) -> bool {
        if self.few.contains(&key) {
            return false;
        }
        match self.few.len() < FEW {
            true => self.few.push(key),
            false => return self.many.insert(key),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is a text refused that a converter could not read, and taken where one could?
    #[test]
    fn a_value_is_looked_at_as_it_will_be_read() {
        let many = |last: &str| {
            let keys: Vec<_> = (0..100).map(|n| format!("\"{n}\":[{{}}]")).collect();
            format!("{{{},\"{last}\":1}}", keys.join(","))
        };
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        let bad = [
            "{\"a\":1e999}",
            "[-1e400]",
            "{\"a\":\"\\ud800\"}",
            "{\"\\ud800x\":1}",
            "{\"a\":1,\"a\":2}",
            "{\"x\":[{\"a\":1,\"\\u0061\":2}]}",
            "\"\u{1}\"",
            "01",
            &many("99"),
            &many("7"),
            &deep(200),
        ];
        for text in bad {
            assert!(check_json(text.as_bytes()).is_err(), "{text}");
        }
        assert!(check_json(b"\"\xff\"").is_err());
        let good = [
            "7",
            "null",
            "-0.5e-400",
            "123456789012345678901234567890",
            "{\"a\":{\"a\":1},\"b\":\"\\ud83d\\ude00 \\n\"}",
            &many("100"),
            &deep(100),
        ];
        for text in good {
            assert!(check_json(text.as_bytes()).is_ok(), "{text}");
        }
    }
}
