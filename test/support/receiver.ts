/** A receiver of webhooks. It checks each signature with the published library, and answers as the test sets. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';

type Received = {
  readonly id: string;
  readonly path: string;
  readonly body: { event_type: string; [record: string]: unknown };
  readonly headers: Record<string, string>;
  readonly status: number;
};

export type Receiver = {
  readonly url: string;
  /** All requests in order of arrival, with their answers. */
  readonly received: Received[];
  /** Ids of the accepted events. */
  taken(path?: string): string[];
  /** Sets the secrets that must sign a body at this path; each signature is checked. */
  expectSignedBy(path: string, ...secrets: string[]): void;
  answerWith(answer: Answer): void;
  stop(): Promise<void>;
};

/** A status, or a function that handles the request. If it returns nothing, the sender waits. */
type Answer = (received: Omit<Received, 'status'>, response: ServerResponse) => number | undefined;

export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  const secrets = new Map<string, string[]>();
  let answer: Answer = () => 200;
  const server = createServer((request, response) => void receive(request, response));

  async function receive(request: IncomingMessage, response: ServerResponse) {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString('utf8');
    const headers = request.headers as Record<string, string>;
    const path = request.url!;
    // A body without the expected signatures is refused, as a real receiver would do.
    const isSigned = (secrets.get(path) ?? []).every((secret) => verifies(secret, text, headers));
    const come = { id: headers['webhook-id']!, path, body: JSON.parse(text), headers };
    const status = isSigned ? answer(come, response) : 401;
    received.push({ ...come, status: status ?? 0 });
    if (status !== undefined) response.writeHead(status).end(`answered ${status}`);
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    taken: (path) =>
      received
        .filter((one) => one.status >= 200 && one.status < 300 && (!path || one.path === path))
        .map(({ id }) => id),
    expectSignedBy: (path, ...by) => void secrets.set(path, by),
    answerWith: (how) => {
      answer = how;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function verifies(secret: string, text: string, headers: Record<string, string>): boolean {
  try {
    new Webhook(secret).verify(text, headers);
    return true;
  } catch {
    return false;
  }
}
