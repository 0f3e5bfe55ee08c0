//! Names, snapshots of them and hand-offs: is what stands under a name what was published, all of it or
//! nothing, whatever happens on the way?

mod publish;
mod release;
mod support;
