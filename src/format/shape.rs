//! The shape of a type: what its own `Deserialize` asks for, as a number.
//!
//! The fingerprint is taken by letting the type read made-up values and noting every question:
//! kinds, serde's names of structures, fields and variants, lengths of tuples. Each variant of an
//! enum is visited, and recursion is followed a few levels. So it does not depend on a value, on
//! the compiler or on the module that a type lives in, and `#[serde(rename = "..")]` changes it on
//! purpose. A type that does not take the value that is made up for it, because it has a grammar or
//! bounds, is offered others. The fingerprint is taken of the whole type or not at all: one that
//! takes none of them, or is too large, is refused, for what was not seen could change unnoticed.
//! Not seen is only what a type asks for in dependence on values that are not made up.

mod trace;

use serde::de::DeserializeOwned;

use crate::digest::Digest;
use crate::error::{Error, Result};
use trace::questions_of;

/// The longest type name that is kept, in bytes.
const TYPE_NAME_BYTES_MAX: usize = 256;

/// A type's name, for messages.
pub fn name_of<T>() -> String {
    let mut name = std::any::type_name::<T>().to_owned();
    let cut = (0..=TYPE_NAME_BYTES_MAX).rev().find(|at| name.is_char_boundary(*at));
    name.truncate(cut.unwrap_or(0));
    name
}

/// The fingerprint of a type's shape.
///
/// # Errors
/// `Invalid` for a type that cannot be seen as a whole; it says why.
pub fn fingerprint_of<T: DeserializeOwned>() -> Result<u64> {
    let questions = questions_of::<T>().map_err(|what| {
        let cause = format!("it {what}; put it as bytes of a format of its own");
        Error::invalid("put", name_of::<T>(), cause)
    })?;
    Ok(Digest::of(questions.as_bytes()).prefix())
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
        #[derive(Deserialize, Debug)]
        #[allow(dead_code)]
        struct Endless(Box<Endless>);
        assert_ne!(print::<Plan>(), print::<Other>());
        assert_ne!(print::<Vec<(u8, Plan)>>(), print::<Vec<(u8, Other)>>());
        assert_ne!(print::<Tree>(), print::<Heavy>());
        assert_eq!(print::<Tree>(), print::<Tree>());
        // Nothing has this type; it must end all the same.
        let endless = fingerprint_of::<Endless>().unwrap_err();
        assert_eq!(endless.kind(), crate::ErrorKind::Invalid);
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

    #[derive(Deserialize)]
    #[allow(dead_code)]
    enum Maybe<T> {
        No,
        Yes(T),
    }

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Holds<T>(T);

    /// Are two types that call themselves the same taken for one, so that one of them is not seen?
    #[test]
    fn instances_of_one_generic_type_are_each_seen() {
        type Four<T> = Holds<Holds<Holds<Holds<T>>>>;
        assert_ne!(print::<(Maybe<u8>, Maybe<u16>)>(), print::<(Maybe<u8>, Maybe<u32>)>());
        assert_ne!(print::<Vec<Maybe<Maybe<u16>>>>(), print::<Vec<Maybe<Maybe<u32>>>>());
        assert_ne!(print::<(Four<u8>, u8)>(), print::<(Four<u16>, u8)>());
        assert_ne!(print::<(Four<u8>, u8)>(), print::<(Four<u8>, u16)>());
    }

    /// Is what lies behind recursion seen, whichever variant comes first?
    #[test]
    fn what_lies_behind_recursion_is_seen() {
        #[derive(Deserialize)]
        #[allow(dead_code)]
        enum One<T> {
            Two(Box<Two<T>>),
            End,
        }
        #[derive(Deserialize)]
        #[allow(dead_code)]
        enum Two<T> {
            One(Box<One<T>>),
            Other(T),
        }
        #[derive(Deserialize)]
        #[allow(dead_code)]
        struct Node<T> {
            edge: Edge<T>,
            last: u8,
        }
        #[derive(Deserialize)]
        #[allow(dead_code)]
        enum Edge<T> {
            First(Box<Node<T>>),
            Second(Box<Node<T>>, Option<Box<Edge<T>>>),
            Third(Box<Node<T>>, T),
            End,
        }
        #[derive(Deserialize)]
        #[allow(dead_code)]
        enum Only<T> {
            More(Option<Box<Only<T>>>, T),
        }
        assert_ne!(print::<One<u16>>(), print::<One<u32>>());
        assert_ne!(print::<Node<u16>>(), print::<Node<u32>>());
        assert_ne!(print::<Only<u16>>(), print::<Only<u32>>());
        assert_eq!(print::<Node<u16>>(), print::<Node<u16>>());
    }

    /// Takes only values of one kind.
    struct Picky<const KIND: u8>;

    impl<'de, const KIND: u8> Deserialize<'de> for Picky<KIND> {
        fn deserialize<D: serde::Deserializer<'de>>(
            from: D,
        ) -> std::result::Result<Self, D::Error> {
            let fits = match KIND {
                0 => String::deserialize(from)?.contains('@'),
                1 => <[u8; 2]>::deserialize(from)? == [0, 7],
                2 => Vec::<u8>::deserialize(from)?.len() == 32,
                3 => String::deserialize(from)?.parse::<std::net::IpAddr>().is_ok(),
                _ => String::deserialize(from)? == "a grammar that nobody knows",
            };
            match fits {
                true => Ok(Self),
                false => Err(serde::de::Error::custom("it does not fit")),
            }
        }
    }

    #[derive(Deserialize)]
    #[allow(dead_code)]
    #[serde(rename = "Account")]
    struct Account<P, T> {
        id: u64,
        picky: P,
        later: T,
    }

    /// Does a field that takes only some values hide a change of those behind it?
    #[test]
    fn what_lies_behind_a_type_with_a_grammar_is_seen() {
        assert_ne!(print::<Account<Picky<0>, u16>>(), print::<Account<Picky<0>, u32>>());
        assert_ne!(print::<Account<Picky<1>, u16>>(), print::<Account<Picky<1>, u32>>());
        assert_ne!(print::<Account<Picky<2>, u16>>(), print::<Account<Picky<2>, u32>>());
        assert_ne!(print::<Account<Picky<3>, u16>>(), print::<Account<Picky<3>, u32>>());
        assert_ne!(print::<Vec<(Picky<0>, Maybe<u8>)>>(), print::<Vec<(Picky<0>, Maybe<i8>)>>());
        // A value that fits is no part of the shape.
        assert_eq!(print::<Account<Picky<0>, u16>>(), print::<Account<Picky<3>, u16>>());
    }

    /// Is a type taken for known of which a part was not seen?
    #[test]
    fn a_type_that_is_not_seen_as_a_whole_is_refused() {
        type Cube = Box<[[[u8; 32]; 32]; 32]>;
        let refused = [
            fingerprint_of::<Account<Picky<9>, u16>>().unwrap_err(),
            fingerprint_of::<Option<Vec<Picky<9>>>>().unwrap_err(),
            fingerprint_of::<Maybe<Picky<9>>>().unwrap_err(),
            fingerprint_of::<[Cube; 8]>().unwrap_err(),
        ];
        for e in refused {
            assert_eq!(e.kind(), crate::ErrorKind::Invalid, "{e}");
            assert!(e.to_string().contains("put it as bytes"), "{e}");
        }
        assert_ne!(print::<(Cube, u16)>(), print::<(Cube, u32)>());
    }
}
