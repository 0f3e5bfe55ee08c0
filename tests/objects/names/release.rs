//! Releasing a name: only what is expected to stand there goes.

use super::support::{
    any, as_rows, books_close, contents, digest, each, expect, is_there, lease, name, put, rows,
};

/// Is a name released only if it stands for the digest given; is another one, or nothing, told as false with
/// nothing changed; and does what it stood for go unless something else names it?
#[test]
fn obj10_a_name_is_released_only_as_it_is_expected() {
    each(720, |_, _, store| {
        let (objects, mine) = (store.objects(), lease(&store));
        put(&store, mine, &[1, 2]);
        objects
            .publish(mine, &[any("a/x", digest(1)), any("a/y", digest(1)), any("a/z", digest(2))])
            .unwrap();
        let before = rows(&store);
        let commits = store.snapshot().unwrap();
        for (text, n) in [("a/x", 2), ("a/x", 99), ("a/none", 1), ("b/x", 1)] {
            assert!(!objects.release(&name(text), &digest(n)).unwrap(), "{text} {n}");
            assert_eq!(rows(&store), before, "{text} {n}");
        }
        use sealstone::manifest::Reading;
        let counters = |snapshot: &sealstone::manifest::Snapshot| snapshot.counters().unwrap();
        assert_eq!(counters(&commits), counters(&store.snapshot().unwrap()), "no commit either");
        drop(commits);
        assert!(objects.release(&name("a/x"), &digest(1)).unwrap());
        assert!(is_there(&store, digest(1)), "another name stands for it");
        assert!(!objects.release(&name("a/x"), &digest(1)).unwrap());
        assert!(objects.release(&name("a/y"), &digest(1)).unwrap());
        assert!(!is_there(&store, digest(1)));
        assert_eq!(contents(&store), expect(&[("a/z", 2)]));
        // What a preparation keeps stays there.
        put(&store, mine, &[2]);
        as_rows(&store, mine, false);
        assert!(objects.release(&name("a/z"), &digest(2)).unwrap());
        assert!(is_there(&store, digest(2)));
        objects.publish(mine, &[any("a/z", digest(2))]).unwrap();
        books_close(&store);
    });
}
