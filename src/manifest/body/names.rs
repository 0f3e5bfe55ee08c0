//! Which file of a store a path names: a pure function of the path, so that a rename moves a name
//! and no byte.

use std::path::{Component, Path};

use crate::format::layout;
use crate::ids::{OwnerId, UniqueId};

/// Whose bytes a page holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Body {
    /// A journal: pages as small as a commit writes anyway, since each barrier renews the last one.
    Frames(OwnerId, u64),
    /// Any other file.
    Pages(UniqueId),
}

// With key, envelope and redb's own framing a page of either kind fills a power of two of redb's
// pages but for a few bytes: redb gives out nothing between (docs/decisions/0007-one-file.md).
const FRAME_BYTES: usize = (4 << 10) - 64;
const PAGE_BYTES: usize = (64 << 10) - 64;

/// The ballast has no id of its own: none that is drawn is zero.
const BALLAST: UniqueId = UniqueId([0; 16]);

impl Body {
    /// Bytes in each page but the last.
    pub(super) fn page_bytes(self) -> u64 {
        match self {
            Self::Frames(..) => FRAME_BYTES as u64,
            Self::Pages(_) => PAGE_BYTES as u64,
        }
    }

    /// How many pages hold `len` bytes.
    pub(super) fn pages(self, len: u64) -> u64 {
        len.div_ceil(self.page_bytes())
    }
}

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// The store itself.
    Store,
    /// A folder of it, which is always there.
    Folder(String),
    /// A file of it, by its name in table `bodies`.
    File(String, Body),
    /// The lock of an owner, which is no file here.
    Lock(OwnerId),
    /// Nothing that this layout has.
    Nothing,
    /// Something outside the store.
    Outside,
}

/// What `path` names in the store at `root`.
pub(super) fn target(root: &Path, path: &Path) -> Target {
    let Ok(below) = path.strip_prefix(root) else { return Target::Outside };
    let mut parts = Vec::new();
    for part in below.components() {
        match part {
            Component::Normal(name) => match name.to_str() {
                Some(name) => parts.push(name),
                None => return Target::Nothing,
            },
            Component::CurDir => {}
            _ => return Target::Outside,
        }
    }
    let name = parts.join("/");
    match *parts.as_slice() {
        [] => Target::Store,
        [layout::BALLAST] => Target::File(name, Body::Pages(BALLAST)),
        [layout::JOURNAL | layout::SEALED | layout::TMP | layout::OWNERS] => Target::Folder(name),
        [layout::SEALED, folder] if is_folder(folder) => Target::Folder(name),
        [layout::JOURNAL, file] => match layout::parse_journal(file) {
            Some((owner, n)) => Target::File(name, Body::Frames(owner, n)),
            None => Target::Nothing,
        },
        [layout::TMP, file] => match layout::parse_tmp(file) {
            Some((_, unique)) => Target::File(name, Body::Pages(unique)),
            None => Target::Nothing,
        },
        [layout::SEALED, folder, file] if is_folder(folder) => match layout::parse_sealed(file) {
            Some((_, unique)) => Target::File(name, Body::Pages(unique)),
            None => Target::Nothing,
        },
        [layout::OWNERS, file] => match layout::parse_owner_lock(file) {
            Some(owner) => Target::Lock(owner),
            None => Target::Nothing,
        },
        _ => Target::Nothing,
    }
}

/// The body of a name in table `bodies`; `None` for a name that this layout does not have.
pub(super) fn body_of(name: &str) -> Option<Body> {
    match target(Path::new(""), Path::new(name)) {
        Target::File(_, body) => Some(body),
        _ => None,
    }
}

fn is_folder(name: &str) -> bool {
    name.len() == 2 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    /// Can one file be taken for another, or a stray name for a file?
    #[test]
    fn every_path_names_one_thing() {
        let root = Path::new("runs/a.stone");
        let owner = OwnerId::from_parts(1, [2; 10]);
        let unique = UniqueId::from_parts(3, [4; 10]);
        let body = Body::Pages(unique);
        let tmp = layout::tmp(root, owner, unique);
        let sealed = layout::sealed(root, &Digest::of(b"x"), unique, 256);
        assert!(matches!(target(root, &tmp), Target::File(_, b) if b == body));
        assert!(matches!(target(root, &sealed), Target::File(_, b) if b == body));
        let journal = layout::journal(root, owner, 7);
        let frames = Target::File(format!("journal/{owner}-7.journal"), Body::Frames(owner, 7));
        assert_eq!(target(root, &journal), frames);
        assert_eq!(target(root, &layout::owner_lock(root, owner)), Target::Lock(owner));
        assert_eq!(target(root, &layout::sealed_folder(root, 255)), {
            Target::Folder("sealed/ff".to_owned())
        });
        assert_eq!(target(root, root), Target::Store);
        assert_eq!(target(root, Path::new("runs/b")), Target::Outside);
        assert_eq!(target(root, Path::new("runs/a.stone/../b")), Target::Outside);
        assert_eq!(target(root, &layout::head(root)), Target::Nothing);
        assert_eq!(target(root, &root.join("tmp/notes")), Target::Nothing);
        assert_eq!(body_of(&format!("journal/{owner}-7.journal")), Some(Body::Frames(owner, 7)));
        assert_eq!(body_of("HEAD"), None);
    }
}
