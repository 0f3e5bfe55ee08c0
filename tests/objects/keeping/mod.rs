//! Does what goes, go whole, once, in one transaction, and is it told why?

mod bounded;
mod cost;
mod cuts;
mod life;
mod owned;
mod reclaiming;
mod retiring;
mod scrubbing;
mod stubborn;
mod support;
