//! Plans and forks of a recording that another process is writing at that moment.

use std::sync::atomic::{AtomicBool, Ordering};

use sealstone::recording::ResumeFrom;

use crate::resuming::{Sim, draft, iterations, shared, sim, whole};

/// Is a recording that is written and checkpointed on and on healthy to whoever looks at it and forks it
/// meanwhile: no damage, no checkpoint passed over, no conflict, and each fork whole?
#[test]
fn rec41_a_recording_is_planned_and_forked_while_it_moves_on() {
    let disk = sim(541);
    let one = shared(&disk);
    let two = shared(&disk.process(2));
    let recorder = draft(&one, "run").start().unwrap();
    recorder.observe(&Sim::first()).unwrap();
    recorder.checkpoint(&Sim::first()).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut state = Sim::first();
            while !is_over.load(Ordering::Relaxed) {
                state = state.next();
                recorder.observe(&state).unwrap();
                recorder.checkpoint(&state).unwrap();
            }
            state.iteration
        });
        // Whatever is wrong, the writer ends.
        let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for at in 0..40 {
                let plan = two.resume("run").plan().unwrap();
                assert!(plan.passed_over.is_empty(), "{plan}");
                if at % 8 == 0 {
                    let name = format!("fork {at}");
                    let made = two.fork("run", ResumeFrom::LatestCheckpoint, &name).unwrap();
                    assert!(made.checkpoint.is_some() && made.passed_over.is_empty(), "{made:?}");
                    let last = made.iteration.unwrap();
                    assert_eq!(iterations(&two, &name), whole(last + 1));
                }
            }
        }));
        is_over.store(true, Ordering::Relaxed);
        assert!(writer.join().unwrap() > 0);
        looked.unwrap();
    });
}
