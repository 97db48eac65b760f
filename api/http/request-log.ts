/**
 * One id and one log line per request. The caller's X-Request-ID is used if it is harmless in a log. Headers and query strings are not
 * logged, so no key can be.
 */
import type { IncomingMessage } from 'node:http';
import type { Request, Response } from 'express';
import type { Logger } from 'pino';
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

declare module 'express-serve-static-core' {
  interface Request {
    id: string;
    /** Instant (`performance.now`) before the request waited for capacity (admission.ts). */
    arrived_ms?: number;
    log: Logger;
  }
}

export function logRequests(logger: Logger): (request: Request, response: Response) => void {
  // Protects secrets even if a log line that is added in future contains a whole request.
  const paths = SECRETS.flatMap((name) => [`req.headers["${name}"]`, `headers["${name}"]`, `["${name}"]`]);
  const redacted = logger.child({}, { redact: { paths, censor: '[redacted]' } });
  return (request, response) => {
    const began_ms = request.arrived_ms ?? performance.now();
    request.id = readRequestId(request);
    request.log = redacted;
    response.setHeader(REQUEST_ID, request.id);
    let isLogged = isQuiet(request.url);
    const log = (error?: Error) => {
      if (isLogged && !error) return;
      isLogged = true;
      logAnswer(request, response, { error, duration_ms: Math.round(performance.now() - began_ms) });
    };
    // An aborted request closes its answer without finishing it.
    response.on('close', log).on('error', log);
  };
}

/** Logs one line with the outcome of the request. */
function logAnswer(
  request: Request,
  response: Response,
  { error, duration_ms }: { error: Error | undefined; duration_ms: number },
): void {
  const { statusCode: status } = response;
  if (!error && status === 503 && response.hasHeader('Retry-After')) {
    // Refused on purpose: overloaded, not ready yet, or a console that is being built.
    request.log.warn(buildRequestLine(request, response, duration_ms), 'request refused');
  } else if (error || status >= 500) {
    const err = error ?? new Error(`failed with status code ${status}`);
    request.log.error({ ...buildRequestLine(request, response, duration_ms), err }, 'request errored');
  } else if (request.log.isLevelEnabled('info')) {
    const isComplete = !request.readableAborted && response.writableEnded;
    request.log.info(
      buildRequestLine(request, response, duration_ms),
      isComplete ? 'request completed' : 'request aborted',
    );
  }
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

function buildRequestLine(request: Request, response: Response, duration_ms: number) {
  const { route, scope = {}, trace_id } = response.locals;
  const answer = buildAnswerLine({
    scope,
    method: request.method,
    url: request.originalUrl,
    route,
    http_status: response.statusCode,
    duration_ms,
  });
  const line = { request_id: request.id, ...answer };
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
