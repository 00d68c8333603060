//! Tests of whole dumps, made by the small writer in `testkit`.

mod cores;
mod hostile;
mod kinds;
mod minidumps;
mod mock;
mod piped;
mod refusals;
mod trimming;
mod under;
