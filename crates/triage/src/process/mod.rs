//! Single facts of the process, each from its own objects: names, clock, addresses, contexts, values.

pub(crate) mod clock;
pub(crate) mod context;
pub(crate) mod dump;
pub(crate) mod identity;
pub(crate) mod names;
pub(crate) mod private;
pub(crate) mod sockets;
pub(crate) mod values;

pub(crate) use clock::Clock;
