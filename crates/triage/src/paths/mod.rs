//! Paths through the graph, frame by frame: names, awaits, variables, what frames keep alive, how sure it all is.

mod analysis;
mod below;
mod ceiling;
mod dispatchers;
mod doing;
mod locals;
mod path;
mod retained;
mod shapes;
mod steps;
pub(crate) mod timers;
mod users;

pub use analysis::Analysis;
pub use dispatchers::{Dispatcher, DispatcherFamily, DispatcherFrame};
pub(crate) use doing::Doing;
pub(crate) use path::{Path, Paths};
pub(crate) use shapes::{Folded, Shape, Traits};
pub(crate) use steps::{Place, Step, is_least_await, step_offset, steps_of};
pub(crate) use users::{Users, semaphores};
