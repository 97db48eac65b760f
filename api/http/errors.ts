/**
 * Turns every failure into one error record: `code`, `http_status_code`, `message` (docs/rules/errors.md, "The error record"), plus the
 * keys that the published client reads. An unexpected error is logged with its stack and answered without it. A database message is never
 * repeated to the caller.
 */
import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express';
import { z } from 'zod';
import { ERROR_CODES, errorRecord, FarthingError, methodNotAllowed, unavailable } from '../../core/foundation/error.ts';
import { fromZod } from '../../core/foundation/shaped.ts';
import { classifyFailure, isMissingReference } from '../../storage/foundation/failure.ts';

export const ErrorAnswer = z
  .object({
    code: z
      .enum(ERROR_CODES as [string, ...string[]])
      .meta({ description: 'Kind of the error, for programs to branch on.' }),
    http_status_code: z.int().meta({ description: 'HTTP status of the answer.' }),
    message: z.string().meta({
      description: 'Explanation of the error, for people. It begins with the field at fault, if there is one.',
    }),
    details: z.record(z.string(), z.unknown()).nullable().meta({
      description:
        'The field at fault, the allowed values, or all faults of the request. Null if there is nothing to add.',
    }),
    success: z.literal(false).meta({ description: 'Always false.' }),
    error: z
      .object({
        message: z.string().meta({ description: 'Same text as the outer `message`.' }),
        internal_error: z
          .string()
          .nullable()
          .meta({ description: "Always null; internal failures are in the server's log only." }),
      })
      .meta({ description: 'Repeats the message for older clients.' }),
  })
  .meta({ id: 'ErrorResponse' });

/** Builds error 401: the caller is unknown. It shares the code permission_denied (docs/rules/errors.md, "Codes"). */
export function unauthenticated(why: string): FarthingError {
  return new FarthingError('permission_denied', why, { http_status_code: 401 });
}

/** Refuses a method: the path exists, but not with this method. */
export function refuseMethod(request: Request, response: Response, methods: readonly string[]): never {
  throw wrongMethod(request, response, methods);
}

/** Builds the error for a wrong method. The Allow header of the answer lists the methods of the path. */
export function wrongMethod(request: Request, response: Response, methods: readonly string[]): FarthingError {
  const allowed = methods.includes('GET') ? [...methods, 'HEAD'] : [...methods];
  response.set('Allow', [...new Set([...allowed, 'OPTIONS'])].sort().join(', '));
  return methodNotAllowed(request);
}

/** Refuses other methods; must be mounted after the GET route of a path that has no other method. */
export const getOnly: RequestHandler = (request, response) => refuseMethod(request, response, ['GET']);

/** Last of all handlers: the path does not exist. */
export const refuseUnknownPath: RequestHandler = ({ method, originalUrl }) => {
  throw new FarthingError('not_found', `${method} ${originalUrl.split('?')[0]} does not exist`);
};

/** Turns a thrown value into an answer; no other code does this. */
export const sendError: ErrorRequestHandler = (error, request, response, next) => {
  const known = toFarthingError(error);
  if (known.http_status_code >= 500) request.log?.error({ request_id: request.id, err: error }, 'request failed');
  // A streamed answer has begun, so a broken connection is the only way to show that it is incomplete.
  if (response.headersSent) return next(error);
  setErrorHeaders(response, known);
  // A request that was refused before its route was found has no Cache-Control header yet.
  response.set('Cache-Control', 'no-store');
  response.status(known.http_status_code).json(errorRecord(known));
};

export function setErrorHeaders(response: { set(name: string, value: string): unknown }, error: FarthingError): void {
  const { http_status_code, details } = error;
  // RFC 9110 demands a challenge. A key may be sent as a bearer token, too.
  if (http_status_code === 401) response.set('WWW-Authenticate', 'Bearer realm="farthing"');
  if (http_status_code !== 503 && http_status_code !== 429) return;
  const seconds = details?.retry_after_seconds;
  response.set('Retry-After', typeof seconds === 'number' ? String(seconds) : '1');
}

export function toFarthingError(error: unknown): FarthingError {
  // Store messages name tables and statements, so they go to the log only.
  if (error instanceof FarthingError && error.code === 'database_error') return databaseFailed(error);
  if (error instanceof FarthingError) return error;
  if (error instanceof z.core.$ZodError) return fromZod(error);
  return fromRequest(error) ?? fromStore(error) ?? unexpected(error);
}

function unexpected(cause: unknown): FarthingError {
  return new FarthingError('internal_error', 'an unexpected error occurred', { cause });
}

/** Converts errors of the HTTP layer: sizes, encodings, invalid bodies, invalid escapes in a path. */
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
