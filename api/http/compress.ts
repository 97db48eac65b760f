/** Compression of complete answers. An export is compressed while it is sent (send-stream.ts), and a PDF is compressed in itself. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import compression from 'compression';
import type { Request, Response } from 'express';

/** A shorter answer fits into the first packets of a connection, and its compression would cost as much as many requests. */
const COMPRESSED_BYTES_MIN = 4096;

/** Compresses what the next handlers send, if the client accepts that. */
export const compressAnswers = compression({ threshold: COMPRESSED_BYTES_MIN });

/** Ends a response whose headers are set, among them Content-Length. */
export function endCompressed(request: IncomingMessage, response: ServerResponse, body: string): void {
  if (!isCompressed(request, body)) return void response.end(body);
  compressAnswers(request as Request, response as Response, () => response.end(body));
}

/** Answers 200 with JSON text that a route has written itself. */
export function sendJsonText(request: Request, response: Response, body: string): void {
  response.status(200).setHeader('Content-Type', 'application/json; charset=utf-8');
  response.setHeader('Content-Length', Buffer.byteLength(body));
  endCompressed(request, response, body);
}

export function isCompressed({ headers }: IncomingMessage, body: string): boolean {
  return headers['accept-encoding'] !== undefined && body.length >= COMPRESSED_BYTES_MIN;
}
