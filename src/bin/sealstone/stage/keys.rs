//! The key of each line: constants, JSON fields, or what a pattern captures.

use sealstone::staging::{Key, KeyPart, KeyShape, KeyType};
use sealstone::{Error, Result};
use serde_json::Value;

use super::part::part_of;
use super::pattern::Pattern;

/// One part of a key, as the command line asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySpec {
    /// Its name.
    pub name: String,
    /// Its type, if that was given.
    pub ty: Option<KeyType>,
    /// Where it comes from.
    pub source: Source,
}

/// Where a part of a key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The same for all lines.
    Constant(String),
    /// A field of a JSON object, inside of others.
    Field(Vec<String>),
    /// So manieth of what the pattern captures.
    Capture(usize),
}

/// Makes keys of lines.
#[derive(Debug)]
pub struct Keys {
    shape: KeyShape,
    parts: Vec<(KeyType, Source)>,
    pattern: Option<Pattern>,
    is_json: bool,
}

impl Keys {
    /// As the command line asks; a stage that stands says in which order, and which types were meant.
    pub fn new(
        mut specs: Vec<KeySpec>,
        pattern: Option<Pattern>,
        is_json: bool,
        stands: Option<&KeyShape>,
    ) -> Result<Self> {
        if let Some(shape) = stands {
            let place = |spec: &KeySpec| shape.fields().iter().position(|(n, _)| *n == spec.name);
            specs.sort_by_key(|spec| place(spec).unwrap_or(usize::MAX));
            for spec in &mut specs {
                let known = shape.fields().iter().find(|(name, _)| *name == spec.name);
                spec.ty = spec.ty.or(known.map(|(_, ty)| *ty));
            }
        }
        let (mut shape, mut parts) = (KeyShape::new(), Vec::new());
        for spec in specs {
            let ty = spec.ty.unwrap_or(KeyType::Text);
            if let Source::Constant(value) = &spec.source {
                part_of(ty, value).map_err(|why| Error::invalid("append", &spec.name, why))?;
            }
            shape = shape.with(spec.name, ty);
            parts.push((ty, spec.source));
        }
        if let Some(stands) = stands.filter(|stands| **stands != shape) {
            let fields = stands.fields().iter().map(|(name, ty)| match ty {
                KeyType::Text => name.clone(),
                ty => format!("{name}:{}", ty.name()),
            });
            let wants = fields.collect::<Vec<_>>().join(",");
            let cause = match wants.as_str() {
                "" => "the stage's keys have no parts: give none".to_owned(),
                _ => format!(
                    "the stage's keys are others; give --key {wants}, or the same by --constant or --pattern"
                ),
            };
            return Err(Error::invalid("append", "--key", cause));
        }
        Ok(Self { shape, parts, pattern, is_json })
    }

    /// What the keys are made of.
    pub fn shape(&self) -> &KeyShape {
        &self.shape
    }

    /// Whether lines are JSON.
    pub fn is_json(&self) -> bool {
        self.is_json
    }

    /// The key of a line, or why it has none.
    pub fn of(&self, line: &[u8]) -> Result<Key, String> {
        let json = match self.is_json {
            true => serde_json::from_slice(line).map_err(|e| format!("it is no JSON: {e}"))?,
            false => Value::Null,
        };
        let captured = match &self.pattern {
            Some(pattern) => {
                let text = std::str::from_utf8(line).map_err(|_| "it is no UTF-8".to_owned())?;
                let text = text.trim_end_matches(['\n', '\r']);
                pattern.captured(text).ok_or_else(|| "it is not like the pattern".to_owned())?
            }
            None => Vec::new(),
        };
        let parts = self.parts.iter().map(|(ty, source)| match source {
            Source::Constant(value) => part_of(*ty, value),
            Source::Capture(at) => part_of(*ty, captured.get(*at).copied().unwrap_or_default()),
            Source::Field(path) => field_of(&json, path, *ty),
        });
        let key = Key::new(parts.collect::<Result<Vec<_>, _>>()?);
        self.shape.check(&key).map_err(|e| format!("its key: {}", e.cause()))?;
        Ok(key)
    }
}

/// The part that a field of a JSON line says.
fn field_of(json: &Value, path: &[String], ty: KeyType) -> Result<KeyPart, String> {
    let name = path.join(".");
    // A field whose own name has dots comes first.
    let whole = json.get(&name);
    let found = whole.or_else(|| path.iter().try_fold(json, |value, step| value.get(step)));
    let named = |why: String| format!("field {name:?}: {why}");
    match found {
        None | Some(Value::Null) => Err(format!("it has no field {name:?}")),
        Some(Value::String(text)) => part_of(ty, text).map_err(named),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => {
            part_of(ty, &value.to_string()).map_err(named)
        }
        Some(_) => Err(named("it is neither text nor a number".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str, ty: Option<KeyType>) -> KeySpec {
        let path = name.split('.').map(str::to_owned).collect();
        KeySpec { name: name.to_owned(), ty, source: Source::Field(path) }
    }

    /// Do fields become parts of their types, in the order of a stage that stands, and is a line without
    /// a key told why?
    #[test]
    fn fields_become_parts() {
        let stands = KeyShape::new().minute("t.at").text("host").integer("n");
        let specs = vec![spec("n", None), spec("t.at", None), spec("host", None)];
        let keys = Keys::new(specs, None, true, Some(&stands)).unwrap();
        assert_eq!(keys.shape(), &stands);
        let key = keys.of(br#"{"n":-3,"host":"a","t":{"at":"1970-01-01T01:00:07Z"},"x":[1]}"#);
        let parts = [KeyPart::Minute(60), KeyPart::Text("a".to_owned()), KeyPart::Integer(-3)];
        assert_eq!(key.unwrap().parts(), parts);
        for (line, why) in [
            ("{", "no JSON"),
            (r#"{"host":"a"}"#, "no field \"t.at\""),
            (r#"{"t":{"at":"yesterday"},"host":"a","n":1}"#, "is no minute"),
            (r#"{"t":{"at":0},"host":["a"],"n":1}"#, "neither text"),
            (r#"{"t":{"at":0},"host":null,"n":1}"#, "no field \"host\""),
        ] {
            let told = keys.of(line.as_bytes()).unwrap_err();
            assert!(told.contains(why), "{told}");
        }
    }
}
