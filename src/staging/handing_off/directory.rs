//! A directory as a target: each output becomes one file of it, whole or not there.
//!
//! ```text
//!   .sealstone-<unique>-<attempt>.tmp --[copy, sync]--> whole --[link]--> the file's own name
//!                                                                  |
//!            [tidy: names of earlier attempts]        temporary name gone, directory synced
//! ```
//!
//! - A name is given by `link`, which replaces nothing. Where the file system has no links the name is
//!   first taken by an empty file, created exclusively, which the whole one then replaces.
//! - What shows that a file is there is its length and its digest, read from the medium after a sync.
//! - A file is taken away again only where a temporary name of its intent names the same file: what
//!   another store put there under the same name, with the same bytes, stays.

use std::io::{ErrorKind as IoKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::file_name::{TEMPORARY, file_name, is_safe};
use super::target::{Offer, Target};
use crate::codec;
use crate::digest::{Digest, Hasher};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::UniqueId;
use crate::protection::Protection;
use crate::staging::OutputReader;
use crate::vfs::{Access, Disk, EntryKind, File, RealDisk, Step, write_all_at};

/// Bytes moved at a time.
const PIECE_BYTES: usize = 512 << 10;

/// Up to so many attempts their temporary names are taken away without a look at the directory.
const TRIES_NAMED: u32 = 64;

/// What is to be in the directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Intent {
    /// The name of the file.
    name: String,
    /// What its temporary names are made of: nobody else's are.
    unique: UniqueId,
    /// Its length.
    len: u64,
    /// Its digest.
    digest: Digest,
}

/// What is there under the name that a file is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum There {
    Nothing,
    /// An empty file where another one is to be: the name is taken, for us.
    Reserved,
    /// What is intended.
    Same,
    /// Something else, that is not ours.
    Other,
}

/// A directory that outputs are handed to as files. Made where it is missing.
///
/// A file's name is made of the key, the output's number and its digest; nothing in a key leads out of
/// the directory. Its mode is 0600 unless another is given. Files are never replaced: one that has the
/// name already and holds other bytes is an error, one that holds the same is what was wanted.
#[derive(Debug, Clone)]
pub struct DirectoryTarget {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    ending: Option<String>,
    mode: Option<u32>,
}

impl DirectoryTarget {
    /// The directory at `directory`, whose parent must be there. A relative path counts from where the
    /// process stands now.
    pub fn new(directory: impl AsRef<Path>) -> Self {
        let given = directory.as_ref();
        let directory = std::path::absolute(given).unwrap_or_else(|_| given.to_owned());
        // `out/` is `out`: shells complete it so, and it is not to be another target.
        let directory = directory.components().collect();
        Self { disk: RealDisk::new(), directory, ending: None, mode: None }
    }

    /// What the names of files end with, instead of the form of each output.
    #[must_use]
    pub fn ending(mut self, ending: &str) -> Self {
        self.ending = Some(ending.to_owned());
        self
    }

    /// The permission bits of the files, for others to read them: 0o644. Without 0o400 nothing is handed
    /// off (`Invalid`): what is there could not be read back.
    #[must_use]
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Another door to storage.
    #[must_use]
    pub fn disk(mut self, disk: Arc<dyn Disk>) -> Self {
        self.disk = disk;
        self
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn intended(&self, intent: &[u8]) -> Result<Intent> {
        let intent: Intent = codec::decode("intent", intent)?;
        match is_safe(&intent.name) {
            true => Ok(intent),
            false => {
                let cause = format!("{:?} is no name of a file of ours", intent.name);
                Err(Error::damage("read", "intent", cause))
            }
        }
    }

    fn temporary(&self, intent: &Intent, attempt: u32) -> PathBuf {
        self.at(&format!("{TEMPORARY}{}-{attempt}.tmp", intent.unique))
    }

    /// Makes the names in the directory durable, and its own: an attempt that died may have made it.
    fn sync_directory(&self) -> Result<()> {
        self.disk.sync_dir(&self.directory).map_err(self.failed("sync", &self.directory))?;
        let Some(parent) = self.directory.parent() else { return Ok(()) };
        match self.disk.sync_dir(parent) {
            // Somebody else's: whoever may not look into it made nothing there.
            Err(e) if e.kind() == IoKind::PermissionDenied => Ok(()),
            synced => synced.map_err(self.failed("sync", parent)),
        }
    }

    fn failed(&self, operation: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Error {
        let place = path.display().to_string();
        move |e| Error::io(operation, &place, e)
    }

    /// Makes the directory, unless it is there.
    fn ensure_directory(&self) -> Result<()> {
        let failed = self.failed("create", &self.directory);
        if self.disk.meta(&self.directory).map_err(&failed)?.is_some() {
            return Ok(());
        }
        match self.disk.mkdir(&self.directory) {
            Err(e) if e.kind() == IoKind::AlreadyExists => {}
            made => made.map_err(&failed)?,
        }
        Ok(())
    }

    /// Copies `bytes` into a new file at `path` and makes it durable. They must be what is intended.
    fn copy(&self, intent: &Intent, path: &Path, bytes: &mut dyn Read) -> Result<()> {
        let failed = self.failed("write", path);
        let file = self.disk.open(path, Access::CreateNew).map_err(&failed)?;
        let (mut hasher, mut len, mut piece) = (Hasher::default(), 0u64, vec![0; PIECE_BYTES]);
        loop {
            let read = match bytes.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => piece.get(..read).unwrap_or(&piece),
                Err(e) if e.kind() == IoKind::Interrupted => continue,
                Err(e) => return Err(Error::io("read", "output", e)),
            };
            write_all_at(&*file, read, len).map_err(&failed)?;
            hasher.update(read);
            len = len.saturating_add(read.len() as u64);
        }
        if (len, hasher.finish()) != (intent.len, intent.digest) {
            let cause = "its bytes are not those that were to be handed off";
            return Err(Error::damage("hand off", &intent.name, cause));
        }
        if let Some(mode) = self.mode {
            self.disk.set_mode(path, mode).map_err(&failed)?;
        }
        file.sync_all().map_err(self.failed("sync", path))
    }

    /// Gives the whole file at `temporary` its own name, unless another file has it.
    /// Whether this gave it.
    fn name_it(&self, intent: &Intent, temporary: &Path) -> Result<bool> {
        let path = self.at(&intent.name);
        let refused = match self.disk.link(temporary, &path) {
            Ok(()) => return Ok(true),
            Err(e) => e,
        };
        match refused.kind() {
            IoKind::AlreadyExists => self.taken(intent, false).map(|_| false),
            kind if is_without_links(kind) => match self.reserve(intent, &path)? {
                There::Same => Ok(false),
                _ => {
                    let renamed = self.disk.rename(temporary, &path);
                    renamed.map_err(self.failed("rename", &path)).map(|()| true)
                }
            },
            _ => Err(Error::io("link", path.display(), refused)),
        }
    }

    /// Takes the name with an empty file, which fails if another file has it; what has it then.
    fn reserve(&self, intent: &Intent, path: &Path) -> Result<There> {
        match self.disk.open(path, Access::CreateNew) {
            Ok(_) => Ok(There::Reserved),
            Err(e) if e.kind() == IoKind::AlreadyExists => self.taken(intent, true),
            Err(e) => Err(Error::io("create", path.display(), e)),
        }
    }

    /// The name is taken: good if it is by what is intended, or by our own reservation where we make
    /// some.
    fn taken(&self, intent: &Intent, reserves: bool) -> Result<There> {
        match self.look(intent)? {
            There::Same => Ok(There::Same),
            There::Reserved if reserves => Ok(There::Reserved),
            _ => {
                let cause = "another file has the name, and was left as it is; move it away, or roll \
                             the hand-off back";
                let path = self.at(&intent.name);
                Err(Error::new(ErrorKind::Exists, "hand off", path.display(), cause))
            }
        }
    }

    /// The temporary names of an intent that are there.
    fn temporaries(&self, intent: &Intent) -> Result<Vec<PathBuf>> {
        let begin = format!("{TEMPORARY}{}-", intent.unique);
        let listed = self.disk.list(&self.directory);
        let listed = listed.map_err(self.failed("list", &self.directory))?.into_iter();
        Ok(listed
            .filter(|one| one.name.starts_with(&begin))
            .map(|one| self.at(&one.name))
            .collect())
    }

    /// Whether an attempt of this intent is known to have given `path` its file: a temporary name of it
    /// names the same one.
    fn is_made_by(&self, intent: &Intent, path: &Path) -> Result<bool> {
        if !Protection::HandoffOwn.is_on() {
            return Ok(true);
        }
        let identity = |path: &Path| -> Result<_> {
            let meta = self.disk.meta(path).map_err(self.failed("read", path))?;
            Ok(meta.map(|meta| meta.identity))
        };
        let its = identity(path)?;
        for temporary in self.temporaries(intent)? {
            if identity(&temporary)? == its {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether an empty file under the name may be a reservation: where there are links none is made.
    fn is_reservation(&self, intent: &Intent, path: &Path) -> Result<bool> {
        let probe = self.at(&format!("{TEMPORARY}{}-0.tmp", intent.unique));
        match self.disk.link(path, &probe) {
            Ok(()) => {
                self.disk.unlink(&probe).map_err(self.failed("unlink", &probe))?;
                Ok(false)
            }
            Err(e) => Ok(is_without_links(e.kind())),
        }
    }

    /// What has the name. What is found to be the same is there for good.
    fn look(&self, intent: &Intent) -> Result<There> {
        let path = self.at(&intent.name);
        let failed = self.failed("read", &path);
        let Some(meta) = self.disk.meta(&path).map_err(&failed)? else { return Ok(There::Nothing) };
        match (meta.kind, meta.len) {
            (EntryKind::File, len) if len == intent.len => {}
            (EntryKind::File, 0) => return Ok(There::Reserved),
            _ => return Ok(There::Other),
        }
        if !Protection::HandoffEvidence.is_on() {
            return Ok(There::Same);
        }
        let file = self.disk.open(&path, Access::Read).map_err(&failed)?;
        // A link that somebody put there meanwhile leads elsewhere.
        if file.identity().map_err(&failed)? != meta.identity {
            return Ok(There::Other);
        }
        if Protection::HandoffSynced.is_on() {
            file.sync_all().map_err(self.failed("sync", &path))?;
            file.evict().map_err(&failed)?;
        }
        if digest_of(&*file, intent.len).map_err(&failed)? != Some(intent.digest) {
            return Ok(There::Other);
        }
        if Protection::HandoffSynced.is_on() {
            self.sync_directory()?;
        }
        Ok(There::Same)
    }
}

/// No links on this file system, or none to such files.
fn is_without_links(kind: IoKind) -> bool {
    matches!(kind, IoKind::PermissionDenied | IoKind::Unsupported | IoKind::TooManyLinks)
}

/// The digest of a file, if it has exactly `len` bytes.
fn digest_of(file: &dyn File, len: u64) -> std::io::Result<Option<Digest>> {
    let (mut hasher, mut at, mut piece) = (Hasher::default(), 0u64, vec![0; PIECE_BYTES]);
    while at <= len {
        let read = match file.read_at(&mut piece, at) {
            Ok(0) => break,
            Ok(read) => piece.get(..read).unwrap_or(&piece),
            Err(e) if e.kind() == IoKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        hasher.update(read);
        at = at.saturating_add(read.len() as u64);
    }
    Ok((at == len).then(|| hasher.finish()))
}

impl Target for DirectoryTarget {
    fn name(&self) -> String {
        format!("directory {}", self.directory.display())
    }

    fn intent(&self, offer: &Offer) -> Result<Vec<u8>> {
        if let Some(mode) = self.mode.filter(|mode| mode & 0o400 == 0) {
            let cause = format!("files of mode {mode:o} could not be read back; add 400");
            return Err(Error::invalid("hand off", self.name(), cause));
        }
        let mut random = [0; 10];
        self.disk.entropy(&mut random).map_err(|e| Error::io("read", "entropy", e))?;
        let millis = self.disk.wall_nanos().map_or(0, |nanos| nanos.max(0) / 1_000_000);
        let unique = UniqueId::from_parts(u64::try_from(millis).unwrap_or(0), random);
        let name = file_name(offer, self.ending.as_deref());
        let intent = Intent { name, unique, len: offer.output.len, digest: offer.output.digest };
        codec::encode("intent", &intent)
    }

    fn tidy(&self, intent: &[u8], attempt: u32) -> Result<()> {
        let intent = self.intended(intent)?;
        let is_there = self
            .disk
            .meta(&self.directory)
            .map_err(self.failed("read", &self.directory))?
            .is_some();
        let earlier = match attempt {
            // After many, those that are there are looked for.
            _ if attempt > TRIES_NAMED && is_there => self.temporaries(&intent)?,
            _ => (1..attempt.min(TRIES_NAMED)).map(|n| self.temporary(&intent, n)).collect(),
        };
        for path in earlier {
            match self.disk.unlink(&path) {
                Err(e) if e.kind() == IoKind::NotFound => {}
                gone => gone.map_err(self.failed("unlink", &path))?,
            }
        }
        // Also what an earlier attempt took away itself and did not sync.
        if is_there && attempt > 1 { self.sync_directory() } else { Ok(()) }
    }

    fn put(&self, intent: &[u8], attempt: u32, bytes: &mut OutputReader) -> Result<()> {
        let intent = self.intended(intent)?;
        let temporary = self.temporary(&intent, attempt);
        self.disk.mark(Step::HandoffCopy);
        self.ensure_directory()?;
        let named = self.copy(&intent, &temporary, bytes).and_then(|()| {
            self.disk.mark(Step::HandoffLink);
            self.name_it(&intent, &temporary)
        });
        let gone = match self.disk.unlink(&temporary) {
            // It was renamed, or never made.
            Err(e) if e.kind() == IoKind::NotFound => Ok(()),
            gone => gone.map_err(self.failed("unlink", &temporary)),
        };
        let is_ours = named?;
        gone?;
        // One sync for both: the name is there, the temporary one is not.
        self.disk.mark(Step::HandoffSyncDir);
        let synced = self.sync_directory();
        if synced.is_err() && is_ours && Protection::HandoffAnew.is_on() {
            // A second sync after a failed one shows nothing: the next attempt gives the name anew.
            let path = self.at(&intent.name);
            self.disk.unlink(&path).map_err(self.failed("unlink", &path))?;
        }
        synced
    }

    fn evidence(&self, intent: &[u8]) -> Result<Option<Vec<u8>>> {
        let intent = self.intended(intent)?;
        match self.look(&intent)? {
            There::Same => {
                Ok(Some(format!("{} {} {}", intent.name, intent.len, intent.digest).into_bytes()))
            }
            There::Nothing | There::Reserved | There::Other => Ok(None),
        }
    }

    fn remove(&self, intent: &[u8]) -> Result<()> {
        let intent = self.intended(intent)?;
        let path = self.at(&intent.name);
        match self.look(&intent)? {
            There::Nothing | There::Other => return Ok(()),
            There::Reserved if !self.is_reservation(&intent, &path)? => return Ok(()),
            There::Same if !self.is_made_by(&intent, &path)? => {
                let cause = "the same bytes are there, and nothing shows that this hand-off put them \
                             there: resume it, which finds it done, or take the file away by hand \
                             and roll back again";
                return Err(Error::new(ErrorKind::Exists, "roll back", path.display(), cause));
            }
            There::Reserved | There::Same => {}
        }
        self.disk.unlink(&path).map_err(self.failed("unlink", &path))?;
        self.sync_directory()
    }
}
