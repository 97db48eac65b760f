/**
 * A server of HTTP that answers with our error record also where no handler is reached: headers that are too large, a
 * request that does not come to its end or does not say for which host it is, bytes that are no HTTP. What is sent on one connection without waiting for the
 * answers is done in turn (docs/decisions/0021-fairness.md).
 */
import { AsyncResource } from 'node:async_hooks';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import { errorRecord, FarthingError } from '../core/error.ts';

const REFUSALS: Record<string, [status: string, why: string]> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'the headers of the request are too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['413 Payload Too Large', 'the chunk extensions of the body are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'the request did not come to its end in time'],
};
const UNREADABLE = ['400 Bad Request', 'the request is not HTTP/1.1'] as const;
const NO_HOST = 'the header Host is missing';
const UNEXPECTED = 'the header Expect may ask for 100-continue alone';

/**
 * For longer than balancers keep a connection for the next request (60 s to 10 min): one that we close in the moment in which it is used
 * again takes a request with it, of which nobody knows whether it had its effect, and which may not be sent again for that.
 */
const IDLE_CONNECTION_MS = 620_000;

export function makeHttpServer(listener: RequestListener, options: ServerOptions = {}): Server {
  /** Of each connection the answer that was begun last. Most wait for it before they ask again, and for them nothing else is made. */
  const inHand = new WeakMap<Socket, ServerResponse>();
  const queues = new WeakMap<Socket, ConnectionQueue>();
  const begin = (request: IncomingMessage, response: ServerResponse, handle: RequestListener) => {
    inHand.set(request.socket, response);
    handle(request, response);
  };
  const waitBehind = (before: ServerResponse, socket: Socket, go: () => void) => {
    let queue = queues.get(socket);
    if (!queue) queues.set(socket, (queue = new ConnectionQueue(socket, () => inHand.get(socket)!)));
    queue.add(before, go);
  };
  const inTurn = (request: IncomingMessage, response: ServerResponse, handle: RequestListener) => {
    const { socket } = request;
    const before = inHand.get(socket);
    if (before === undefined || before.closed) return begin(request, response, handle);
    // As if it had come by itself: on behalf of nobody yet, and not of whom the answer before it was for.
    waitBehind(
      before,
      socket,
      AsyncResource.bind(() => begin(request, response, handle)),
    );
  };
  // Node would refuse a request without Host by itself, with no word of ours.
  const ours = { keepAliveTimeout: IDLE_CONNECTION_MS, requireHostHeader: false };
  const server = createServer({ ...ours, ...options }, (request, response) =>
    inTurn(request, response, lacksHost(request) ? createRejection(400, NO_HOST) : listener),
  );
  // Emitted in the place of `request`, and not for `100-continue`, which Node answers.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    inTurn(request, response, lacksHost(request) ? createRejection(400, NO_HOST) : createRejection(417, UNEXPECTED)),
  );
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const begun = inHand.get(socket);
    if (!socket.writable || error.code === 'ECONNRESET') return socket.destroy(error);
    const refuse = () => void socket.end(buildErrorResponse(error.code));
    if (begun === undefined || begun.closed) return refuse();
    // What is at fault came behind a request that is whole, and the first answer is that one's.
    if (begun.req.complete) return waitBehind(begun, socket, refuse);
    // Half of the answer is on the line already: only breaking it off tells the caller that it is not whole.
    if (begun.headersSent) return socket.destroy(error);
    refuse();
  });
  return server;
}

/** So many wait before no more is read of a connection; Node makes requests of all that it has read, 64 KiB at a time. */
const WAITING_MAX = 100;

/** What came on a connection while an answer was in hand. */
class ConnectionQueue {
  private readonly waiting: (() => void)[] = [];
  private readonly socket: Socket;
  private readonly answerInHand: () => ServerResponse;
  private isFull = false;

  constructor(socket: Socket, answerInHand: () => ServerResponse) {
    this.socket = socket;
    this.answerInHand = answerInHand;
    // Node reads on by itself behind each request, and when a body is asked for.
    socket.on('resume', () => {
      if (this.isFull) socket.pause();
    });
  }

  add(before: ServerResponse, go: () => void): void {
    if (this.waiting.push(go) === 1) before.once('close', this.next);
    if (this.waiting.length < WAITING_MAX || this.isFull) return;
    this.isFull = true;
    this.socket.pause();
  }

  private readonly next = (): void => {
    // Nobody is there to read an answer.
    if (!this.socket.writable) this.waiting.length = 0;
    this.waiting.shift()?.();
    if (this.waiting.length > 0) this.answerInHand().once('close', this.next);
    else if (this.isFull) {
      this.isFull = false;
      this.socket.resume();
    }
  };
}

/** Of HTTP/1.0 it need not be stated. */
function lacksHost({ headers, httpVersion }: IncomingMessage): boolean {
  return httpVersion === '1.1' && headers.host === undefined;
}

/** A body is not waited for: whoever asked whether to send it may not do so now, and what comes next would be read as one. */
function createRejection(status: number, why: string): RequestListener {
  return ({ headers }, response) => {
    const body = buildErrorBody(status, why);
    const hasBody = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
    if (hasBody || status === 400) response.setHeader('Connection', 'close');
    response.writeHead(status, { 'Content-Type': JSON_TYPE, 'Content-Length': Buffer.byteLength(body) });
    response.end(body);
  };
}

const JSON_TYPE = 'application/json; charset=utf-8';

function buildErrorBody(http_status_code: number, why: string): string {
  return JSON.stringify(errorRecord(new FarthingError('validation_error', why, { http_status_code })));
}

function buildErrorResponse(code: string | undefined): string {
  const [status, why] = REFUSALS[code ?? ''] ?? UNREADABLE;
  const body = buildErrorBody(Number.parseInt(status, 10), why);
  return [
    `HTTP/1.1 ${status}`,
    `Content-Type: ${JSON_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}
