//! The generic host: background services, its start and its end.

use super::Service;
use asynctriage_report::RootKind;

pub(super) const STOP: Service = Service {
    frame: "Microsoft.Extensions.Hosting.Internal.Host.StopAsync",
    kind: RootKind::HostedService,
    what: "shutdown of the host",
    holder: "",
    name: &[],
};
pub(super) const START: Service = Service {
    frame: "Microsoft.Extensions.Hosting.Internal.Host.StartAsync",
    kind: RootKind::HostedService,
    what: "start of the host",
    holder: "",
    name: &[],
};

/// Where the host runs a background service.
pub(crate) const BACKGROUND: &str =
    "Microsoft.Extensions.Hosting.Internal.Host.TryExecuteBackgroundServiceAsync";
/// The class that background services derive from.
pub(crate) const BACKGROUND_SERVICE: &str = "Microsoft.Extensions.Hosting.BackgroundService";
