/** HTTP server of a provider's fake. A request can be disturbed or held; it is chosen by method and path. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Barrier = { at: RegExp; passed: Promise<void>; arrived: () => void };

export abstract class FakeServer<Disturbance> {
  /** Method and path of each request that arrived. */
  readonly requests: string[] = [];
  /** `Retry-After` of an answer to too many requests; null sends none. */
  retry_after_seconds: number | null = 2;
  /** Whether the credentials are refused. */
  is_revoked = false;
  /** Whether a gateway answers each request in place of the provider. */
  is_away = false;
  readonly #disturbances: { at: RegExp; what: Disturbance }[] = [];
  readonly #barriers: Barrier[] = [];
  readonly #server = createServer((request, response) => {
    if (!this.is_away) return void this.serve(request, response);
    this.requests.push(`${request.method} ${request.url}`);
    response.writeHead(503, { 'content-type': 'text/html' }).end('<h1>Away</h1>');
  });

  protected abstract serve(request: IncomingMessage, response: ServerResponse): Promise<void>;

  async start(): Promise<this> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return this;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  get url(): URL {
    return new URL(`http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`);
  }

  /** Disturbs the next request that matches `at`, a pattern of method and path such as `POST invoices`. */
  disturb(at: RegExp, what: Disturbance): void {
    this.#disturbances.push({ at, what });
  }

  clearDisturbances(): void {
    this.#disturbances.length = 0;
  }

  /** Delays the next matching request until it is released. */
  hold(at: RegExp): { arrived: Promise<void>; release: () => void } {
    let release = () => {};
    let arrived = () => {};
    const passed = new Promise<void>((resolve) => (release = resolve));
    const arrival = new Promise<void>((resolve) => (arrived = resolve));
    this.#barriers.push({ at, passed, arrived });
    return { arrived: arrival, release };
  }

  protected get retryHeaders(): Record<string, string> {
    return this.retry_after_seconds === null ? {} : { 'retry-after': String(this.retry_after_seconds) };
  }

  protected takeDisturbance(name: string): Disturbance | null {
    const index = this.#disturbances.findIndex(({ at }) => at.test(name));
    return index === -1 ? null : this.#disturbances.splice(index, 1)[0]!.what;
  }

  protected async passBarrier(name: string): Promise<void> {
    const index = this.#barriers.findIndex(({ at }) => at.test(name));
    if (index === -1) return;
    const { passed, arrived } = this.#barriers.splice(index, 1)[0]!;
    arrived();
    await passed;
  }
}

export async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

/**
 * Breaks the connection in the middle of the answer: after an incomplete answer a client does not repeat the request by
 * itself.
 */
export function breakAnswer(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 });
  response.write('{', () => response.destroy());
}
