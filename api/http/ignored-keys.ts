/**
 * Keys of a body that have no effect (core/foundation/ignored-keys.ts): refused, or accepted and reported (docs/rules/errors.md, "Unknown
 * keys").
 */
import { distance } from 'fastest-levenshtein';
import type { z } from 'zod';
import { type FarthingError, invalid } from '../../core/foundation/error.ts';
import { findIgnoredKeys, type IgnoredKey, NAMED_MAX } from '../../core/foundation/ignored-keys.ts';
import { fieldPath } from '../../core/foundation/shaped.ts';
import type { Context } from './route.ts';

const IGNORED_KEYS_HEADER = 'X-Ignored-Keys';

type KeyCheckContext = Pick<Context, 'services' | 'response'> & { readonly readable?: readonly string[] };

/** Throws for the first rejected key; the details list all of them. */
export function checkKeys(shape: z.ZodType, value: unknown, context: KeyCheckContext): void {
  const rejected = findRejectedKeys(shape, value, context);
  const [first] = rejected;
  if (first) throw unknownKey(first, rejected);
}

/** Returns the keys to refuse; accepted ones are named in the answer's header. */
export function findRejectedKeys(
  shape: z.ZodType,
  value: unknown,
  { services, response, readable = [] }: KeyCheckContext,
) {
  const found = findIgnoredKeys(shape, value).map((key) => knownAmong(readable, key));
  const refuses = services.config.UNKNOWN_BODY_KEYS === 'refuse';
  const passing = found.filter((key) => !(refuses && key.is_unknown));
  if (passing.length > 0) response.set(IGNORED_KEYS_HEADER, formatIgnoredKeys(passing));
  return refuses ? found.filter((key) => key.is_unknown) : [];
}

function knownAmong(readable: readonly string[], key: IgnoredKey): IgnoredKey {
  const [name] = key.path;
  return key.path.length === 1 && readable.includes(String(name)) ? { ...key, is_unknown: false } : key;
}

function unknownKey(first: IgnoredKey, all: readonly IgnoredKey[]): FarthingError {
  const faults = all
    .slice(0, NAMED_MAX)
    .map((key) => ({ field: fieldPath(key.path), message: describeUnknownKey(key) }));
  return invalid(fieldPath(first.path), describeUnknownKey(first), faults.length > 1 ? { faults } : {});
}

export function describeUnknownKey({ path, names }: IgnoredKey): string {
  return `is no key of this request${didYouMean(String(path.at(-1)), names?.() ?? [])}`;
}

/** Error text for a query parameter that the operation does not have. */
export function describeUnknownParameter(name: string, names: readonly string[]): string {
  return `is no query parameter of this operation${didYouMean(name, names)}`;
}

/** Query check for paths outside /v1, which have no route. */
export function refuseParameters(query: object, names: readonly string[] = []): void {
  const unknown = Object.keys(query).find((name) => !names.includes(name));
  if (unknown !== undefined) throw invalid(unknown, describeUnknownParameter(unknown, names));
}

/** Adds ignored names to the answer's header, after those already in it. */
export function reportIgnoredKeys(names: readonly string[], { response }: Pick<Context, 'response'>): void {
  if (names.length === 0) return;
  const named = response.get(IGNORED_KEYS_HEADER);
  const more = formatIgnoredKeys(names.map((name) => ({ path: [name], is_unknown: true })));
  response.set(IGNORED_KEYS_HEADER, named ? `${named}, ${more}` : more);
}

/** Formats the ignored keys for a header, which allows only few characters; a key may contain any. */
function formatIgnoredKeys(keys: readonly IgnoredKey[]): string {
  const named = keys.slice(0, NAMED_MAX).map((key) =>
    fieldPath(key.path)
      .slice(0, 200)
      .replace(/[^\w.[\]-]/gu, '?'),
  );
  return keys.length > NAMED_MAX ? `${named.join(', ')}, and more` : named.join(', ');
}

const TYPOS_MAX = 3;
const COMPARED_MAX = 64;

/** Suggests the nearest name if it is near: at most a third of the key, and at most three characters, may differ. */
function didYouMean(key: string, names: readonly string[]): string {
  if (key.length > COMPARED_MAX) return '';
  const most = Math.min(TYPOS_MAX, Math.ceil(key.length / 3));
  const near = names.map((name) => ({ name, away: distance(key.toLowerCase(), name) }));
  const [nearest] = near.filter(({ away }) => away <= most).sort((a, b) => a.away - b.away);
  return nearest ? `; did you mean ${nearest.name}?` : '';
}
