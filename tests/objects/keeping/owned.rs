//! Is what belongs to a preparation taken away by nobody else?

use sealstone::ErrorKind;
use sealstone::engine::{Layout, Thing, WriteAccess};
use sealstone::objects::Gone;

use super::support::*;

/// Is the lease of a preparation refused to whoever would take it from under it, and its holder to whoever
/// would open a lease that looks like one; and does the store stay as it was, in all that is listed?
#[test]
fn obj6_the_lease_of_a_preparation_goes_with_it_alone() {
    each(31, |disk, layout, store| {
        let objects = store.objects();
        let prep = objects.prepare("one").unwrap();
        prep.put(&content(1)).unwrap();
        prep.flush().unwrap();
        let refused = store.retire(&[Thing::Lease(prep.lease())], "mine").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
        assert!(refused.to_string().contains("\"one\""), "{refused}");
        let refused = store.lease("preparation", "mine", None, &[]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
        drop((prep, objects, store));
        checked(disk);
        let disk = disk.process(2);
        let store = on(&disk, layout).open(root()).unwrap();
        let objects = store.objects();
        let views = objects.preparations().unwrap();
        assert_eq!((views.len(), views[0].objects), (1, 1));
        let prep = objects.prepare("one").unwrap();
        prep.put(&content(2)).unwrap();
        prep.flush().unwrap();
        assert_eq!(prep.abandon("enough").unwrap().objects, 2);
        assert!(objects.preparations().unwrap().is_empty());
    });
}

/// Does the preparation of a process that was killed go with the others that are retired, in a store that others
/// go on with; and is that of a living one refused, all or none?
#[test]
fn obj16_a_preparation_of_the_dead_is_retired() {
    let world = sim(32);
    let open = |pid| {
        let disk = world.process(pid);
        let options = on(&disk, Layout::Directory).access(WriteAccess::Shared);
        (options.open_or_create(root()).unwrap(), disk)
    };
    let ((one, disk), (other, _)) = (open(1), open(2));
    let prep = one.objects().prepare("import").unwrap();
    prep.put(&content(1)).unwrap();
    prep.flush().unwrap();
    file(&other, "files/a", 4);
    let both = [gone("files/a"), Gone::Preparation("import".to_owned())];
    let refused = other.objects().retire(&both, "all").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    assert!(other.objects().name(&name("files/a")).unwrap().is_some());
    disk.kill();
    drop((prep, one));
    let done = other.objects().retire(&both, "all").unwrap();
    assert_eq!((done.things, done.objects), (2, 2));
    assert!(other.objects().preparations().unwrap().is_empty());
}
