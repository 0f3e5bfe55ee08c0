//! Can the door to the disk be trusted: real and simulated alike, and the simulated one harsher?
#![cfg(feature = "sim")]

mod vfs {
    mod both;
    mod crash;
    mod differential;
    mod fault;
    mod model;
    mod trace;
}
