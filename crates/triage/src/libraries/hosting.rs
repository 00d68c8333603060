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

/// Methods that wait for the end of the host at their first await, and stop it then (8.0 to 11.0).
const END_OF_HOST: [&str; 2] = [
    "Microsoft.Extensions.Hosting.HostingAbstractionsHostExtensions.WaitForShutdownAsync",
    "Microsoft.AspNetCore.Hosting.WebHostExtensions.WaitForTokenShutdownAsync",
];
/// Whether a method that stands at an await waits for the end of the host, as the main method of a server does.
pub(crate) fn is_end_of_host(method: &str, await_index: Option<i32>) -> bool {
    await_index == Some(0) && END_OF_HOST.iter().any(|m| method.starts_with(m))
}

/// Where the host runs a background service.
pub(crate) const BACKGROUND: &str =
    "Microsoft.Extensions.Hosting.Internal.Host.TryExecuteBackgroundServiceAsync";
/// The class that background services derive from.
pub(crate) const BACKGROUND_SERVICE: &str = "Microsoft.Extensions.Hosting.BackgroundService";
