//! The house rules, as tests: who may import whom, where each foreign thing lives, what no source
//! file holds, and that the documents say what the code says. Plain text checks: they read the
//! sources as words and the documents as lines. Each law has a twin that shows it failing.

#[path = "tidy/documents.rs"]
mod documents;
#[path = "tidy/formats.rs"]
mod formats;
#[path = "tidy/outside.rs"]
mod outside;
#[path = "tidy/rooms.rs"]
mod rooms;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/text.rs"]
mod text;

/// Fails with every breach on a line of its own.
fn assert_none(law: &str, breaches: Vec<String>) {
    assert!(breaches.is_empty(), "{law}:\n  {}", breaches.join("\n  "));
}

/// A checker that stays silent on a bad sample is no law.
fn assert_caught(breaches: Vec<String>, words: &[&str]) {
    assert_eq!(breaches.len(), words.len(), "{breaches:#?}");
    for (breach, word) in breaches.iter().zip(words) {
        assert!(breach.contains(word), "{breach:?} does not say {word:?}");
    }
}
