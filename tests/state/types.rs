//! Types: what comes back is what was put, or an error.

use std::collections::{BTreeMap, HashMap};

use sealstone::ErrorKind;
use serde::{Deserialize, Serialize};

use crate::support::{on, root, sim};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Config {
    name: String,
    limits: BTreeMap<String, u64>,
    mode: Mode,
    next: Option<Box<Config>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Mode {
    Off,
    Slow { millis: u32 },
    Fast(f64, Vec<i16>),
}

fn config() -> Config {
    Config {
        name: "é".to_owned(),
        limits: BTreeMap::from([("queue".to_owned(), 7)]),
        mode: Mode::Fast(f64::MIN_POSITIVE, vec![-1, 2]),
        next: Some(Box::new(Config {
            name: String::new(),
            limits: BTreeMap::new(),
            mode: Mode::Slow { millis: 9 },
            next: None,
        })),
    }
}

mod renamed {
    use serde::{Deserialize, Serialize};
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    pub struct Point {
        pub x: f64,
        pub y: f64,
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "Point")]
    pub struct Swapped {
        pub y: f64,
        pub x: f64,
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "Point")]
    pub struct Moved {
        pub x: f64,
        pub y: f64,
    }
}

/// Does every kind of value come back, and as no other type, across openings too?
#[test]
fn p6_a_value_is_read_as_its_type_or_not_at_all() {
    let disk = sim(1);
    let store = on(&disk, 2).create(root()).unwrap();
    let state = store.state();
    state.put("config", &config()).unwrap();
    state.put("number", &7u64).unwrap();
    state.put("text", &"seven".to_owned()).unwrap();
    state.put("unit", &()).unwrap();
    state.put("map", &HashMap::from([(1u8, 'x')])).unwrap();
    state.put("point", &renamed::Point { x: 1.0, y: 2.0 }).unwrap();
    state.put_bytes("raw", b"7").unwrap();
    store.close().unwrap();
    let store = on(&disk, 2).open(root()).unwrap();
    let state = store.state();
    assert_eq!(state.get::<Config>("config").unwrap(), config());
    assert_eq!(state.get::<u64>("number").unwrap(), 7);
    assert_eq!(state.get::<String>("text").unwrap(), "seven");
    state.get::<()>("unit").unwrap();
    assert_eq!(state.get::<HashMap<u8, char>>("map").unwrap()[&1], 'x');
    let moved: renamed::Moved = state.get("point").unwrap();
    assert_eq!(moved, renamed::Moved { x: 1.0, y: 2.0 });
    let kinds = [
        state.get::<i64>("number").unwrap_err(),
        state.get::<f64>("number").unwrap_err(),
        state.get::<(u32, u32)>("number").unwrap_err(),
        state.get::<Vec<u8>>("text").unwrap_err(),
        state.get::<renamed::Swapped>("point").unwrap_err(),
        state.get::<(f64, f64)>("point").unwrap_err(),
        state.get::<u8>("raw").unwrap_err(),
        state.get::<Vec<u8>>("raw").unwrap_err(),
        state.history::<Mode>("config").unwrap_err(),
    ];
    for e in kinds {
        assert_eq!(e.kind(), ErrorKind::TypeMismatch, "{e}");
    }
    let told = state.get::<i64>("number").unwrap_err().to_string();
    assert!(told.contains("u64") && told.contains("i64"), "{told}");
    assert_eq!(state.get_bytes("number").unwrap(), 7u64.to_le_bytes());
    let entry = state.entry("number").unwrap().unwrap();
    assert_eq!(entry.type_name.as_deref(), Some("u64"));
    assert_eq!(state.entry("raw").unwrap().unwrap().type_name, None);
}

/// Is the type of each value its own, when a name changes its type, and equal bytes are shared?
#[test]
fn equal_bytes_of_two_types_stay_apart() {
    let disk = sim(2);
    let store = on(&disk, 2).create(root()).unwrap();
    let state = store.state();
    let number = state.put("x", &7u64).unwrap();
    let signed = state.put("x", &7i64).unwrap();
    assert!(state.history::<u64>("x").is_err());
    assert_eq!(state.get_at::<u64>("x", number).unwrap(), 7);
    assert_eq!(state.get_at::<i64>("x", signed).unwrap(), 7);
    assert_eq!(state.get_at::<u64>("x", signed).unwrap_err().kind(), ErrorKind::TypeMismatch);
    let values = state.put("y", &1u8).and_then(|_| state.put("y", &2u8)).unwrap();
    let history = state.history::<u8>("y").unwrap();
    assert_eq!(history.iter().map(|found| found.value).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(history[0].generation, values);
    assert!(history[0].commit > history[1].commit);
}

/// Is a value refused that would never be read back?
#[test]
fn what_does_not_read_back_is_not_put() {
    #[derive(Debug, Serialize, Deserialize)]
    #[serde(untagged)]
    enum Any {
        Number(u8),
        Text(String),
    }
    #[derive(Debug, Serialize, Deserialize)]
    struct Skips {
        #[serde(skip_serializing_if = "Option::is_none")]
        first: Option<u32>,
        second: u64,
    }
    let disk = sim(3);
    let store = on(&disk, 2).create(root()).unwrap();
    let state = store.state();
    for e in [
        state.put("any", &Any::Number(1)).unwrap_err(),
        state.put("any", &Any::Text(String::new())).unwrap_err(),
        state.put("skips", &Skips { first: None, second: 7 }).unwrap_err(),
    ] {
        assert_eq!(e.kind(), ErrorKind::Invalid, "{e:?}");
        assert!(e.to_string().contains("bytes"), "{e}");
    }
    state.put("skips", &Skips { first: Some(1), second: 7 }).unwrap();
}

/// Does a panic in a caller's own code leave the store working and the state as it was?
#[test]
fn a_panic_in_a_value_loses_nothing() {
    struct Bomb;
    impl Serialize for Bomb {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            panic!("in the caller's code")
        }
    }
    impl<'de> Deserialize<'de> for Bomb {
        fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            Ok(Bomb)
        }
    }
    let disk = sim(4);
    let store = on(&disk, 2).create(root()).unwrap();
    let state = store.state();
    state.put("x", &1u8).unwrap();
    let put = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        state.batch().put("x", &2u8).put("bomb", &Bomb).commit().map(|_| ())
    }));
    assert!(put.is_err());
    assert_eq!(state.get::<u8>("x").unwrap(), 1);
    state.put("x", &3u8).unwrap();
}
