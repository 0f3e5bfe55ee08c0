//! Patterns: where in a line of text the parts of its key stand.

use super::args::typed;
use super::keys::{KeySpec, Source};

/// Text and captures in turn. A capture is the shortest text before what follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// What the line begins with.
    before: String,
    /// Whether each capture is wanted, and what stands behind it; nothing, for the rest of the line.
    captures: Vec<(bool, String)>,
}

impl Pattern {
    /// `{host} {} [{time:minute}]`; a brace of the text itself is written twice. Returns the parts that
    /// it captures as well.
    pub fn parse(text: &str) -> Result<(Self, Vec<KeySpec>), String> {
        let mut pattern = Self { before: String::new(), captures: Vec::new() };
        let mut specs = Vec::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if c == '{' && chars.peek() != Some(&'{') {
                let rest: String = chars.clone().collect();
                let Some((inside, _)) = rest.split_once('}') else {
                    return Err(format!("{{{rest} has no closing brace"));
                };
                let inside = inside.to_owned();
                chars.by_ref().find(|c| *c == '}');
                if pattern.captures.last().is_some_and(|(_, behind)| behind.is_empty()) {
                    return Err(format!("{{{inside}}} follows another one without text between"));
                }
                pattern.captures.push((!inside.is_empty(), String::new()));
                if !inside.is_empty() {
                    let (name, ty) = typed(&inside)?;
                    specs.push(KeySpec { name, ty, source: Source::Capture(specs.len()) });
                }
                continue;
            }
            if matches!(c, '{' | '}') && chars.next_if_eq(&c).is_none() {
                return Err("a brace of the text itself is written twice".to_owned());
            }
            match pattern.captures.last_mut() {
                Some((_, behind)) => behind.push(c),
                None => pattern.before.push(c),
            }
        }
        if specs.is_empty() {
            return Err(
                "it captures nothing; write {NAME} where a part of the key stands".to_owned()
            );
        }
        Ok((pattern, specs))
    }

    /// What it captures of `line`; `None` for a line that is not like it.
    pub fn captured<'l>(&self, line: &'l str) -> Option<Vec<&'l str>> {
        let mut rest = line.strip_prefix(self.before.as_str())?;
        let mut found = Vec::with_capacity(self.captures.len());
        for (is_wanted, behind) in &self.captures {
            let (text, next) = match behind.as_str() {
                "" => (rest, ""),
                behind => rest.split_once(behind)?,
            };
            if *is_wanted {
                found.push(text);
            }
            rest = next;
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sealstone::staging::KeyType;

    /// Is what stands between the texts captured, and is a pattern that cannot be refused?
    #[test]
    fn captures_stand_between_texts() {
        let (pattern, specs) = Pattern::parse("{host} {} [{time:minute}] {{").unwrap();
        let names: Vec<_> = specs.iter().map(|one| (one.name.as_str(), one.ty)).collect();
        assert_eq!(names, [("host", None), ("time", Some(KeyType::Minute))]);
        let line = "10.0.0.1 - - [01/Dec/2026:09:40:12 +0000] {x} [y]";
        assert_eq!(pattern.captured(line), Some(vec!["10.0.0.1", "01/Dec/2026:09:40:12 +0000"]));
        assert_eq!(pattern.captured("10.0.0.1 - -"), None);
        let (rest, _) = Pattern::parse("level={level}").unwrap();
        assert_eq!(rest.captured("level=a b"), Some(vec!["a b"]));
        for wrong in ["", "x", "{}", "{a}{b}", "{a:x}", "{a", "{a} {", "}", "{a} }"] {
            assert!(Pattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
