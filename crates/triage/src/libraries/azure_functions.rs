//! Azure Functions, in a worker process of their own.

use super::Service;
use asynctriage_report::RootKind;

pub(super) const FUNCTION: Service = Service {
    frame: "Microsoft.Azure.Functions.Worker.FunctionsApplication.InvokeFunctionAsync",
    kind: RootKind::Job,
    what: "Azure function",
    holder: "Microsoft.Azure.Functions.Worker.DefaultFunctionContext",
    name: &[
        "<FunctionDefinition>k__BackingField",
        "<Name>k__BackingField",
    ],
};
