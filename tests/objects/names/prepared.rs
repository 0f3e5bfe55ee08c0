//! Publishing from a preparation: what was put is stored before a name stands for it.

use sealstone::ErrorKind;
use sealstone::engine::Budget;
use sealstone::objects::PutOptions;

use super::support::{
    any, books_close, content, contents, digest, each, expect, is_there, kept, name, on, root,
};

/// Does a preparation flush before it publishes, keep what was not named, and go on after that; and is what it was
/// abandoned with not published any more?
#[test]
fn obj7_obj9_a_preparation_publishes_what_was_put() {
    each(750, |disk, layout, store| {
        let objects = store.objects();
        let prep = objects.prepare("import").unwrap();
        let all: Vec<Vec<u8>> = (1..=4).map(content).collect();
        let all: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
        prep.put_batch(&all, &PutOptions::default()).unwrap();
        let e = prep.publish(&[any("a/x", digest(1)), any("a/bad", digest(9))]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::NotFound);
        assert!(contents(&store).is_empty());
        prep.publish(&[any("a/x", digest(1)), any("a/y", digest(2))]).unwrap();
        assert_eq!(kept(&store).len(), 2, "3 and 4");
        let handoff = prep.hand_off(&[any("a/z", digest(3))], "bucket", b"").unwrap();
        // What is there under a name is there after a crash.
        disk.kill();
        drop((prep, objects, store));
        let store = on(&disk.process(2), layout).open(root()).unwrap();
        let objects = store.objects();
        assert_eq!(contents(&store), expect(&[("a/x", 1), ("a/y", 2)]));
        objects.complete(handoff.id, &handoff.evidence("")).unwrap();
        let prep = objects.prepare("import").unwrap();
        prep.publish(&[any("b/x", digest(4))]).unwrap();
        assert_eq!(kept(&store), []);
        prep.put(&content(5)).unwrap();
        let lease = prep.lease();
        prep.flush().unwrap();
        prep.abandon("not wanted").unwrap();
        let e = objects.publish(lease, &[any("b/y", digest(5))]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::NotFound);
        assert!(!is_there(&store, digest(5)));
        store.reclaim(Budget::default()).unwrap();
        let all = [("a/x", 1), ("a/y", 2), ("a/z", 3), ("b/x", 4)];
        assert_eq!(contents(&store), expect(&all));
        for (text, n) in all {
            assert!(objects.release(&name(text), &digest(n)).unwrap());
        }
        books_close(&store);
    });
}
