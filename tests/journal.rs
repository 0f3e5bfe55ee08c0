//! Is what the journal acknowledged there after a crash, and is damage ever taken for a tear?
#![cfg(feature = "sim")]

mod journal {
    mod commit;
    mod crash;
    mod faults;
    mod faulty;
    mod hostile;
    mod live;
    mod rig;
    mod tail;
}
