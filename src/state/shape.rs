//! The shape of a type: what its own `Deserialize` asks for, as a number.
//!
//! The fingerprint is taken by letting the type read made-up values and noting every question:
//! kinds, serde's names of structures, fields and variants, lengths of tuples. Each variant of an
//! enum is visited, and recursion is followed a few levels. So it does not depend on a value, on
//! the compiler or on the module that a type lives in, and `#[serde(rename = "..")]` changes it on
//! purpose. A type that refuses a made-up value (a text with a grammar, say) is seen up to there:
//! what lies behind such a field is told by its name alone.

mod trace;

use serde::de::DeserializeOwned;

use crate::digest::Digest;
use crate::error::{Error, Result};
use trace::Trace;

/// The longest type name that is kept, in bytes.
const TYPE_NAME_BYTES_MAX: usize = 256;

/// A type's name, for messages.
pub(super) fn name_of<T>() -> String {
    let mut name = std::any::type_name::<T>().to_owned();
    let cut = (0..=TYPE_NAME_BYTES_MAX).rev().find(|at| name.is_char_boundary(*at));
    name.truncate(cut.unwrap_or(0));
    name
}

/// The fingerprint of a type's shape.
pub(super) fn fingerprint_of<T: DeserializeOwned>() -> Result<u64> {
    let mut trace = Trace::default();
    while trace.pass::<T>() {}
    match trace.refused() {
        Some(what) => {
            let cause = format!("it {what}, which stored bytes cannot; put it as bytes");
            Err(Error::invalid("put", name_of::<T>(), cause))
        }
        None => Ok(Digest::of(trace.text().as_bytes()).prefix()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::{BTreeMap, HashSet};

    fn print<T: DeserializeOwned>() -> u64 {
        fingerprint_of::<T>().unwrap()
    }

    mod elsewhere {
        #[derive(serde::Deserialize)]
        #[allow(dead_code)]
        pub struct Point {
            x: f64,
            y: f64,
        }
    }

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Point {
        x: f64,
        y: f64,
    }

    /// Are types told apart that have the same bytes, and is a type that only moved the same?
    #[test]
    fn shapes_tell_types_apart_that_bytes_do_not() {
        #[derive(Deserialize)]
        #[allow(dead_code)]
        struct Metres(f64);
        #[derive(Deserialize)]
        #[allow(dead_code)]
        struct Feet(f64);
        #[derive(Deserialize)]
        #[allow(dead_code)]
        #[serde(rename = "Point")]
        struct Swapped {
            y: f64,
            x: f64,
        }
        #[derive(Deserialize)]
        #[allow(dead_code)]
        #[serde(rename = "Point")]
        struct Longer {
            x: f64,
            y: f32,
        }
        assert_eq!(print::<Point>(), print::<elsewhere::Point>());
        assert_eq!(print::<Box<Point>>(), print::<Point>());
        let all = [
            print::<Point>(),
            print::<Metres>(),
            print::<Feet>(),
            print::<Swapped>(),
            print::<Longer>(),
            print::<f64>(),
            print::<u64>(),
            print::<i64>(),
            print::<String>(),
            print::<(f64, f64)>(),
            print::<[f64; 3]>(),
            print::<Vec<f64>>(),
            print::<Vec<u64>>(),
            print::<Option<f64>>(),
            print::<BTreeMap<String, u8>>(),
            print::<BTreeMap<String, u16>>(),
            print::<()>(),
        ];
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    }

    #[derive(Deserialize)]
    #[allow(dead_code)]
    enum Plan {
        Wait,
        Go { far: u32 },
        Both(Box<Plan>, Box<Plan>),
    }

    /// Is a change found in any variant, behind recursion, and behind an empty list?
    #[test]
    fn every_variant_is_seen() {
        #[derive(Deserialize)]
        #[allow(dead_code)]
        #[serde(rename = "Plan")]
        enum Other {
            Wait,
            Go { far: u64 },
            Both(Box<Other>, Box<Other>),
        }
        #[derive(Deserialize)]
        #[allow(dead_code)]
        struct Tree {
            left: Option<Box<Tree>>,
            right: Vec<Tree>,
            weight: u8,
        }
        #[derive(Deserialize)]
        #[allow(dead_code)]
        #[serde(rename = "Tree")]
        struct Heavy {
            left: Option<Box<Heavy>>,
            right: Vec<Heavy>,
            weight: u16,
        }
        #[derive(Deserialize)]
        #[allow(dead_code)]
        struct Endless(Box<Endless>);
        assert_ne!(print::<Plan>(), print::<Other>());
        assert_ne!(print::<Vec<(u8, Plan)>>(), print::<Vec<(u8, Other)>>());
        assert_ne!(print::<Tree>(), print::<Heavy>());
        assert_eq!(print::<Tree>(), print::<Tree>());
        // Nothing has this type; it must end all the same.
        print::<Endless>();
        print::<[[[u8; 32]; 32]; 32]>();
    }

    /// Is a type refused that cannot be read without a description of the bytes?
    #[test]
    fn types_that_ask_the_bytes_are_refused() {
        #[derive(Deserialize, Debug)]
        #[allow(dead_code)]
        #[serde(untagged)]
        enum Any {
            Number(u8),
            Text(String),
        }
        #[derive(Deserialize, Debug)]
        #[allow(dead_code)]
        struct Flat {
            a: u8,
            #[serde(flatten)]
            rest: BTreeMap<String, u8>,
        }
        assert_eq!(fingerprint_of::<Any>().unwrap_err().kind(), crate::ErrorKind::Invalid);
        assert_eq!(fingerprint_of::<Flat>().unwrap_err().kind(), crate::ErrorKind::Invalid);
    }
}
