//! The names inside a store directory, both ways. A name that does not parse is a stray: not ours.

use std::path::{Path, PathBuf};

use crate::digest::Digest;
use crate::ids::{OwnerId, UniqueId};

/// The redb database.
pub const MANIFEST: &str = "manifest.redb";
/// The witness of the highest commit number known durable.
pub const HEAD: &str = "HEAD";
/// What HEAD is called until it replaces the one before.
pub const HEAD_NEXT: &str = "HEAD.next";
/// Space kept for a full disk.
pub const BALLAST: &str = "ballast";
/// Acknowledged, unsealed records.
pub const JOURNAL: &str = "journal";
/// Immutable files.
pub const SEALED: &str = "sealed";
/// Files being built.
pub const TMP: &str = "tmp";
/// One lock file for each living owner.
pub const OWNERS: &str = "owners";

/// Stands in a backup: the store that it is one of, and the commit at which it was made. Without a
/// manifest beside it the first backup was never finished.
pub const BACKUP: &str = "BACKUP";

/// Everything that stands directly in a store directory.
pub const TOP: &[&str] =
    &[MANIFEST, HEAD, HEAD_NEXT, BALLAST, BACKUP, JOURNAL, SEALED, TMP, OWNERS];

/// What a single-file store is called until it is whole: its name and this, beside it.
pub const NEWBORN_SUFFIX: &str = ".sealstone-new";

const JOURNAL_SUFFIX: &str = ".journal";
const LOCK_SUFFIX: &str = ".lock";

/// The manifest of the store at `root`.
pub fn manifest(root: &Path) -> PathBuf {
    root.join(MANIFEST)
}

/// Its witness.
pub fn head(root: &Path) -> PathBuf {
    root.join(HEAD)
}

/// The witness that replaces it next.
pub fn head_next(root: &Path) -> PathBuf {
    root.join(HEAD_NEXT)
}

/// Its ballast.
pub fn ballast(root: &Path) -> PathBuf {
    root.join(BALLAST)
}

/// The directory that holds the name `path`.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// What the single-file store at `path` is called until it is whole.
pub fn newborn(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(NEWBORN_SUFFIX);
    path.with_file_name(name)
}

/// Where a backup says that it is one.
pub fn backup(root: &Path) -> PathBuf {
    root.join(BACKUP)
}

/// The folder of journals.
pub fn journal_dir(root: &Path) -> PathBuf {
    root.join(JOURNAL)
}

/// Journal number `n` of `owner`.
pub fn journal(root: &Path, owner: OwnerId, n: u64) -> PathBuf {
    journal_dir(root).join(format!("{owner}-{n}{JOURNAL_SUFFIX}"))
}

/// Reads a journal's name.
pub fn parse_journal(name: &str) -> Option<(OwnerId, u64)> {
    let (owner, n) = name.strip_suffix(JOURNAL_SUFFIX)?.split_once('-')?;
    let parsed = (owner.parse().ok()?, n.parse().ok()?);
    // Only the spelling that we write: `01` or a lower-case id would be a second name for it.
    (format!("{}-{}{JOURNAL_SUFFIX}", parsed.0, parsed.1) == name).then_some(parsed)
}

/// The folder of sealed folders.
pub fn sealed_dir(root: &Path) -> PathBuf {
    root.join(SEALED)
}

/// One sealed folder.
pub fn sealed_folder(root: &Path, folder: u16) -> PathBuf {
    sealed_dir(root).join(format!("{folder:02x}"))
}

/// The folder of `digest` among `folders`, a power of two up to 256.
pub fn folder_of(digest: &Digest, folders: u16) -> u16 {
    u16::from(digest.0[0]) % folders.max(1)
}

/// Where a sealed file stands.
pub fn sealed(root: &Path, digest: &Digest, unique: UniqueId, folders: u16) -> PathBuf {
    sealed_folder(root, folder_of(digest, folders)).join(format!("{digest}-{unique}"))
}

/// Reads a sealed file's name.
pub fn parse_sealed(name: &str) -> Option<(Digest, UniqueId)> {
    let (digest, unique) = name.split_once('-')?;
    let parsed: (Digest, UniqueId) = (digest.parse().ok()?, unique.parse().ok()?);
    (format!("{}-{}", parsed.0, parsed.1) == name).then_some(parsed)
}

/// The folder of files being built.
pub fn tmp_dir(root: &Path) -> PathBuf {
    root.join(TMP)
}

/// A file being built by `owner`.
pub fn tmp(root: &Path, owner: OwnerId, unique: UniqueId) -> PathBuf {
    tmp_dir(root).join(format!("{owner}-{unique}"))
}

/// Reads the name of a file being built.
pub fn parse_tmp(name: &str) -> Option<(OwnerId, UniqueId)> {
    let (owner, unique) = name.split_once('-')?;
    let parsed: (OwnerId, UniqueId) = (owner.parse().ok()?, unique.parse().ok()?);
    (format!("{}-{}", parsed.0, parsed.1) == name).then_some(parsed)
}

/// The folder of owner locks.
pub fn owners_dir(root: &Path) -> PathBuf {
    root.join(OWNERS)
}

/// The lock file of `owner`.
pub fn owner_lock(root: &Path, owner: OwnerId) -> PathBuf {
    owners_dir(root).join(format!("{owner}{LOCK_SUFFIX}"))
}

/// Reads an owner lock's name.
pub fn parse_owner_lock(name: &str) -> Option<OwnerId> {
    let owner: OwnerId = name.strip_suffix(LOCK_SUFFIX)?.parse().ok()?;
    (format!("{owner}{LOCK_SUFFIX}") == name).then_some(owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(path: &Path) -> &str {
        path.file_name().and_then(|n| n.to_str()).unwrap()
    }

    /// Does every name that we write read back, and no other spelling of it?
    #[test]
    fn names_read_back_and_nothing_else_does() {
        let root = Path::new("run.stone");
        let owner = OwnerId::from_parts(1, [2; 10]);
        let unique = UniqueId::from_parts(3, [4; 10]);
        let digest = Digest::of(b"x");
        assert_eq!(parse_journal(name(&journal(root, owner, 7))), Some((owner, 7)));
        assert_eq!(parse_sealed(name(&sealed(root, &digest, unique, 4))), Some((digest, unique)));
        assert_eq!(parse_tmp(name(&tmp(root, owner, unique))), Some((owner, unique)));
        assert_eq!(parse_owner_lock(name(&owner_lock(root, owner))), Some(owner));
        assert_eq!(parse_journal(&format!("{owner}-07.journal")), None);
        assert_eq!(parse_tmp(&format!("{owner}-{unique}").to_lowercase()), None);
        assert_eq!(parse_owner_lock("notes.lock"), None);
        assert_eq!(parse_sealed(&format!("{digest}")), None);
    }

    /// Does a digest always fall into a folder that exists?
    #[test]
    fn folders_hold_every_digest() {
        for byte in 0..=255u8 {
            let digest = Digest([byte; 32]);
            assert_eq!(folder_of(&digest, 1), 0);
            assert!(folder_of(&digest, 4) < 4);
            assert_eq!(folder_of(&digest, 256), u16::from(byte));
        }
    }
}
