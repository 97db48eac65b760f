/**
 * Addresses that hosts given by tenants must not reach. They are outside the public internet (RFC 6890 and the special-purpose registries
 * of IANA), or embed an IPv4 address that may be outside it.
 */
const SPECIAL = [
  // IPv4: this network, private, carrier-grade NAT, loopback, link-local.
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.168.0.0/16',
  // IPv4: protocol assignments, documentation, relays and sinks, benchmarks, multicast, reserved.
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // IPv6: unspecified, loopback and IPv4-compatible; IPv4-mapped and IPv4-translated (NAT64 and 6to4 among them).
  '::/96',
  '::ffff:0:0/96',
  '::ffff:0:0:0/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '2002::/16',
  // IPv6: sinks, protocols (including Teredo and benchmarks), documentation, segment routing.
  '100::/64',
  '2001::/23',
  '2001:db8::/32',
  '2620:4f:8000::/48',
  '3fff::/20',
  '5f00::/16',
  // IPv6: unique local, link-local, site-local, multicast.
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
] as const;

type NetworkAddress = { readonly bits: 32 | 128; readonly value: bigint };

/**
 * Whether the text is a special address outside `allowed`; false for a host name. IPv6 addresses come without brackets,
 * in any spelling of a URL or resolver.
 */
export function isSpecialAddress(text: string, allowed: readonly string[] = []): boolean {
  const address = parseAddress(text);
  const isIn = (ranges: readonly string[]) => ranges.some((range) => isWithin(range, address!));
  return address !== null && isIn(SPECIAL) && !isIn(allowed);
}

/** Whether an address is within a range. A range without a length is one address. */
function isWithin(range: string, address: NetworkAddress): boolean {
  const [text = '', length] = range.split('/');
  const first = parseAddress(text);
  if (first === null || first.bits !== address.bits) return false;
  const rest = BigInt(first.bits - Number(length ?? first.bits));
  return address.value >> rest === first.value >> rest;
}

/** Parses an address; null if the text is a host name. */
function parseAddress(text: string): NetworkAddress | null {
  const [plain = ''] = text.split('%');
  if (/^\d+(\.\d+){3}$/.test(plain)) return { bits: 32, value: joinGroups(plain.split('.').map(Number), 8n) };
  return plain.includes(':') ? { bits: 128, value: joinGroups(parseGroups(plain), 16n) } : null;
}

function joinGroups(parts: readonly number[], bits: bigint): bigint {
  return parts.reduce((sum, part) => (sum << bits) | BigInt(part), 0n);
}

/** The eight groups. `::` replaces the missing groups, and the last two may be an IPv4 address. */
function parseGroups(text: string): number[] {
  const [before = [], after] = text.split('::').map((side) => side.split(':').flatMap(parseGroup));
  if (after === undefined) return before;
  const missing = Math.max(0, 8 - before.length - after.length);
  return [...before, ...Array.from({ length: missing }, () => 0), ...after];
}

function parseGroup(part: string): number[] {
  if (part === '') return [];
  if (!part.includes('.')) return [Number.parseInt(part, 16) || 0];
  const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number);
  return [a * 256 + b, c * 256 + d];
}

/**
 * Whether the host of a URL is a special address or `localhost`. Any other name is checked when its address is known,
 * at the connection.
 */
export function isSpecialHost(hostname: string): boolean {
  const plain = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  return isSpecialAddress(plain) || /(?:^|\.)localhost$/i.test(plain);
}
