//! recording: streams of typed state.
