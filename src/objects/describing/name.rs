//! Name: what an object is called, in a namespace; how it is written, and its key.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{NameKey, Namespace};

/// The longest namespace, in bytes of UTF-8.
pub const NAMESPACE_BYTES_MAX: usize = 255;

/// The longest name in a namespace, in bytes of UTF-8.
pub const NAME_BYTES_MAX: usize = 1024;

/// What stands between namespace and name in a key. Neither may hold it.
const BETWEEN: char = '\0';

/// What an object is called: a namespace, and a name in it. Written `namespace/name`, where the first
/// slash ends the namespace; the name may have slashes of its own. Case, spaces and dots mean nothing, and
/// no name is ever a path.
///
/// ```
/// use sealstone::objects::Name;
///
/// let name: Name = "models/2026/best.bin".parse()?;
/// assert_eq!((name.namespace(), name.name()), ("models", "2026/best.bin"));
/// assert_eq!(name, Name::new("models", "2026/best.bin")?);
/// # Ok::<(), sealstone::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name {
    namespace: String,
    name: String,
}

impl Name {
    /// The name called `name` in `namespace`.
    ///
    /// # Errors
    /// `Invalid` for an empty part, a NUL in either, or a slash in the namespace; `LimitExceeded` above
    /// [`NAMESPACE_BYTES_MAX`] or [`NAME_BYTES_MAX`].
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Result<Self> {
        let (namespace, name) = (namespace.into(), name.into());
        check_namespace(&namespace)?;
        check_part("name", &name, NAME_BYTES_MAX)?;
        Ok(Self { namespace, name })
    }

    /// Where it is a name.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name in it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key of its row.
    pub(in crate::objects) fn key(&self) -> NameKey {
        key_of(&self.namespace, &self.name)
    }

    /// The name whose row has the key `key`.
    ///
    /// # Errors
    /// `Damage` for the key of no name.
    pub(in crate::objects) fn of_key(key: &NameKey) -> Result<Self> {
        let parts = key.name.split_once(BETWEEN).filter(|_| key.namespace == Namespace::OBJECTS);
        parts.and_then(|(namespace, name)| Self::new(namespace, name).ok()).ok_or_else(|| {
            Error::damage("read", format!("names {key:?}"), "its key is that of no name")
        })
    }
}

/// Refuses what is no namespace.
pub(in crate::objects) fn check_namespace(namespace: &str) -> Result<()> {
    check_part("namespace", namespace, NAMESPACE_BYTES_MAX)?;
    match namespace.contains('/') {
        true => Err(Error::invalid("name", "namespace", "it holds a slash")),
        false => Ok(()),
    }
}

/// The key of the first name in `namespace` that does not come before `name`.
pub(in crate::objects) fn key_of(namespace: &str, name: &str) -> NameKey {
    let name = format!("{namespace}{BETWEEN}{name}");
    NameKey { namespace: Namespace::OBJECTS, name }
}

/// The key behind all names in `namespace`.
pub(in crate::objects) fn key_behind(namespace: &str) -> NameKey {
    // The character after the one that stands between: no namespace holds that one.
    NameKey { namespace: Namespace::OBJECTS, name: format!("{namespace}\u{1}") }
}

fn check_part(what: &'static str, part: &str, bytes_max: usize) -> Result<()> {
    if part.is_empty() {
        return Err(Error::invalid("name", what, "it is empty"));
    }
    if part.contains(BETWEEN) {
        return Err(Error::invalid("name", what, "it holds a NUL"));
    }
    if part.len() > bytes_max {
        let cause = format!("{} bytes, {bytes_max} allowed", part.len());
        return Err(Error::new(ErrorKind::LimitExceeded, "name", what, cause));
    }
    Ok(())
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl FromStr for Name {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let Some((namespace, name)) = text.split_once('/') else {
            let cause = "it is no namespace/name: no slash is in it";
            return Err(Error::invalid("parse", "name", cause));
        };
        Self::new(namespace, name)
    }
}

impl TryFrom<String> for Name {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does a name survive its text and its key, and do names sort as their keys, so that a namespace is
    /// one range of keys?
    #[test]
    fn names_survive_their_text_and_their_keys() {
        let mut names = Vec::new();
        for namespace in ["a", "a!", "a b", "ab", "é", "\u{1}", "a\u{1}"] {
            for name in ["x", "/", "x/y", "..", "x\u{1}", "é", " "] {
                names.push(Name::new(namespace, name).unwrap());
            }
        }
        names.sort();
        let keys: Vec<NameKey> = names.iter().map(Name::key).collect();
        assert!(keys.is_sorted());
        for (name, key) in names.iter().zip(&keys) {
            assert_eq!(name.to_string().parse::<Name>().unwrap(), *name);
            assert_eq!(Name::of_key(key).unwrap(), *name);
            assert!(*key >= key_of(name.namespace(), "") && *key < key_behind(name.namespace()));
            let within = keys
                .iter()
                .filter(|one| {
                    **one >= key_of(name.namespace(), "") && **one < key_behind(name.namespace())
                })
                .count();
            assert_eq!(within, 7, "{name}");
        }
    }

    /// Is everything refused that is no name, and the longest that is one taken?
    #[test]
    fn what_is_no_name_is_refused() {
        for (namespace, name) in [("", "x"), ("a", ""), ("a/b", "x"), ("a\0", "x"), ("a", "x\0y")] {
            let e = Name::new(namespace, name).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Invalid, "{namespace:?} {name:?}");
        }
        let long =
            |namespace: usize, name: usize| Name::new("n".repeat(namespace), "x".repeat(name));
        assert!(long(255, 1024).is_ok());
        for (namespace, name) in [(256, 1), (1, 1025)] {
            let e = long(namespace, name).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::LimitExceeded);
        }
        assert!("no slash".parse::<Name>().is_err() && "/x".parse::<Name>().is_err());
        assert!("a/".parse::<Name>().is_err());
        let state = NameKey { namespace: Namespace::STATE, name: "a\0b".to_owned() };
        assert!(Name::of_key(&state).is_err());
        for text in ["a", "\0b", "a\0", "a/b\0c", ""] {
            let key = NameKey { namespace: Namespace::OBJECTS, name: text.to_owned() };
            let e = Name::of_key(&key).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Damage, "{text:?}");
        }
    }
}
