/**
 * An HTTP server that answers with the error record also if no handler is reached: headers that are too large, an incomplete request, a
 * missing host, bytes that are not HTTP. Requests pipelined on one connection run one after another (docs/decisions/0021-fairness.md).
 */
import { AsyncResource } from 'node:async_hooks';
import { setMaxListeners } from 'node:events';
import {
  createServer,
  IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import express from 'express';
import { errorRecord, FarthingError } from '../core/foundation/error.ts';

const REFUSALS: Record<string, [status: string, why: string]> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'the headers of the request are too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['413 Payload Too Large', 'the chunk extensions of the body are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'the request did not come to its end in time'],
};
const UNREADABLE = ['400 Bad Request', 'the request is not HTTP/1.1'] as const;
const NO_HOST = 'the header Host is missing';
const UNEXPECTED = 'the header Expect may ask for 100-continue alone';

/**
 * Time after which an idle connection is closed. It is longer than load balancers keep one for reuse (60 s to 10 min). If the server closes
 * a connection at the moment of reuse, that request is lost. Its effect is unknown, so the client may not repeat it.
 */
const IDLE_CONNECTION_MS = 620_000;

/**
 * Requests and responses that have the framework's methods from the start. The framework gives them to each object by a new prototype, and V8 then
 * retains the object until a full garbage collection.
 */
class FrameworkRequest extends IncomingMessage {}
class FrameworkResponse extends ServerResponse {}
Object.setPrototypeOf(FrameworkRequest.prototype, express.request);
Object.setPrototypeOf(FrameworkResponse.prototype, express.response);

/** Signals that end the streams of a server that stops, by connection. */
const stopSignals = new WeakMap<Socket, AbortSignal>();
const stopControllers = new WeakMap<Server, AbortController>();

/** Aborted when the server of a request begins to stop. An answer without an end of its own must then end. */
export function getStopSignal({ socket }: IncomingMessage): AbortSignal | undefined {
  return stopSignals.get(socket);
}

/** Ends the streams of a server. Other answers are finished. */
export function endStreams(server: Server): void {
  stopControllers.get(server)?.abort();
}

export function makeHttpServer(listener: RequestListener, options: ServerOptions = {}): Server {
  /** Last response that was begun on each connection. Most clients wait for it before the next request, and then need no further state. */
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
    // The waiting request keeps its own async context, which has no caller yet. Otherwise it would inherit the caller of the previous
    // response.
    waitBehind(
      before,
      socket,
      AsyncResource.bind(() => begin(request, response, handle)),
    );
  };
  // Node would reject a request without Host by itself, without the error record.
  const classes = { IncomingMessage: FrameworkRequest, ServerResponse: FrameworkResponse } as unknown as ServerOptions;
  const ours = { ...classes, keepAliveTimeout: IDLE_CONNECTION_MS, requireHostHeader: false };
  const server = createServer({ ...ours, ...options }, (request, response) =>
    inTurn(request, response, lacksHost(request) ? createRejection(400, NO_HOST) : listener),
  );
  const stopping = new AbortController();
  // Each stream listens to this signal, and Node would warn of more than ten listeners.
  setMaxListeners(0, stopping.signal);
  stopControllers.set(server, stopping);
  server.on('connection', (socket: Socket) => void stopSignals.set(socket, stopping.signal));
  // The handler asks for the body once it has accepted the key (api/http/mount.ts). If it answers before, Node closes the connection,
  // because the client may then send the body or not.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) =>
    inTurn(request, response, lacksHost(request) ? createRejection(400, NO_HOST) : listener),
  );
  // Node emits this event in place of `request` if `Expect` has another value than `100-continue`.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    inTurn(request, response, lacksHost(request) ? createRejection(400, NO_HOST) : createRejection(417, UNEXPECTED)),
  );
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const begun = inHand.get(socket);
    if (!socket.writable || error.code === 'ECONNRESET') return socket.destroy(error);
    const refuse = () => void socket.end(buildErrorResponse(error.code));
    if (begun === undefined || begun.closed) return refuse();
    // The invalid bytes came after a complete request, which gets its response first.
    if (begun.req.complete) return waitBehind(begun, socket, refuse);
    // A part of the response is already sent; only closing the connection shows the client that it is incomplete.
    if (begun.headersSent) return socket.destroy(error);
    refuse();
  });
  return server;
}

/** Number of queued requests at which reading from a connection stops. Node parses all that it has read, 64 KiB at a time. */
const WAITING_MAX = 100;

/** Requests that arrive on a connection while a response is in progress. */
class ConnectionQueue {
  private readonly waiting: (() => void)[] = [];
  private readonly socket: Socket;
  private readonly answerInHand: () => ServerResponse;
  private isFull = false;

  constructor(socket: Socket, answerInHand: () => ServerResponse) {
    this.socket = socket;
    this.answerInHand = answerInHand;
    // Node resumes reading after each request and when a body is read, so the connection is paused again.
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
    // The client has disconnected, so its queued requests are dropped.
    if (!this.socket.writable) this.waiting.length = 0;
    this.waiting.shift()?.();
    if (this.waiting.length > 0) this.answerInHand().once('close', this.next);
    else if (this.isFull) {
      this.isFull = false;
      this.socket.resume();
    }
  };
}

/** Whether a required Host header is missing; HTTP/1.0 does not require one. */
function lacksHost({ headers, httpVersion }: IncomingMessage): boolean {
  return httpVersion === '1.1' && headers.host === undefined;
}

/**
 * Creates the answer to a request that is rejected before its body is read. A client that sent `Expect` may then omit the body, and its
 * next request would be taken for the body, so the connection is closed.
 */
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
