//! Which addresses are on the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether anybody on the internet means the same host by this address. Not so for this machine, private networks,
/// those of carriers and of single links, groups, what is reserved, and the services that clouds put beside a machine.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Networks of version 4 that are not public, by their first address and the length of their prefix.
const CLOSED_V4: [([u8; 4], u32); 16] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10), // carriers
    ([127, 0, 0, 0], 8),
    ([168, 63, 129, 16], 32), // a public address that means Azure's own host from inside
    ([169, 254, 0, 0], 16),   // single links, and what clouds tell a machine about itself
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24), // examples
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15), // measurements
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4), // groups
    ([240, 0, 0, 0], 4), // reserved, and the broadcast
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    let is_in = |(network, length): &([u8; 4], u32)| (bits ^ u32::from_be_bytes(*network)) >> (32 - length) == 0;
    !CLOSED_V4.iter().any(is_in)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let embedded = || {
        let ([g1, g2], [h1, h2]) = (g.to_be_bytes(), h.to_be_bytes());
        Ipv4Addr::new(g1, g2, h1, h2)
    };
    match (a, b, c, d, e, f) {
        // An address of version 4 in other clothes, also behind a translator, is what it is without them.
        (0, 0, 0, 0, 0, 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => is_public_v4(embedded()),
        // Of the global addresses, those that are given to protocols (Teredo among them), examples, and tunnels with an
        // address of version 4 inside.
        (0x2001, 0..0x200 | 0xdb8, ..) | (0x2002, ..) | (0x3fff, 0..0x1000, ..) => false,
        (0x2000..=0x3fff, ..) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        let public = [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "128.0.0.1",
            "168.63.129.15",
            "169.253.0.1",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.1",
            "192.167.255.255",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
        ];
        for address in public {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        let closed = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
        ];
        for address in closed {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }
}
