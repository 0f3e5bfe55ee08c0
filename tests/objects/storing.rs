//! Is what is put stored once, leased, and there for whoever goes on?

use sealstone::ErrorKind;
use sealstone::digest::Digest;
use sealstone::engine::Budget;
use sealstone::objects::PutOptions;

use crate::support::store;

/// Is a content there for whoever goes on with its preparation, and gone once that is given up?
#[test]
fn obj6_what_is_flushed_is_there_for_whoever_goes_on() {
    let (_folder, store) = store();
    let objects = store.objects();
    let prep = objects.prepare("import").unwrap();
    let digest = prep.put(b"some content").unwrap();
    assert_eq!(digest, Digest::of(b"some content"));
    prep.flush().unwrap();
    let lost = prep.put(b"never flushed").unwrap();
    assert_eq!(objects.prepare("import").unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(objects.abandon("import", "no").unwrap_err().kind(), ErrorKind::Conflict);
    drop(prep);
    let views = objects.preparations().unwrap();
    assert_eq!((views[0].objects, views[0].bytes, views[0].pieces), (1, 12, 0));
    assert!(views[0].open_by.is_none());
    let prep = objects.prepare("import").unwrap();
    let rows = |digest| {
        use sealstone::manifest::Reading;
        store.snapshot().unwrap().object_of(&digest).unwrap()
    };
    assert_eq!((rows(digest).len(), rows(lost).len()), (1, 0));
    let gone = prep.abandon("not needed").unwrap();
    assert_eq!((gone.things, gone.objects, gone.bytes), (1, 1, 12));
    assert!(objects.preparations().unwrap().is_empty());
    assert_eq!(objects.abandon("import", "no").unwrap_err().kind(), ErrorKind::NotFound);
    store.reclaim(Budget::default()).unwrap();
    assert!(store.accounts().unwrap().are_closed());
    assert!(store.claims(9).unwrap().is_empty());
}

/// Is a batch accepted whole, or refused?
#[test]
fn obj5_a_batch_is_accepted_whole() {
    let (_folder, store) = store();
    let prep = store.objects().prepare("batch").unwrap();
    let digests = prep.put_batch(&[b"a", b"b", b"a"], &PutOptions::default()).unwrap();
    assert_eq!(digests, [Digest::of(b"a"), Digest::of(b"b"), Digest::of(b"a")]);
    prep.flush().unwrap();
    assert_eq!(store.objects().preparations().unwrap()[0].objects, 2);
}
