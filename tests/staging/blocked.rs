//! A seal or a conversion that stands in I/O: does appending go on?

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use sealstone::staging::{Level, Produced, Ready};
use sealstone::vfs::Step;

use crate::gate::GateDisk;
use crate::support::{LAYOUTS, batch, books_close, key, put, root, shape, sim, small, texts, with};
use crate::words::{convert_well, published};

/// Does `append` complete, durably, while the flush of what came before stands in I/O; and is what came
/// meanwhile in no group that the flush detached?
#[test]
fn stg7_append_completes_while_a_flush_stands() {
    for (layout, step) in
        [(LAYOUTS[0], Step::SealBuild), (LAYOUTS[0], Step::SealSync), (LAYOUTS[1], Step::SealBuild)]
    {
        let gate = GateDisk::new(Arc::new(sim(31)));
        let store = with(Arc::new(gate.clone()), layout, small()).create(root()).unwrap();
        let stage = store.create_stage("nginx", &shape()).unwrap();
        for n in 0..5 {
            put(&stage, "a", n, &format!("{n} {}", "x".repeat(400)));
        }
        let (stands, is_standing) = channel();
        let (go, may_go) = channel::<()>();
        gate.at_step(step, move || {
            stands.send(()).unwrap();
            may_go.recv_timeout(Duration::from_secs(60)).unwrap();
        });
        std::thread::scope(|scope| {
            let flush = scope.spawn(|| stage.flush(&Ready::All).unwrap());
            is_standing.recv_timeout(Duration::from_secs(60)).unwrap();
            for n in 0..5u64 {
                let produced = Produced::new("p", n);
                let late = batch(&format!("late {n}"));
                let appended = stage.append(&key("a", n as i64), late, Some(&produced)).unwrap();
                stage.wait(&appended.ticket, Level::Durable).unwrap();
                assert_eq!(stage.progress("p").unwrap().unwrap().sequence, n);
            }
            assert!(!flush.is_finished());
            go.send(()).unwrap();
            let flushed = flush.join().unwrap();
            assert_eq!((flushed.batches, flushed.detached.len()), (5, 5));
        });
        let groups = stage.groups().unwrap();
        assert_eq!(groups.iter().filter(|g| g.is_detached).map(|g| g.batches).sum::<u64>(), 5);
        assert_eq!(stage.flush(&Ready::All).unwrap().batches, 5);
        assert_eq!(texts(&store).len(), 10);
        books_close(&store);
    }
}

/// And while a detached group is converted, and its output stands in I/O: does appending complete, durably, also
/// under the key of that group, and is what came meanwhile in no output?
#[test]
fn stg7_append_completes_while_a_conversion_stands() {
    for (layout, step) in
        [(LAYOUTS[0], Step::SealBuild), (LAYOUTS[0], Step::SealSync), (LAYOUTS[1], Step::SealBuild)]
    {
        let gate = GateDisk::new(Arc::new(sim(32)));
        let store = with(Arc::new(gate.clone()), layout, small()).create(root()).unwrap();
        let stage = store.create_stage("nginx", &shape()).unwrap();
        put(&stage, "a", 1, &format!("first {}", "x".repeat(400)));
        stage.flush(&Ready::All).unwrap();
        put(&stage, "a", 1, "before");
        stage.barrier().unwrap();
        let (stands, is_standing) = channel();
        let (go, may_go) = channel::<()>();
        gate.at_step(step, move || {
            stands.send(()).unwrap();
            may_go.recv_timeout(Duration::from_secs(60)).unwrap();
        });
        std::thread::scope(|scope| {
            let conversion = scope.spawn(|| convert_well(&stage));
            is_standing.recv_timeout(Duration::from_secs(60)).unwrap();
            for n in 0..5 {
                let appended = stage.append(&key("a", 1), batch(&format!("late {n}")), None);
                stage.wait(&appended.unwrap().ticket, Level::Durable).unwrap();
                // A view sees all of it, the group where it was.
                assert_eq!(stage.view().unwrap().rows(), 2 + 1 + 2 * (n + 1));
            }
            assert!(!conversion.is_finished() && stage.outputs().unwrap().is_empty());
            go.send(()).unwrap();
            conversion.join().unwrap();
        });
        assert_eq!(published(&stage).len(), 1);
        assert_eq!(stage.view().unwrap().unsealed_rows(), 11);
        stage.flush(&Ready::All).unwrap();
        convert_well(&stage);
        assert_eq!(published(&stage).len(), 7);
    }
}
