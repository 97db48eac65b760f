/**
 * HTTP agent that refuses special addresses, such as private ones (core/foundation/network/special-addresses.ts). It
 * checks the address at the connection, because a name may resolve differently by then. The library refuses most of
 * them; the rest is refused here with the library's message.
 */
import { lookup as systemLookup } from 'node:dns';
import type { Agent as HttpAgent } from 'node:http';
import type { Agent as HttpsAgent } from 'node:https';
import { type LookupFunction, Socket, type TcpNetConnectOpts } from 'node:net';
import type { Duplex } from 'node:stream';
import { RequestFilteringHttpAgent, RequestFilteringHttpsAgent } from 'request-filtering-agent';
import { isSpecialAddress } from '../core/foundation/network/special-addresses.ts';

type Guard = {
  /** Resolves names; the system's resolver if absent. */
  readonly lookup?: LookupFunction | undefined;
  /** Special addresses that are allowed. */
  readonly allowed_addresses?: readonly string[];
};

/** Creates an agent for `https:` or `http:`. A connection serves one request. */
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

/** Whether the error is the agent's refusal of an address. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Error && REFUSAL.test(error.message);
}

type ConnectionListener = (error: Error | null, socket: Duplex) => void;

/** Refuses hosts that are literal addresses, which no lookup resolves. */
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
