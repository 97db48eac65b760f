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
const QUIET = new Set(['/health', '/ready', '/metrics']);

/** What is asked every few seconds, whatever is asked of it: it writes no line, also while a store is away. */
export function isQuiet(url: string | undefined): boolean {
  return QUIET.has((url ?? '').split('?')[0]!);
}

/** What names a request, here and at the caller. */
export const REQUEST_ID = 'X-Request-ID';

/** Of the caller where it harms no log, else a new one; the answer says it. */
export function readRequestId({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && HARMLESS_ID.test(given) ? given : newId('request');
}

export function logRequests(logger: Logger): RequestHandler {
  // The redaction guards against a later line that logs a whole request.
  const paths = SECRETS.flatMap((name) => [`req.headers["${name}"]`, `headers["${name}"]`, `["${name}"]`]);
  return pinoHttp({
    logger: logger.child({}, { redact: { paths, censor: '[redacted]' } }),
    genReqId: (request, response) => {
      const id = readRequestId(request);
      response.setHeader(REQUEST_ID, id);
      return id;
    },
    autoLogging: { ignore: (request) => isQuiet(request.url) },
    // Lines that a route writes, and the last one, have the id and not the whole request.
    quietReqLogger: true,
    quietResLogger: true,
    customAttributeKeys: { reqId: 'request_id' },
    customLogLevel: (_request, response, error) => (error || response.statusCode >= 500 ? 'error' : 'info'),
    customSuccessObject: buildRequestLine,
    customErrorObject: (request, response, error, given) => ({
      ...buildRequestLine(request, response, given),
      err: error,
    }),
  });
}

/** What opens something without a key stands in a parameter of this name. */
const SECRET_PARAMETER = ':token';

/** Whoever reads the log could open what the address opens; also where a token was put by mistake. */
function withoutSecrets(path: string, route: string | undefined): string {
  const parts = path.split('/');
  const segments = route?.split('/') ?? [];
  const offset = parts.length - segments.length;
  return parts
    .map((part, index) => (segments[index - offset] === SECRET_PARAMETER || isSecret(part) ? '[redacted]' : part))
    .join('/');
}

/** A signed token has three parts, and the first begins as JSON does; a key of ours begins with its kind. */
function isSecret(part: string): boolean {
  return /^eyJ[\w-]*\.[\w-]*\.[\w-]*/.test(part) || /^(sk|pk)_/.test(part);
}

function buildRequestLine(
  request: IncomingMessage,
  response: ServerResponse,
  { responseTime }: { responseTime: number },
) {
  const { route, scope = {}, trace_id } = (response as Response).locals;
  const line = buildAnswerLine({
    scope,
    method: request.method,
    url: (request as Request).originalUrl,
    route,
    http_status: response.statusCode,
    duration_ms: responseTime,
  });
  return trace_id === undefined ? line : { ...line, trace_id };
}

type LoggedAnswer = {
  readonly scope: object;
  readonly method: string | undefined;
  readonly url: string;
  readonly route: string | undefined;
  readonly http_status: number;
  readonly duration_ms: number;
};

/** What a line says of a request and its answer. */
export function buildAnswerLine({ scope, method, url, route, http_status, duration_ms }: LoggedAnswer) {
  return { ...scope, method, path: withoutSecrets(url.split('?')[0]!, route), route, http_status, duration_ms };
}
