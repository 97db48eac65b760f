/**
 * A server of HTTP that answers with our error record also where no handler is reached: headers that are too large, a
 * request that does not come to its end, bytes that are no HTTP.
 */
import { createServer, type RequestListener, type Server, type ServerOptions, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { errorRecord, FarthingError } from '../core/error.ts';

const REFUSALS: Record<string, [status: string, why: string]> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'the headers of the request are too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['413 Payload Too Large', 'the chunk extensions of the body are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'the request did not come to its end in time'],
};
const UNREADABLE = ['400 Bad Request', 'the request is not HTTP/1.1'] as const;

export function makeHttpServer(listener: RequestListener, options: ServerOptions = {}): Server {
  const server = createServer(options, listener);
  const answers = new WeakMap<object, ServerResponse>();
  server.on('request', (request, response) => answers.set(request.socket, response));
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const begun = answers.get(socket);
    // Half of another answer is on the line already: only breaking it off tells the caller that it is not whole.
    if (!socket.writable || error.code === 'ECONNRESET' || (begun?.headersSent && !begun.writableFinished))
      return socket.destroy(error);
    socket.end(refusal(error.code));
  });
  return server;
}

function refusal(code: string | undefined): string {
  const [status, why] = REFUSALS[code ?? ''] ?? UNREADABLE;
  const http_status_code = Number.parseInt(status, 10);
  const body = JSON.stringify(errorRecord(new FarthingError('validation_error', why, { http_status_code })));
  return [
    `HTTP/1.1 ${status}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}
