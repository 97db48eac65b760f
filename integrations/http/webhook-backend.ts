/**
 * The built-in webhook backend: a POST with the headers of Standard Webhooks. It takes at most ten seconds and follows
 * no redirect. It refuses private addresses at the connection, because a name may resolve differently by then.
 */
import http from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { createGuardedAgent, isRefusal } from '../guarded-agent.ts';
import { createResolverLookup, type NameServers } from '../lookup.ts';
import type { SendOutcome, WebhookBackend, WebhookMessage, WebhookTarget } from '../webhook-backend.ts';

type HttpBackendOptions = {
  readonly allow_private_addresses: boolean;
  readonly timeout_ms?: number;
  readonly name_servers?: NameServers;
};

const TIMEOUT_MS = 10_000;
/** Maximum bytes of an answer that are read and stored; the rest is not awaited. */
const ANSWER_BYTES_MAX = 4_096;

export function createHttpBackend(options: HttpBackendOptions): WebhookBackend {
  // Private addresses are allowed in test setups, whose hosts file names some of them, so the system's resolver is
  // used.
  const lookup = options.allow_private_addresses ? undefined : createResolverLookup(options.name_servers);
  return {
    has_targets: true,
    async send(message, target) {
      if (target === null) throw new Error('a webhook of our own needs an endpoint');
      const begun = performance.now();
      const answer = await post(message, target, { ...options, lookup });
      return { url: target.url, ...answer, duration_ms: Math.round(performance.now() - begun) };
    },
  };
}

type HttpSendResult = Pick<SendOutcome, 'http_status' | 'response_body' | 'error' | 'detail'>;

async function post(
  { id, body }: WebhookMessage,
  target: WebhookTarget,
  {
    allow_private_addresses,
    timeout_ms = TIMEOUT_MS,
    lookup,
  }: HttpBackendOptions & { lookup: LookupFunction | undefined },
): Promise<HttpSendResult> {
  try {
    const signal = AbortSignal.timeout(timeout_ms);
    const { href: url, protocol } = new URL(target.url);
    const request = (protocol === 'https:' ? https : http).request(url, {
      method: 'POST',
      agent: allow_private_addresses ? false : createGuardedAgent(protocol, { lookup }),
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': 'Farthing-Webhooks',
        ...signMessage(id, body, target.secrets),
      },
      signal,
    });
    const response = await sendRequest(request, { body, signal });
    const response_body = await readBeginning(response);
    const http_status = response.statusCode!;
    const isTaken = http_status >= 200 && http_status < 300;
    return { http_status, response_body, error: isTaken ? null : `answered ${http_status}` };
  } catch (error) {
    return { http_status: null, response_body: null, ...describeError(error, timeout_ms) };
  }
}

/**
 * Signs with the machine's time, because the receiver compares it with its own clock. While a secret is being replaced,
 * both secrets sign.
 */
function signMessage(id: string, body: string, secrets: readonly string[]) {
  const now = new Date();
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
    'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(id, now, body)).join(' '),
  };
}

/** Sends the request. `close` also fails it, because e.g. after `101 Switching Protocols` neither `response` nor `error` is emitted. */
function sendRequest(
  request: http.ClientRequest,
  { body, signal }: { body: string; signal: AbortSignal },
): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.on('response', resolve);
    request.on('error', reject);
    request.on('close', () => reject(new Error('the connection was closed without an answer')));
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    request.end(body);
  });
}

async function readBeginning(response: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes >= ANSWER_BYTES_MAX) break;
    }
  } catch {
    // The status is already known; the rest of the body does not matter.
  } finally {
    response.destroy();
  }
  // A Postgres text cannot contain NUL.
  return Buffer.concat(chunks).subarray(0, ANSWER_BYTES_MAX).toString('utf8').replaceAll('\0', '\uFFFD');
}

/**
 * Describes a failed delivery: `error` for the tenant, `detail` for the operator only, because the tenant must not learn how this network
 * resolves a name.
 */
function describeError(error: unknown, timeout_ms: number): Pick<SendOutcome, 'error' | 'detail'> {
  if (!(error instanceof Error)) return { error: String(error) };
  if (error.name === 'TimeoutError' || error.name === 'AbortError')
    return { error: `no answer within ${timeout_ms} ms` };
  const reason = error.message || ('code' in error ? String(error.code) : error.name);
  return isAddressError(error)
    ? { error: 'the address is private or cannot be resolved', detail: reason }
    : { error: reason };
}

/** Whether the error is one of the resolver, or a refusal by the agent, which has no code. */
function isAddressError(error: Error & { syscall?: unknown }): boolean {
  return /^(getaddrinfo|query)/.test(String(error.syscall)) || isRefusal(error);
}
