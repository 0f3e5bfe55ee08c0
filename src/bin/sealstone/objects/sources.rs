//! What `put` takes: a file, standard input, or the files below a directory, each with its name.

use std::path::{Path, PathBuf};

use sealstone::objects::{Name, PUBLISH_NAMES_MAX};
use sealstone::vfs::{Disk, EntryKind, Identity, RealDisk};
use sealstone::{Error, ErrorKind, Result};

use super::args::PutArgs;

/// One content, and what it is to be called.
#[derive(Debug)]
pub struct Source {
    pub path: PathBuf,
    pub name: Option<Name>,
}

/// All that is to be put.
#[derive(Debug, Default)]
pub struct Sources {
    pub files: Vec<Source>,
    /// What is not taken, and why.
    pub skipped: Vec<(PathBuf, &'static str)>,
    pub bytes: u64,
}

impl Sources {
    /// What `args` ask for, in the order of names. Nothing is read but directories.
    pub fn of(args: &PutArgs) -> Result<Self> {
        let (disk, path) = (RealDisk::new(), &args.source);
        if path == Path::new("-") {
            return Self::one(args, 0);
        }
        let meta = disk.meta(path).map_err(|e| Error::io("put", path.display(), e))?;
        let Some(meta) = meta else {
            return Err(Error::new(ErrorKind::NotFound, "put", path.display(), "it is not there"));
        };
        if meta.kind != EntryKind::Directory {
            return Self::one(args, meta.len);
        }
        if !args.recursive {
            let cause = "it is a directory; give --recursive to take the files below it";
            return Err(Error::invalid("put", path.display(), cause));
        }
        let store = identity_of_store(&*disk, &args.store);
        let mut sources = Self::default();
        sources.walk(&*disk, args, store)?;
        if sources.files.is_empty() {
            return Err(Error::invalid("put", path.display(), "no file is below it"));
        }
        if args.name.is_some() && sources.files.len() > PUBLISH_NAMES_MAX {
            let cause = format!(
                "{} files, {PUBLISH_NAMES_MAX} at most are published at once; put the directories in it",
                sources.files.len()
            );
            return Err(Error::new(ErrorKind::LimitExceeded, "put", path.display(), cause));
        }
        Ok(sources)
    }

    fn one(args: &PutArgs, bytes: u64) -> Result<Self> {
        let name = args.name.as_deref().map(str::parse).transpose()?;
        let files = vec![Source { path: args.source.clone(), name }];
        Ok(Self { files, skipped: Vec::new(), bytes })
    }

    fn walk(&mut self, disk: &dyn Disk, args: &PutArgs, store: Option<Identity>) -> Result<()> {
        let failed = |path: &Path, e| Error::io("put", path.display(), e);
        let mut folders = vec![(args.source.clone(), String::new())];
        while let Some((folder, below)) = folders.pop() {
            for entry in disk.list(&folder).map_err(|e| failed(&folder, e))? {
                let path = folder.join(&entry.name);
                let inside = format!("{below}{}", entry.name);
                if entry.name.contains(char::REPLACEMENT_CHARACTER) {
                    self.skipped.push((path, "its name is not UTF-8"));
                    continue;
                }
                let meta = disk.meta(&path).map_err(|e| failed(&path, e))?;
                match meta.map(|meta| (meta.kind, meta)) {
                    Some((_, meta)) if Some(meta.identity) == store => {
                        self.skipped.push((path, "it is the store"));
                    }
                    Some((EntryKind::Directory, _)) => folders.push((path, inside + "/")),
                    Some((EntryKind::File, meta)) => {
                        let name = args.name.as_deref().map(|name| below_name(name, &inside));
                        self.bytes = self.bytes.saturating_add(meta.len);
                        self.files.push(Source { path, name: name.transpose()? });
                    }
                    Some((EntryKind::Other, _)) => {
                        self.skipped.push((path, "it is no file: a link, a pipe or a device"));
                    }
                    None => self.skipped.push((path, "it went while it was looked at")),
                }
            }
        }
        self.files.sort_by(|a, b| (&a.name, &a.path).cmp(&(&b.name, &b.path)));
        self.skipped.sort();
        Ok(())
    }
}

/// Which directory or file the store is; where its path is a link, what that leads to.
fn identity_of_store(disk: &dyn Disk, path: &Path) -> Option<Identity> {
    let meta = disk.meta(path).ok().flatten()?;
    let led_to = match meta.kind {
        EntryKind::Other => disk.meta(&path.join(".")).ok().flatten(),
        _ => None,
    };
    Some(led_to.unwrap_or(meta).identity)
}

/// The name of a file whose path below a directory is `inside`: a namespace alone takes it as it is.
fn below_name(given: &str, inside: &str) -> Result<Name> {
    match given.trim_end_matches('/').split_once('/') {
        Some((namespace, name)) => Name::new(namespace, format!("{name}/{inside}")),
        None => Name::new(given.trim_end_matches('/'), inside),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has a file below a directory the name that the manual says?
    #[test]
    fn files_below_a_directory_are_named_by_their_path() {
        let named = |given, inside| below_name(given, inside).unwrap().to_string();
        assert_eq!(named("models", "a/b.bin"), "models/a/b.bin");
        assert_eq!(named("models/", "b.bin"), "models/b.bin");
        assert_eq!(named("models/2026", "b.bin"), "models/2026/b.bin");
        assert!(below_name("", "b.bin").is_err() && below_name("/", "b.bin").is_err());
    }
}
