//! What a backup has to be in an image: the earlier one or the new one, whole, and free for the next
//! call to bring it up to now.

use super::check::Judge;
use super::content::Content;
use super::finding::{Finding, Rule};
use super::history::Shape;
use super::model::Survivors;
use super::play::{copy_root, options};
use crate::digest::Digest;
use crate::engine::{Layout, Store};
use crate::error::{Error, ErrorKind};
use crate::vfs::sim::{Outcomes, SimDisk};

type Told<T = ()> = std::result::Result<T, Finding>;

fn fail(doing: &'static str) -> impl Fn(Error) -> Finding {
    move |e| Finding::error(Rule::Backup, doing, &e)
}

impl Judge<'_> {
    fn is_backed_up(&self) -> bool {
        let all = self.history.prefix.iter().chain(&self.history.cut);
        let is_backup = |shape: &Shape| matches!(shape, Shape::Backup | Shape::BackupBeside);
        self.history.limited.layout() == Layout::Directory && all.into_iter().any(is_backup)
    }

    /// The raw image, for whoever needs the backup now.
    pub(super) fn check_copy(&self, disk: &SimDisk) -> Told {
        if !self.is_backed_up() {
            return Ok(());
        }
        let store = match options(self.history, disk).open_read_only(copy_root()) {
            Ok(store) => store,
            Err(e) if e.kind() == ErrorKind::NoStore && self.may_be_without() => return Ok(()),
            Err(e) => return Err(fail("open the backup")(e)),
        };
        let content = Content::read(&store).map_err(fail("read the backup"))?;
        super::check::verify_objects(&store)?;
        if !content.claims.is_empty() {
            return Err(Finding::new(Rule::Backup, "claims stand in a backup"));
        }
        self.explain_copy(&content).map_err(|why| Finding::new(Rule::Backup, why))
    }

    fn may_be_without(&self) -> bool {
        self.models.iter().any(|model| model.backup.is_none())
    }

    fn explain_copy(&self, content: &Content) -> Result<(), String> {
        // A second call, cut in its turn, copies what recovery had shown.
        if self.opened == Some(content.digest()) {
            return Ok(());
        }
        let mut why = "no backup was acknowledged or under way".to_owned();
        for backup in self.models.iter().filter_map(|model| model.backup.as_deref()) {
            match backup.explains(content, Survivors::OfPower) {
                Ok(_) => return Ok(()),
                Err(no) => why = no,
            }
        }
        Err(why)
    }

    /// After a crash the next backup finishes, whatever the last one left.
    pub(super) fn copy_again(
        &self,
        disk: &SimDisk,
        store: &Store,
        digest: Digest,
        outcomes: &Outcomes,
    ) -> Told {
        if !self.is_backed_up() || !outcomes.cut.is_multiple_of(AGAIN_EACH) {
            return Ok(());
        }
        store.backup(copy_root()).map_err(fail("back up again"))?;
        let reader = options(self.history, disk).open_read_only(copy_root());
        let copy = reader.map_err(fail("open the new backup"))?;
        let content = Content::read(&copy).map_err(fail("read the new backup"))?;
        super::check::verify_objects(&copy)?;
        match content.digest() == digest {
            true => Ok(()),
            false => Err(Finding::new(Rule::Backup, "the new backup shows another state")),
        }
    }
}

/// One cut in so many is backed up again.
const AGAIN_EACH: usize = 3;
