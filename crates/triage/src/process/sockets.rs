//! Sockets: whom they talk to.

use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Characters of a path or name that are shown.
const MAX_NAME: usize = 200;

/// The remote end of a socket, else the local one of a listener.
pub(crate) fn endpoint(rt: &Runtime<'_>, socket: Addr, listens: bool) -> Option<String> {
    // what a listener asked for has port 0 where the system was to choose one
    let fields = if listens {
        ["_localEndPoint", "_rightEndPoint"]
    } else {
        ["_remoteEndPoint", "_rightEndPoint"]
    };
    fields
        .iter()
        .filter_map(|f| rt.reference(socket, f))
        .find_map(|e| endpoint_text(rt, e))
}

/// An `EndPoint` in words.
pub(crate) fn endpoint_text(rt: &Runtime<'_>, endpoint: Addr) -> Option<String> {
    let port = rt.field_i32(endpoint, "_port");
    if let Some(address) = rt.reference(endpoint, "_address") {
        let port = port.and_then(|p| u16::try_from(p).ok())?;
        return Some(SocketAddr::new(ip(rt, address)?, port).to_string());
    }
    let name = rt
        .field_text(endpoint, "_host")
        .or_else(|| rt.field_text(endpoint, "_path"))?;
    let name: String = name.chars().take(MAX_NAME).collect();
    Some(match port {
        Some(port) => format!("{name}:{port}"),
        None => name,
    })
}

/// IPAddress: version 4 as a number in network order, version 6 as eight numbers in the machine's order (8.0 to 11.0).
fn ip(rt: &Runtime<'_>, address: Addr) -> Option<IpAddr> {
    let Some(numbers) = rt.reference(address, "_numbers") else {
        let word = rt.field_u32(address, "_addressOrScopeId")?;
        return Some(IpAddr::V4(Ipv4Addr::from(word.to_le_bytes())));
    };
    let (start, stride, len) = rt.vector(numbers).filter(|(_, s, n)| (*s, *n) == (2, 8))?;
    let mut segments = [0_u16; 8];
    for (i, segment) in (0..len).zip(&mut segments) {
        *segment = rt.memory().u16(start.element(i, stride))?;
    }
    let address = Ipv6Addr::from(segments);
    // dual-mode sockets write version 4 addresses as version 6
    Some(
        address
            .to_ipv4_mapped()
            .map_or(IpAddr::V6(address), IpAddr::V4),
    )
}
