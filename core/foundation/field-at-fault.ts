/**
 * Finds the field of a request that names a missing record or a duplicate key (docs/rules/errors.md, "The error record"). The code that
 * rejects the request knows the record, but not the name of the field.
 */
import { FarthingError } from './error.ts';
import { fieldPath } from './shaped.ts';

/** Adds `details.field` to the error if it has none and the field can be determined. */
export function withField(error: FarthingError, request: unknown): FarthingError {
  const { code, message, details, http_status_code } = error;
  if (details?.field !== undefined) return error;
  const field =
    code === 'not_found'
      ? findHolder(details?.id, request)
      : code === 'already_exists'
        ? namedIn(message, request)
        : undefined;
  if (field === undefined) return error;
  return new FarthingError(code, message, { details: { field, ...details }, http_status_code, cause: error });
}

type Path = readonly (string | number)[];

/** Limit of searched values; beyond it no field is found. */
const VALUES_MAX = 10_000;

/** Path of the first value that equals the id, searched level by level. */
function findHolder(id: unknown, request: unknown): string | undefined {
  if (typeof id !== 'string' || id === '') return undefined;
  let level: (readonly [Path, unknown])[] = [[[], request]];
  for (let seen = 0; level.length > 0 && seen < VALUES_MAX; seen += level.length) {
    const found = level.find(([path, value]) => value === id && path.length > 0);
    if (found) return fieldPath(found[0]);
    level = level.flatMap(([path, value]) => listInner(value).map(([key, inner]) => [[...path, key], inner] as const));
  }
  return undefined;
}

function listInner(value: unknown): [string | number, unknown][] {
  if (Array.isArray(value)) return value.map((inner, index) => [index, inner]);
  return typeof value === 'object' && value !== null ? Object.entries(value) : [];
}

/** Finds a key of the request that is a word of the message: "a customer with external_id acme exists already". */
function namedIn(message: string, request: unknown): string | undefined {
  if (typeof request !== 'object' || request === null || Array.isArray(request)) return undefined;
  const words = new Set(message.split(/[^\w]+/));
  return Object.keys(request).find((key) => words.has(key));
}
