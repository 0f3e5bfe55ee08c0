//! Why: what keeps an object, a file or a name, or which receipts tell that it went.

use crate::digest::Digest;
use crate::engine::{FileKept, ObjectKept, Receipt, Store};
use crate::error::Result;
use crate::ids::FileId;
use crate::objects::describing::{Name, NameView};

/// The most receipts that are told.
const RECEIPTS_MAX: usize = 16;

/// What is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// Objects with a digest.
    Object(Digest),
    /// A sealed file.
    File(FileId),
    /// A name of the objects.
    Name(Name),
}

/// What keeps it, or what tells that it went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Why {
    /// What stands under the name that was asked about.
    pub name: Option<NameView>,
    /// The objects that it is about: one; more where a damaged one was stored again, or one is being
    /// retired and was stored anew. Without any, nothing keeps it.
    pub objects: Vec<ObjectKept>,
    /// The file that was asked about; `None` once its bytes were given back.
    pub file: Option<FileKept>,
    /// Receipts that name it, the newest first, at most 16. A receipt names the first 32 things and objects
    /// of its retirement.
    pub receipts: Vec<Receipt>,
}

impl Store {
    /// What keeps `subject`, or which receipts tell that it went. Changes nothing.
    ///
    /// # Errors
    /// `Damage`, `Halted`, `Closed`.
    pub fn why(&self, subject: &Subject) -> Result<Why> {
        let mut why = Why::default();
        match subject {
            Subject::Object(digest) => {
                why.objects = self.why_object(digest)?;
                why.receipts = self.receipts_of_digest(digest, RECEIPTS_MAX)?;
            }
            Subject::File(file) => why.file = self.why_file(*file)?,
            Subject::Name(name) => {
                why.name = self.objects().name(name)?;
                if let Some(view) = &why.name {
                    why.objects = self.why_object(&view.digest)?;
                }
                why.receipts = self.receipts_of(&format!("name {name}"), RECEIPTS_MAX)?;
            }
        }
        Ok(why)
    }
}
