/**
 * How the name of a receiver is resolved: by queries of our own, which wait on the network. The system's resolver holds one of
 * the process's few threads for each name, and a name whose servers never answer would hold up those of everybody.
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
    // No server is asked for it.
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

/** There is at least one: a name without any is an error of the resolver. */
async function resolveAddresses(resolver: promises.Resolver, hostname: string): Promise<dns.LookupAddress[]> {
  const [four, six] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  if (four.status === 'rejected' && six.status === 'rejected') throw four.reason;
  return [
    ...(four.status === 'fulfilled' ? four.value.map((address) => ({ address, family: 4 })) : []),
    ...(six.status === 'fulfilled' ? six.value.map((address) => ({ address, family: 6 })) : []),
  ];
}
