/**
 * Everything that goes wrong becomes one error record: `code`, `http_status_code`, `message`
 * (docs/rules/errors.md, "The error record"), with the keys beside them that the published client reads. What we did not
 * expect is logged with its stack and answered without it; what the database says is never repeated to the caller.
 */
import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express';
import { z } from 'zod';
import { ERROR_CODES, errorRecord, FarthingError, methodNotAllowed, unavailable } from '../../core/error.ts';
import { fromZod } from '../../core/shaped.ts';
import { classifyFailure, isMissingReference } from '../../storage/failure.ts';

export const ErrorAnswer = z
  .object({
    code: z
      .enum(ERROR_CODES as [string, ...string[]])
      .meta({ description: 'What kind of error it is: for programs to decide by.' }),
    http_status_code: z.int().meta({ description: 'The status of the answer.' }),
    message: z
      .string()
      .meta({ description: 'What is wrong, for people: the field at fault first, where there is one.' }),
    details: z.record(z.string(), z.unknown()).nullable().meta({
      description:
        'The field at fault, what is allowed, or all faults of the request; null where there is no more to say.',
    }),
    success: z.literal(false).meta({ description: 'Always false.' }),
    error: z
      .object({
        message: z.string().meta({ description: 'The same as `message` beside it.' }),
        internal_error: z.string().nullable().meta({ description: 'Always null: what failed inside is in our log.' }),
      })
      .meta({ description: 'The message once more, where older clients read it.' }),
  })
  .meta({ id: 'ErrorResponse' });

/** Who calls is not known: 401. It has no code of its own (docs/rules/errors.md, "Codes"). */
export function unauthenticated(why: string): FarthingError {
  return new FarthingError('permission_denied', why, { http_status_code: 401 });
}

/** A path that is served, but not with this method. */
export function refuseMethod(request: Request, response: Response, methods: readonly string[]): never {
  throw wrongMethod(request, response, methods);
}

/** The answer says which there are. */
export function wrongMethod(request: Request, response: Response, methods: readonly string[]): FarthingError {
  const allowed = methods.includes('GET') ? [...methods, 'HEAD'] : [...methods];
  response.set('Allow', [...new Set([...allowed, 'OPTIONS'])].sort().join(', '));
  return methodNotAllowed(request);
}

/** Behind the GET of a path that has no other method. */
export const getOnly: RequestHandler = (request, response) => refuseMethod(request, response, ['GET']);

/** The last of all handlers: a path that nobody serves. */
export const refuseUnknownPath: RequestHandler = ({ method, originalUrl }) => {
  throw new FarthingError('not_found', `${method} ${originalUrl.split('?')[0]} does not exist`);
};

/** The one place where what was thrown becomes an answer. */
export const sendError: ErrorRequestHandler = (error, request, response, next) => {
  const known = toFarthingError(error);
  if (known.http_status_code >= 500) request.log?.error({ err: error }, 'request failed');
  // A streamed answer has begun: only breaking the connection tells the caller that it is not whole.
  if (response.headersSent) return next(error);
  setErrorHeaders(response, known);
  // What is refused before a route is found has not been told so yet.
  response.set('Cache-Control', 'no-store');
  response.status(known.http_status_code).json(errorRecord(known));
};

export function setErrorHeaders(response: { set(name: string, value: string): unknown }, error: FarthingError): void {
  const { http_status_code, details } = error;
  if (http_status_code !== 503 && http_status_code !== 429) return;
  const seconds = details?.retry_after_seconds;
  response.set('Retry-After', typeof seconds === 'number' ? String(seconds) : '1');
}

export function toFarthingError(error: unknown): FarthingError {
  // What the stores say names tables and statements: it is for the log.
  if (error instanceof FarthingError && error.code === 'database_error') return databaseFailed(error);
  if (error instanceof FarthingError) return error;
  if (error instanceof z.core.$ZodError) return fromZod(error);
  return fromRequest(error) ?? fromStore(error) ?? unexpected(error);
}

function unexpected(cause: unknown): FarthingError {
  return new FarthingError('internal_error', 'an unexpected error occurred', { cause });
}

/** What the HTTP layer itself refuses: sizes, encodings, broken bodies, broken escapes in a path. */
function fromRequest(error: unknown): FarthingError | undefined {
  const { type, status, statusCode } = error as { type?: string; status?: number; statusCode?: number };
  const why = type === undefined ? undefined : BODY_FAULTS[type];
  if (why)
    return new FarthingError('validation_error', why, {
      cause: error,
      ...(type === 'entity.too.large' ? { http_status_code: 413 } : {}),
    });
  if (error instanceof URIError) return new FarthingError('validation_error', 'the path is not correctly encoded');
  const http = status ?? statusCode;
  if (http !== undefined && http >= 400 && http < 500)
    return new FarthingError('validation_error', 'the request cannot be read', { cause: error });
  return undefined;
}

const BODY_FAULTS: Record<string, string> = {
  'entity.too.large': 'request body too large',
  'encoding.unsupported': 'the content encoding is not supported: use gzip, deflate or br',
  'request.aborted': 'the request body ended too early',
  'request.size.invalid': 'the request body is not as long as it said',
};

function fromStore(error: unknown): FarthingError | undefined {
  switch (classifyFailure(error)) {
    case 'away':
      return unavailable('the database', error);
    case 'conflict':
      return new FarthingError('already_exists', 'this record exists already', { cause: error });
    case 'refused':
      return new FarthingError('validation_error', describeRejection(error), { cause: error });
    case 'ours':
      return databaseFailed(error);
    default:
      return undefined;
  }
}

function describeRejection(error: unknown): string {
  return isMissingReference(error) ? 'a record that is referred to does not exist' : 'a value cannot be stored';
}

function databaseFailed(cause: unknown): FarthingError {
  return new FarthingError('database_error', 'the database could not answer', { cause });
}
