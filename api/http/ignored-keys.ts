/**
 * Keys of a body that have no effect. A shape leaves out what it does not name without a word, and a misspelt key would be a
 * value that was sent and is not there: it is refused, or let pass and told (docs/rules/errors.md, "Unknown keys"). Shapes
 * say what is taken and not what is refused, so this walk goes beside the parsing.
 */
import { distance } from 'fastest-levenshtein';
import { z } from 'zod';
import { type FarthingError, invalid } from '../../core/error.ts';
import { withoutEffect } from '../../core/record.ts';
import { fieldPath } from './errors.ts';
import type { Context } from './route.ts';

type IgnoredKey = {
  readonly path: readonly (string | number)[];
  /** Nobody knows it. Otherwise it is one that older clients send, or one of the record that can be read and not changed. */
  readonly is_unknown: boolean;
  /** What could have been sent in its place. */
  readonly names?: () => string[];
};

export const IGNORED_KEYS_HEADER = 'X-Ignored-Keys';

type Asked = Pick<Context, 'services' | 'response'> & { readonly readable?: readonly string[] };

/** Throws the first of the keys that are refused; all of them are in the details. */
export function checkKeys(shape: z.ZodType, value: unknown, asked: Asked): void {
  const refused = refusedKeys(shape, value, asked);
  const [first] = refused;
  if (first) throw unknownKey(first, refused);
}

/** What must be refused; what may pass is named in the answer's header. */
export function refusedKeys(shape: z.ZodType, value: unknown, { services, response, readable = [] }: Asked) {
  const found = ignoredKeys(shape, value).map((key) => knownAmong(readable, key));
  const refuses = services.config.UNKNOWN_BODY_KEYS === 'refuse';
  const passing = found.filter((key) => !(refuses && key.is_unknown));
  if (passing.length > 0) response.set(IGNORED_KEYS_HEADER, headerOf(passing));
  return refuses ? found.filter((key) => key.is_unknown) : [];
}

function knownAmong(readable: readonly string[], key: IgnoredKey): IgnoredKey {
  const [name] = key.path;
  return key.path.length === 1 && readable.includes(String(name)) ? { ...key, is_unknown: false } : key;
}

function unknownKey(first: IgnoredKey, all: readonly IgnoredKey[]): FarthingError {
  const faults = all.slice(0, NAMED_MAX).map((key) => ({ field: fieldPath(key.path), message: whyRefused(key) }));
  return invalid(fieldPath(first.path), whyRefused(first), faults.length > 1 ? { faults } : {});
}

export function whyRefused({ path, names }: IgnoredKey): string {
  return `is no key of this request${didYouMean(String(path.at(-1)), names?.() ?? [])}`;
}

/** Names in the answer what was sent and has no effect. */
export function tellIgnored(names: readonly string[], { response }: Pick<Context, 'response'>): void {
  if (names.length > 0)
    response.set(IGNORED_KEYS_HEADER, headerOf(names.map((name) => ({ path: [name], is_unknown: true }))));
}

/** Whoever sends more of them does not need them all. */
const NAMED_MAX = 20;

/** A header holds a few plain characters, a key any. */
function headerOf(keys: readonly IgnoredKey[]): string {
  const named = keys.slice(0, NAMED_MAX).map((key) =>
    fieldPath(key.path)
      .slice(0, 200)
      .replace(/[^\w.[\]-]/gu, '?'),
  );
  return keys.length > NAMED_MAX ? `${named.join(', ')}, and more` : named.join(', ');
}

/** In the order in which they stand in the value. */
export function ignoredKeys(shape: z.core.$ZodType, value: unknown): IgnoredKey[] {
  const found: IgnoredKey[] = [];
  walk(shape, value, { path: [], found });
  return found;
}

/** Where the walk is, and what it has found. Events come by the thousand: where nothing is wrong, nothing is made. */
type Place = { readonly path: (string | number)[]; readonly found: IgnoredKey[] };
type Walk = (def: never, value: object, place: Place) => void;

function walk(shape: z.core.$ZodType, value: unknown, place: Place): void {
  if (typeof value !== 'object' || value === null) return;
  const { def } = shape._zod;
  WALKS[def.type]?.(def as never, value, place);
}

function walkUnder(step: string | number, shape: z.core.$ZodType, value: unknown, place: Place): void {
  if (typeof value !== 'object') return;
  place.path.push(step);
  walk(shape, value, place);
  place.path.pop();
}

const inner: Walk = ({ innerType }: z.core.$ZodOptionalDef, value, place) => walk(innerType, value, place);

/** What is not here holds no keys, or any. */
const WALKS: Partial<Record<z.core.$ZodTypeDef['type'], Walk>> = {
  object: inObject as Walk,
  array: ({ element }: z.core.$ZodArrayDef, value, place) => {
    if (Array.isArray(value)) for (const [index, item] of value.entries()) walkUnder(index, element, item, place);
  },
  record: ({ valueType }: z.core.$ZodRecordDef, value, place) => {
    if (!Object.hasOwn(WALKS, valueType._zod.def.type)) return;
    for (const [key, item] of Object.entries(value)) walkUnder(key, valueType, item, place);
  },
  union: inUnion as Walk,
  optional: inner,
  nullable: inner,
  default: inner,
  // Of a transform the shape before it says what is taken; of one that comes first, the shape behind it.
  pipe: ({ in: before, out }: z.core.$ZodPipeDef, value, place) =>
    walk(before._zod.def.type === 'transform' ? out : before, value, place),
};

function inObject({ shape, catchall }: z.core.$ZodObjectDef, value: object, place: Place): void {
  if (Array.isArray(value)) return;
  const before = place.found.length;
  for (const key of Object.keys(value)) {
    if (place.found.length - before > NAMED_MAX) return;
    const known = Object.hasOwn(shape, key) ? shape[key] : undefined;
    if (known === withoutEffect) place.found.push({ path: [...place.path, key], is_unknown: false });
    else if (known) walkUnder(key, known, (value as Record<string, unknown>)[key], place);
    else if (!catchall) {
      place.found.push({ path: [...place.path, key], is_unknown: true, names: () => Object.keys(shape) });
    }
  }
}

/** The branch that was meant is the one that ignores least; one that takes anything ignores nothing. */
function inUnion({ options }: z.core.$ZodUnionDef, value: object, { path, found }: Place): void {
  const ofBranches = options
    .filter(({ _zod }) => !TEXTS.has(_zod.def.type))
    .map((option) => {
      const place: Place = { path, found: [] };
      walk(option, value, place);
      return place.found;
    });
  for (const key of ofBranches.sort((a, b) => a.length - b.length)[0] ?? []) found.push(key);
}

/** Such a branch of a union cannot have been meant by an object. */
const TEXTS = new Set<string>(['string', 'number', 'boolean', 'literal', 'enum', 'null']);

const TYPOS_MAX = 3;
const COMPARED_MAX = 64;

/** A hint at the name that is nearest to what was sent, if one is near: a third of it may be wrong. */
export function didYouMean(key: string, names: readonly string[]): string {
  if (key.length > COMPARED_MAX) return '';
  const most = Math.min(TYPOS_MAX, Math.ceil(key.length / 3));
  const near = names.map((name) => ({ name, away: distance(key.toLowerCase(), name) }));
  const [nearest] = near.filter(({ away }) => away <= most).sort((a, b) => a.away - b.away);
  return nearest ? `; did you mean ${nearest.name}?` : '';
}
