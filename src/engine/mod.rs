//! engine: open, recover, publish, fetch, retire, reclaim, claim, lease.
