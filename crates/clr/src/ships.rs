//! Which modules come with .NET rather than with the program.

/// Folders below `shared` that an installed .NET consists of.
const FRAMEWORKS: [&str; 3] = [
    "Microsoft.NETCore.App",
    "Microsoft.AspNetCore.App",
    "Microsoft.WindowsDesktop.App",
];
/// Names of .NET's own assemblies, and how more of them begin. Others sign with the same keys, and others use names like
/// these: outside of an installed .NET it takes both.
const NAMES: [&str; 4] = ["System", "mscorlib", "netstandard", "WindowsBase"];
const PREFIXES: [&str; 11] = [
    "System.",
    "Microsoft.AspNetCore",
    "Microsoft.Extensions",
    "Microsoft.Win32",
    "Microsoft.CSharp",
    "Microsoft.VisualBasic",
    "Microsoft.Bcl.",
    "Microsoft.JSInterop",
    "Microsoft.Net.Http.Headers",
    "Presentation",
    "UIAutomation",
];
/// The public key of ECMA's own libraries stands for the platform's, whatever that is (token b77a5c561934e089).
const NEUTRAL: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0];
/// Where the modulus begins in other public keys: behind the algorithms, the size and the head of an RSA key.
const MODULUS: usize = 32;
/// How the moduli begin of the keys that .NET 8.0 to 11.0 is signed with.
const MODULI: [[u8; 8]; 5] = [
    // 7cec85d7bea7798e: System.Private.CoreLib
    [0x8d, 0x56, 0xc7, 0x6f, 0x9e, 0x86, 0x49, 0x38],
    // b03f5f7f11d50a3a
    [0x07, 0xd1, 0xfa, 0x57, 0xc4, 0xae, 0xd9, 0xf0],
    // cc7b13ffcd2ddd51
    [0x4b, 0x86, 0xc4, 0xcb, 0x78, 0x54, 0x9b, 0x34],
    // adb9793829ddae60: ASP.NET Core and the extensions
    [0xf3, 0x3a, 0x29, 0x04, 0x4f, 0xa9, 0xd7, 0x40],
    // 31bf3856ad364e35: the desktop, and what is older
    [0xb5, 0xfc, 0x90, 0xe7, 0x02, 0x7f, 0x67, 0x87],
];

/// Whether an assembly comes with .NET or ASP.NET Core rather than with the program: it lies in the folder of an installed
/// .NET, or, as programs may bring .NET along, has one of its names and is signed with one of its keys. Where nothing is
/// known of the key the name alone has to do.
#[must_use]
pub fn ships_with_dotnet(path: Option<&str>, name: &str, public_key: Option<&[u8]>) -> bool {
    path.is_some_and(is_installed) || has_name(name) && public_key.is_none_or(is_key)
}

/// `.../shared/Microsoft.NETCore.App/10.0.15/System.Linq.dll`, of any system.
fn is_installed(path: &str) -> bool {
    let mut parts = path.rsplit(['/', '\\']).skip(2);
    let framework = parts.next().unwrap_or_default();
    FRAMEWORKS.contains(&framework) && parts.next() == Some("shared")
}

fn has_name(name: &str) -> bool {
    NAMES.contains(&name) || PREFIXES.iter().any(|p| name.starts_with(p))
}

fn is_key(key: &[u8]) -> bool {
    let modulus = || key.get(MODULUS..)?.first_chunk();
    key == NEUTRAL || modulus().is_some_and(|m| MODULI.contains(m))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(modulus: [u8; 8]) -> Vec<u8> {
        let mut key = vec![0; MODULUS];
        key.extend(modulus);
        key.resize(160, 0);
        key
    }

    #[test]
    fn what_lies_in_an_installed_dotnet_belongs_to_it() {
        let installed = |path| ships_with_dotnet(Some(path), "", None);
        assert!(installed(
            "/usr/share/dotnet/shared/Microsoft.NETCore.App/10.0.15/x.dll"
        ));
        assert!(installed(
            r"C:\Program Files\dotnet\shared\Microsoft.AspNetCore.App\8.0.33\x.dll"
        ));
        assert!(!installed("/app/shared/Contoso.App/1.0/x.dll"));
        assert!(!installed("/app/Microsoft.NETCore.App/1.0/x.dll"));
        assert!(!installed("x.dll"));
    }

    #[test]
    fn elsewhere_it_takes_a_name_and_a_key() {
        let ships = |name, key: Option<&[u8]>| ships_with_dotnet(Some("/app/x.dll"), name, key);
        let (dotnet, other) = (key(MODULI[1]), key([7; 8]));
        assert!(ships("System.Private.CoreLib", Some(&dotnet)));
        assert!(ships("System.Xml", Some(&NEUTRAL)));
        assert!(ships("Microsoft.AspNetCore.Server.Kestrel.Core", None));
        assert!(!ships("System.Contoso", Some(&other)), "another's key");
        assert!(!ships("Microsoft.Extensions.Contoso", Some(&[])), "no key");
        assert!(!ships("Microsoft.Data.SqlClient", Some(&dotnet)));
        assert!(!ships("Microsoft.Contoso", None) && !ships("SystemTextTools", None));
    }
}
