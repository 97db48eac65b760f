/** Stripe's official library with a pinned API version, our timeout and an optional other address. */
import type { Stripe } from 'stripe';
import type { AccountSettings } from '../account.ts';

/** Pins the shape of answers, whatever version the account has set. */
const API_VERSION = '2026-10-28.endive';
const TIMEOUT_MS = 30_000;

/**
 * Loads the library. The caller decides whether to repeat a request. The library itself repeats it once with the same
 * key if the connection was closed before an answer.
 */
export async function openStripeClient(
  secret_key: string,
  { address, beforeRequest }: AccountSettings,
): Promise<Stripe> {
  const { Stripe: Client } = await import('stripe');
  return new Client(secret_key, {
    apiVersion: API_VERSION,
    maxNetworkRetries: 0,
    timeout: TIMEOUT_MS,
    telemetry: false,
    ...(beforeRequest ? { httpClient: delayRequests(Client.createNodeHttpClient(), beforeRequest) } : {}),
    ...(address === null ? {} : toHost(address)),
  });
}

function delayRequests(client: Stripe.HttpClient, beforeRequest: () => Promise<void>): Stripe.HttpClient {
  const send = client.makeRequest.bind(client);
  client.makeRequest = async (...request) => {
    await beforeRequest();
    return send(...request);
  };
  return client;
}

function toHost({ protocol, hostname, port }: URL): { protocol: 'http' | 'https'; host: string; port: string } {
  const isPlain = protocol === 'http:';
  return { protocol: isPlain ? 'http' : 'https', host: hostname, port: port || (isPlain ? '80' : '443') };
}
