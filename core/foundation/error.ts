/**
 * Error record: `code`, `http_status_code`, `message` (docs/rules/errors.md, "The error record"). Every expected error is thrown as a
 * `FarthingError`; entry points convert it to a response.
 */
export const HTTP_STATUS_BY_ERROR_CODE = {
  http_client_error: 500,
  system_error: 500,
  internal_error: 500,
  not_found: 404,
  already_exists: 409,
  version_conflict: 409,
  validation_error: 400,
  invalid_operation: 400,
  permission_denied: 403,
  database_error: 500,
  service_unavailable: 503,
  too_many_requests: 429,
} as const;

export type ErrorCode = keyof typeof HTTP_STATUS_BY_ERROR_CODE;
export const ERROR_CODES = Object.keys(HTTP_STATUS_BY_ERROR_CODE) as ErrorCode[];

/** Facts for the caller: the field at fault, the allowed values, the index in a bulk body. Never the event itself. */
type ErrorDetails = { readonly field?: string; readonly [fact: string]: ErrorFact | undefined };

/** JSON values; an instant or a decimal is represented as text. */
type ErrorFact =
  | string
  | number
  | boolean
  | null
  | readonly ErrorFact[]
  | { readonly [name: string]: ErrorFact | undefined };

export class FarthingError extends Error {
  readonly code: ErrorCode;
  readonly http_status_code: number;
  readonly details: ErrorDetails | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    options: { details?: ErrorDetails; cause?: unknown; http_status_code?: number } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'FarthingError';
    this.code = code;
    this.http_status_code = options.http_status_code ?? HTTP_STATUS_BY_ERROR_CODE[code];
    this.details = options.details;
  }
}

/** Error record as it is sent: its own keys, and in addition those that the published client reads. */
type ErrorRecord = {
  code: ErrorCode;
  http_status_code: number;
  message: string;
  details: Record<string, unknown> | null;
  success: false;
  error: { message: string; internal_error: string | null };
};

export function errorRecord(error: FarthingError): ErrorRecord {
  const { code, http_status_code } = error;
  const reported = withShortId(error);
  const message = shortenText(reported.message);
  const room = { left: DETAILS_MAX, omitted: 0 };
  const details =
    reported.details === undefined ? null : (shortened(reported.details, room) as Record<string, unknown>);
  return { code, http_status_code, message, details, success: false, error: { message, internal_error: null } };
}

/** Shortens a long unknown id, in the message and in the details. */
function withShortId({ message, details }: FarthingError): Pick<FarthingError, 'message' | 'details'> {
  const id = details?.['id'];
  if (typeof id !== 'string' || id.length <= ID_MAX) return { message, details };
  const short = `${truncate(id, ID_MAX)}…`;
  return { message: message.replaceAll(id, () => short), details: { ...details, id: short } };
}

const ID_MAX = 100;
const TEXT_MAX = 600;
const LIST_MAX = 100;
/** Maximum characters of all details. */
const DETAILS_MAX = 10_000;

/**
 * Shortens input for an error to what helps to find the fault. Each text has a limit. A map contains the entries that fit. A list ends
 * before the first entry that does not fit completely.
 */
function shortened(value: unknown, room: DetailsRoom): unknown {
  if (typeof value !== 'object' || value === null) {
    const short = typeof value === 'string' ? shortenText(value) : value;
    room.left -= String(short).length;
    return short;
  }
  const isList = Array.isArray(value);
  const entries: [key: string, inner: unknown][] = [];
  for (const [key, inner] of Object.entries(value).slice(0, LIST_MAX)) {
    const before = { ...room };
    room.left -= AROUND + (isList ? 0 : key.length);
    const short = shortened(inner, room);
    const fits = room.left >= 0 && !(isList && room.omitted > before.omitted);
    if (fits) entries.push([isList ? key : shortenText(key), short]);
    else Object.assign(room, { left: before.left, omitted: before.omitted + 1 });
    if (isList && !fits) break;
  }
  return isList ? entries.map(([, inner]) => inner) : Object.fromEntries(entries);
}

/** Remaining characters, and the number of omitted values. */
type DetailsRoom = { left: number; omitted: number };

/** Approximate number of characters around each value: quotation marks and a comma. */
const AROUND = 4;

function shortenText(text: string): string {
  return text.length > TEXT_MAX ? `${truncate(text, TEXT_MAX)}…` : text;
}

/** Shortens a text without splitting a surrogate pair. */
function truncate(text: string, length: number): string {
  return text.slice(0, length).replace(/[\uD800-\uDBFF]$/, '');
}

/** 405: the path exists, but not with this method. */
export function methodNotAllowed({ method, path }: { method: string; path: string }): FarthingError {
  const why = `${method} ${path} does not exist, the path does with another method`;
  return new FarthingError('invalid_operation', why, { http_status_code: 405 });
}

/** 400: a field of the request is invalid, and the message names it. */
export function invalid(field: string, why: string, details: ErrorDetails = {}): FarthingError {
  return new FarthingError('validation_error', `${field}: ${why}`, { details: { field, ...details } });
}

/** 404: the record does not exist in this tenant and environment. */
export function notFound(what: string, id: string): FarthingError {
  return new FarthingError('not_found', `${what} ${id} not found`, { details: { id } });
}

/** 400: the request is well formed but the record's state forbids it. */
export function notAllowed(why: string, details?: ErrorDetails): FarthingError {
  return new FarthingError('invalid_operation', why, { details });
}

/** 400: the state of the record forbids the request; `field` is the field of the record that has the state. */
export function buildStateError(field: string, why: string, details: ErrorDetails = {}): FarthingError {
  return notAllowed(`${field}: ${why}`, { field, ...details });
}

/** 409: a record with this key exists. */
export function alreadyExists(why: string, details?: ErrorDetails): FarthingError {
  return new FarthingError('already_exists', why, { details });
}

/** 503: a required component does not answer in time; the caller may retry. */
export function unavailable(what: string, cause?: unknown): FarthingError {
  return new FarthingError('service_unavailable', `${what} is not available, try again`, { cause });
}

/** Prefixes the field of an error with the part of the request that contains it: `meter.aggregation.field`. */
export function prefixField(error: unknown, part: string): unknown {
  return error instanceof FarthingError && error.details?.field !== undefined ? placed(error, part) : error;
}

/** Prefixes the field of an error with the index of the item in a bulk request. */
export function prefixIndex(error: unknown, index: number): unknown {
  return error instanceof FarthingError ? placed(error, `items[${index}]`, { index }) : error;
}

function placed(error: FarthingError, part: string, more: ErrorDetails = {}): FarthingError {
  const field = error.details?.field;
  const place = field === undefined ? `${part}: ` : `${part}.`;
  const named = field === undefined ? {} : { field: `${part}.${field}` };
  const details = { ...error.details, ...named, ...more };
  return new FarthingError(error.code, `${place}${error.message}`, { details, cause: error });
}
