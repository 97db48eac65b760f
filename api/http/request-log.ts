/**
 * One id and one log line per request. The caller's X-Request-ID is taken over where it cannot harm a log; no header and
 * no query string is written, so no key can be.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Request, RequestHandler, Response } from 'express';
import type { Logger } from 'pino';
import { pinoHttp } from 'pino-http';
import { newId } from '../../storage/new-id.ts';

const HARMLESS_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const SECRETS = ['x-api-key', 'authorization', 'cookie', 'x-session-token'];
export const QUIET = new Set(['/health', '/ready', '/metrics']);

export function logRequests(logger: Logger): RequestHandler {
  // The redaction guards against a later line that logs a whole request.
  const paths = SECRETS.flatMap((name) => [`req.headers["${name}"]`, `headers["${name}"]`, `["${name}"]`]);
  return pinoHttp({
    logger: logger.child({}, { redact: { paths, censor: '[redacted]' } }),
    genReqId: (request, response) => {
      const given = request.headers['x-request-id'];
      const id = typeof given === 'string' && HARMLESS_ID.test(given) ? given : newId('request');
      response.setHeader('X-Request-ID', id);
      return id;
    },
    autoLogging: { ignore: (request) => QUIET.has(request.url ?? '') },
    // Lines that a route writes, and the last one, have the id and not the whole request.
    quietReqLogger: true,
    quietResLogger: true,
    customAttributeKeys: { reqId: 'request_id' },
    customLogLevel: (_request, response, error) => (error || response.statusCode >= 500 ? 'error' : 'info'),
    customSuccessObject: lineOf,
    customErrorObject: (request, response, error, given) => ({ ...lineOf(request, response, given), err: error }),
  });
}

function lineOf(request: IncomingMessage, response: ServerResponse, { responseTime }: { responseTime: number }) {
  const { route, scope = {}, trace_id } = (response as Response).locals;
  return {
    ...scope,
    method: request.method,
    path: (request as Request).originalUrl.split('?')[0],
    route,
    http_status: response.statusCode,
    duration_ms: responseTime,
    ...(trace_id === undefined ? {} : { trace_id }),
  };
}
