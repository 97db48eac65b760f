/**
 * One id and one log line per request. The caller's X-Request-ID is used if it is harmless in a log. Headers and query strings are not
 * logged, so no key can be.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Request, RequestHandler, Response } from 'express';
import type { Logger } from 'pino';
import { pinoHttp } from 'pino-http';
import { newId } from '../../storage/foundation/new-id.ts';

const HARMLESS_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const SECRETS = ['x-api-key', 'authorization', 'cookie', 'x-session-token'];
const QUIET = new Set(['/health', '/ready', '/metrics']);

/** Whether a request of this path is a probe. Probes arrive every few seconds and are not logged, even while a store is unavailable. */
export function isQuiet(url: string | undefined): boolean {
  return QUIET.has((url ?? '').split('?')[0]!);
}

/** Header with the request id, in requests and answers. */
export const REQUEST_ID = 'X-Request-ID';

/** The caller's id if it is harmless in a log, else a new one; the answer returns it. */
export function readRequestId({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && HARMLESS_ID.test(given) ? given : newId('request');
}

export function logRequests(logger: Logger): RequestHandler {
  // Protects secrets even if a log line that is added in future contains a whole request.
  const paths = SECRETS.flatMap((name) => [`req.headers["${name}"]`, `headers["${name}"]`, `["${name}"]`]);
  return pinoHttp({
    logger: logger.child({}, { redact: { paths, censor: '[redacted]' } }),
    genReqId: (request, response) => {
      const id = readRequestId(request);
      response.setHeader(REQUEST_ID, id);
      return id;
    },
    autoLogging: { ignore: (request) => isQuiet(request.url) },
    // A route's log lines and the request line have the id and not the whole request.
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

/** Name of the path parameter with a token that grants access without a key. */
const SECRET_PARAMETER = ':token';

/** Replaces tokens in a path, because a reader of the log could use the address. Tokens in a wrong place are replaced, too. */
function withoutSecrets(path: string, route: string | undefined): string {
  const parts = path.split('/');
  const segments = route?.split('/') ?? [];
  const offset = parts.length - segments.length;
  return parts
    .map((part, index) => (segments[index - offset] === SECRET_PARAMETER || isSecret(part) ? '[redacted]' : part))
    .join('/');
}

/**
 * Whether a part of a path is a secret. A signed token has three parts, and the first begins like JSON; an API key begins with its kind.
 */
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

/** Fields of the log line of a request and its answer. */
export function buildAnswerLine({ scope, method, url, route, http_status, duration_ms }: LoggedAnswer) {
  return { ...scope, method, path: withoutSecrets(url.split('?')[0]!, route), route, http_status, duration_ms };
}
