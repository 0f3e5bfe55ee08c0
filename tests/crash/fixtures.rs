//! Lines of failures that were found and fixed. They stay.

use std::fs;
use std::path::Path;

use sealstone::campaign::{Case, replay};

/// Does any crash that once went wrong go wrong again?
#[test]
fn what_was_found_once_stays_fixed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crash/fixtures");
    let mut lines = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            lines += 1;
            let case: Case = line.parse().unwrap();
            if let Err(finding) = replay(&case) {
                panic!("{}: {finding}\n  campaign --replay \"{case}\"", path.display());
            }
        }
    }
    assert!(lines > 0);
}
