//! Which program the process ran, and where: from what the kernel put on the first stack (Linux), or the process's
//! environment block (Windows), and from the metadata of the program's assembly.
//!
//! Of the environment only names of machines and containers are taken, and of the arguments only the assembly: the rest is the
//! process's own business.

use asynctriage_clr::{Module, Runtime};
use asynctriage_dump::{Addr, Os};
use asynctriage_metadata::{AttributeArg, Table, Token};
use asynctriage_report::Process;

/// Keys of the auxiliary vector: the text behind which the arguments stand, and the program's file, which stands last.
const AT_PLATFORM: u64 = 15;
const AT_EXECFN: u64 = 31;
/// Bytes of arguments and environment that are looked at.
const MAX_BLOCK: u64 = 256 << 10;
/// Longest name that is believed.
const MAX_NAME: usize = 255;
const MAX_PATH: u64 = 4096;
/// Offsets in Windows' own structures, the same since Windows 7 on 64 bits: TEB.ProcessEnvironmentBlock,
/// PEB.ProcessParameters, and there ImagePathName, CommandLine and Environment with its size.
const TEB_PEB: u64 = 0x60;
const PEB_PARAMETERS: u64 = 0x20;
const PARAMETERS_IMAGE: u64 = 0x60;
const PARAMETERS_LINE: u64 = 0x70;
const PARAMETERS_ENVIRONMENT: u64 = 0x80;
const PARAMETERS_ENVIRONMENT_SIZE: u64 = 0x3F0;

/// What the process was started as.
#[derive(Debug, Default)]
struct Start {
    executable: Option<String>,
    arguments: Vec<String>,
    environment: Vec<String>,
}

/// What is known of the program and its place.
pub(crate) fn read(rt: &Runtime<'_>) -> Process {
    let start = match rt.dump().target.os {
        Os::Linux => linux(rt),
        Os::Windows => windows(rt),
    }
    .unwrap_or_default();
    let executable = start.executable.as_deref().and_then(file_name);
    let modules = rt.modules_seen();
    let named = entry_name(executable.as_deref(), &start.arguments);
    let entry = named.as_ref().and_then(|name| {
        let of_name = |m: &&std::sync::Arc<Module<'_>>| m.name.eq_ignore_ascii_case(name);
        modules.iter().find(of_name)
    });
    let variable = |name: &str| {
        let mut all = start.environment.iter();
        let value = all.find_map(|v| v.strip_prefix(name)?.strip_prefix('='))?;
        believable(value)
    };
    let machine = variable("HOSTNAME").or_else(|| variable("COMPUTERNAME"));
    let contained = variable("KUBERNETES_SERVICE_HOST").is_some()
        || variable("DOTNET_RUNNING_IN_CONTAINER").is_some_and(|v| v == "true" || v == "1");
    Process {
        executable,
        entry_version: entry.and_then(|m| version(m)),
        entry_assembly: entry.map(|m| m.name.clone()).or(named),
        container: machine.clone().filter(|_| contained),
        machine,
    }
}

/// The kernel puts the arguments, the environment and the program's file one behind the other at the top of the first stack.
fn linux(rt: &Runtime<'_>) -> Option<Start> {
    let process = &rt.dump().process;
    let last = process.auxiliary(AT_EXECFN)?;
    let platform = process.auxiliary(AT_PLATFORM)?;
    let length = last.checked_sub(platform).filter(|n| *n <= MAX_BLOCK)?;
    let block = rt.memory().bytes(Addr(platform), length, MAX_BLOCK)?;
    let texts = |bytes: &[u8]| -> Vec<String> {
        let parts = bytes.split(|b| *b == 0).filter(|p| !p.is_empty());
        parts
            .map(|p| String::from_utf8_lossy(p).into_owned())
            .collect()
    };
    let all = texts(&block);
    // the first is the platform; who passes an argument like a variable is believed to mean one
    let (arguments, environment): (Vec<String>, Vec<String>) =
        all.into_iter().skip(1).partition(|t| !is_variable(t));
    Some(Start {
        executable: rt.memory().c_str(Addr(last), MAX_PATH),
        arguments,
        environment,
    })
}

fn windows(rt: &Runtime<'_>) -> Option<Start> {
    let m = rt.memory();
    let teb = rt.dump().threads.iter().find_map(|t| t.teb)?;
    let parameters = m.ptr(m.ptr(teb + TEB_PEB)? + PEB_PARAMETERS)?.non_null()?;
    let wide = |bytes: &[u8]| {
        let units = bytes.as_chunks::<2>().0.iter().copied();
        String::from_utf16_lossy(&units.map(u16::from_le_bytes).collect::<Vec<_>>())
    };
    let counted = |offset: u64| {
        let length = m.u32(parameters + offset)? & 0xffff;
        let at = m.ptr(parameters + offset + 8)?;
        Some(wide(&m.bytes(at, length.into(), MAX_BLOCK)?))
    };
    let line = counted(PARAMETERS_LINE).unwrap_or_default();
    let arguments = line.split([' ', '"']).filter(|a| !a.is_empty());
    let environment = || {
        let size = m.u64(parameters + PARAMETERS_ENVIRONMENT_SIZE)?;
        let at = m.ptr(parameters + PARAMETERS_ENVIRONMENT)?;
        Some(wide(&m.bytes(at, size.min(MAX_BLOCK), MAX_BLOCK)?))
    };
    let variables = environment().unwrap_or_default();
    Some(Start {
        executable: counted(PARAMETERS_IMAGE),
        arguments: arguments.map(str::to_owned).collect(),
        environment: variables.split('\0').map(str::to_owned).collect(),
    })
}

fn is_variable(text: &str) -> bool {
    let name = text.split('=').next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    text.contains('=') && !name.is_empty() && name.chars().all(is_name)
}

/// The last part of a path of either system.
fn file_name(path: &str) -> Option<String> {
    let name = path.rsplit(['/', '\\']).next()?;
    believable(name)
}

/// Whether a text may be a name at all.
fn believable(text: &str) -> Option<String> {
    let is_name = !text.is_empty() && text.len() <= MAX_NAME && !text.contains(char::is_control);
    is_name.then(|| text.to_owned())
}

/// The assembly that the process was started with: the first argument that is one, else that of the program's own host.
fn entry_name(executable: Option<&str>, arguments: &[String]) -> Option<String> {
    let stem = |name: &str, extension: &str| {
        let at = name.len().checked_sub(extension.len())?;
        let is_one = name.get(at..)?.eq_ignore_ascii_case(extension);
        name.get(..at)
            .filter(|s| is_one && !s.is_empty())
            .map(str::to_owned)
    };
    let host = executable.map(|e| stem(e, ".exe").unwrap_or_else(|| e.to_owned()))?;
    if host != "dotnet" {
        return Some(host);
    }
    arguments.iter().find_map(|a| stem(&file_name(a)?, ".dll"))
}

/// The informational version that the build wrote, else the assembly's.
fn version(module: &Module<'_>) -> Option<String> {
    let metadata = module.metadata.as_ref()?;
    let assembly = Token::new(Table::Assembly, 1);
    let informational = metadata
        .custom_attributes(assembly)
        .find(|a| a.type_name == "System.Reflection.AssemblyInformationalVersionAttribute")
        .and_then(|a| metadata.attribute_args(&a))
        .and_then(|args| match args.into_iter().next()? {
            AttributeArg::String(text) => believable(&text?),
            AttributeArg::Int(_) => None,
        });
    informational.or_else(|| {
        let v = metadata.assembly_version()?;
        Some(format!(
            "{}.{}.{}.{}",
            v.major, v.minor, v.build, v.revision
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_told_from_its_host_and_its_arguments() {
        let args = |all: &[&str]| -> Vec<String> { all.iter().map(|a| (*a).to_owned()).collect() };
        let entry = |host: &str, all: &[&str]| entry_name(Some(host), &args(all));
        let shop = Some("Shop".to_owned());
        assert_eq!(
            entry("dotnet", &["dotnet", "exec", "/app/Shop.dll", "x.dll"]),
            shop
        );
        assert_eq!(entry("Shop.exe", &[]), shop);
        assert_eq!(entry("Shop", &["/other/Plugin.dll"]), shop);
        assert_eq!(entry("dotnet", &["dotnet", "build"]), None);
        assert_eq!(entry_name(None, &args(&["a.dll"])), None);
    }

    #[test]
    fn arguments_and_variables_are_told_apart() {
        assert!(is_variable("HOSTNAME=shop-7d9f"));
        assert!(!is_variable("--urls=http://localhost"));
        assert!(!is_variable("progress"));
        assert_eq!(file_name(r"C:\app\Shop.exe").as_deref(), Some("Shop.exe"));
        assert_eq!(file_name("/app/"), None);
    }
}
