//! Names, snapshots of them and hand-offs: is what stands under a name what was published, all of it or
//! nothing, whatever happens on the way?

mod cuts;
mod faults;
mod handoffs;
mod prepared;
mod publish;
mod release;
mod shared;
mod snapshots;
mod support;
