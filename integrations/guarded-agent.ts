/**
 * An agent that connects to no special address (core/network/special-addresses.ts): the address itself is looked at when the connection is made, because
 * a name may lead elsewhere by then. The library knows most of them; what it does not know is refused here in its words.
 */
import { lookup as systemLookup } from 'node:dns';
import type { Agent as HttpAgent } from 'node:http';
import type { Agent as HttpsAgent } from 'node:https';
import { type LookupFunction, Socket, type TcpNetConnectOpts } from 'node:net';
import type { Duplex } from 'node:stream';
import { RequestFilteringHttpAgent, RequestFilteringHttpsAgent } from 'request-filtering-agent';
import { isSpecialAddress } from '../core/network/special-addresses.ts';

export type Guard = {
  /** How names are resolved; as the system does when absent. */
  readonly lookup?: LookupFunction | undefined;
  /** Those that are connected to all the same. */
  readonly allowed_addresses?: readonly string[];
};

/** Of `https:` or `http:`. A connection is for one request. */
export function createGuardedAgent(protocol: string, guard: Guard): HttpAgent | HttpsAgent {
  const { allowed_addresses = [] } = guard;
  const settings = { keepAlive: false, allowIPAddressList: [...allowed_addresses], lookup: createGuardedLookup(guard) };
  const agent =
    protocol === 'https:' ? new RequestFilteringHttpsAgent(settings) : new RequestFilteringHttpAgent(settings);
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = (options: TcpNetConnectOpts, listener?: ConnectionListener) =>
    rejectSpecialAddress(options, guard, listener) ?? connect(options, listener);
  return agent;
}

const REFUSAL = /^DNS lookup .* is not allowed/;

/** What the agent says of an address that it does not connect to. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Error && REFUSAL.test(error.message);
}

type ConnectionListener = (error: Error | null, socket: Duplex) => void;

/** Of an address itself nobody asks for a name. */
function rejectSpecialAddress(
  { host = '' }: TcpNetConnectOpts,
  { allowed_addresses }: Guard,
  listener?: ConnectionListener,
): Socket | null {
  if (!isSpecialAddress(host, allowed_addresses)) return null;
  const socket = new Socket();
  if (listener) listener(buildRefusal(host), socket);
  else socket.destroy(buildRefusal(host));
  return socket;
}

function createGuardedLookup({ lookup = systemLookup, allowed_addresses }: Guard): LookupFunction {
  return (hostname, options, callback) =>
    lookup(hostname, options, (error, found, family) => {
      const addresses = typeof found === 'string' ? [found] : (found ?? []).map(({ address }) => address);
      const special = error ? undefined : addresses.find((address) => isSpecialAddress(address, allowed_addresses));
      if (special === undefined) callback(error, found, family);
      else callback(buildRefusal(special), found, family);
    });
}

function buildRefusal(address: string): Error {
  return new Error(`DNS lookup ${address} is not allowed: it is a special address`);
}
