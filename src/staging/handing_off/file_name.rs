//! The name that a file gets outside: from the key, so that people recognise it, and such that no key
//! leads out of the directory.
//!
//! `airport=JFK,month=3-12-1f0e6c2b9a7d4e58.parquet`: the key, the output's number, the first 16 digits
//! of its digest, its form. Two outputs of a store never get one name; those of two stores only for the
//! same bytes.

use super::target::Offer;

/// Bytes of the key that a name has at most, and of the ending.
const KEY_BYTES_MAX: usize = 150;
const ENDING_BYTES_MAX: usize = 40;

/// The longest name on the file systems of today.
pub(super) const NAME_BYTES_MAX: usize = 255;

/// What our temporary names begin with: no file of ours begins so.
pub(super) const TEMPORARY: &str = ".sealstone-";

/// The name for what is offered; `ending` instead of its form, if there is one.
pub(super) fn file_name(offer: &Offer, ending: Option<&str>) -> String {
    let output = &offer.output;
    // Where keys have no parts the stage's name is what people know.
    let key = match output.key.parts() {
        [] => escaped(&offer.stage, KEY_BYTES_MAX),
        _ => escaped(&output.key.to_string(), KEY_BYTES_MAX),
    };
    let digest: String = output.digest.to_string().chars().take(16).collect();
    let ending = escaped(ending.unwrap_or(&output.form), ENDING_BYTES_MAX);
    let dot = if ending.is_empty() { "" } else { "." };
    format!("{key}-{}-{digest}{dot}{ending}", output.id)
}

/// Whether a name, read back from a row, names a file in the directory itself.
pub(super) fn is_safe(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'/' && byte != b'\\';
    !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !name.starts_with('.')
        && name.bytes().all(is_plain)
}

/// `text` with `/` as a comma, and whatever could mean something to a file system or a shell as
/// `%` and two digits; cut, but never inside of those.
fn escaped(text: &str, bytes_max: usize) -> String {
    let mut name = String::with_capacity(text.len().min(bytes_max));
    for (at, byte) in text.bytes().enumerate() {
        let is_plain = match byte {
            b'.' | b'-' => at > 0,
            b'_' | b'=' | b'+' | b'@' => true,
            _ => byte.is_ascii_alphanumeric(),
        };
        let piece = match byte {
            b'/' if at > 0 => ",".to_owned(),
            _ if is_plain => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        };
        if name.len() + piece.len() > bytes_max {
            break;
        }
        name.push_str(&piece);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use crate::ids::OutputId;
    use crate::staging::{Key, KeyPart, KeyShape, OutputView};

    fn named(stage: &str, parts: Vec<KeyPart>, form: &str) -> String {
        let shape = parts.iter().fold(KeyShape::new(), |shape, part| match part {
            KeyPart::Integer(_) => shape.integer("month"),
            _ => shape.text("airport"),
        });
        let output = OutputView {
            id: OutputId(12),
            key: shape.named(Key::new(parts)),
            groups: Vec::new(),
            merged: Vec::new(),
            rows: 1,
            len: 1,
            form: form.to_owned(),
            schema: Vec::new(),
            at: None,
            digest: Digest::of(b"x"),
        };
        file_name(&Offer { stage: stage.to_owned(), output }, None)
    }

    /// Is a name recognised by people, and does no key and no form lead out of the directory, end the
    /// name, hide the file, or make the name too long?
    #[test]
    fn no_key_leads_out_of_the_directory() {
        let text = |text: &str| KeyPart::Text(text.to_owned());
        let name = named("s", vec![text("JFK"), KeyPart::Integer(3)], "parquet");
        assert!(name.starts_with("airport=JFK,month=3-12-"), "{name}");
        assert!(name.ends_with(".parquet") && !named("a", vec![], "").ends_with('.'), "{name}");
        assert!(named("logs", vec![], "x").starts_with("logs-12-"));
        let long = "\u{1f600}".repeat(500);
        for hostile in [
            "..",
            "../../etc/passwd",
            "/etc/passwd",
            "a/../../b",
            ".hidden",
            ".sealstone-x.tmp",
            "-rf",
            "a\0b",
            "a\nb",
            "C:\\x",
            "%2e%2e%2f",
            "~root",
            &long,
        ] {
            for name in [
                named(hostile, vec![], "x"),
                named("s", vec![text(hostile)], "x"),
                named("s", vec![], hostile),
            ] {
                assert!(is_safe(&name), "{hostile:?} became {name:?}");
                assert!(name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '%'));
            }
        }
        for wrong in ["", ".", "..", "a/b", "/a", "a\0", "a b", "\u{e9}", &"a".repeat(256)] {
            assert!(!is_safe(wrong), "{wrong:?}");
        }
    }
}
