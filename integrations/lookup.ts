/**
 * Resolves the host name of a receiver by DNS queries. The system's resolver blocks one of the process's few threads
 * per name, so a name whose servers never answer would delay all others.
 */
import dns, { promises } from 'node:dns';
import type { LookupFunction } from 'node:net';

export type NameServers = { readonly servers?: readonly string[]; readonly timeout_ms?: number };

const TIMEOUT_MS = 2_000;
const TRIES = 2;

export function createResolverLookup({ servers, timeout_ms = TIMEOUT_MS }: NameServers = {}): LookupFunction {
  const resolver = new promises.Resolver({ timeout: timeout_ms, tries: TRIES });
  if (servers) resolver.setServers(servers);
  return (hostname, options, callback) => {
    // No DNS server resolves `localhost`.
    if (hostname === 'localhost') return dns.lookup(hostname, options, callback);
    resolveAddresses(resolver, hostname).then(
      (addresses) => {
        const [first] = addresses;
        if (options.all) callback(null, addresses);
        else callback(null, first!.address, first!.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, ''),
    );
  };
}

/** Returns at least one address: the resolver throws for a name without any. */
async function resolveAddresses(resolver: promises.Resolver, hostname: string): Promise<dns.LookupAddress[]> {
  const [four, six] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  if (four.status === 'rejected' && six.status === 'rejected') throw four.reason;
  return [
    ...(four.status === 'fulfilled' ? four.value.map((address) => ({ address, family: 4 })) : []),
    ...(six.status === 'fulfilled' ? six.value.map((address) => ({ address, family: 6 })) : []),
  ];
}
