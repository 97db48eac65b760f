/**
 * Keys of a value that have no effect. A shape leaves out what it does not name without a word, and a misspelt key would be a
 * value that was sent and is not there: it is refused, or let pass and told (docs/rules/errors.md, "Unknown keys"). Shapes
 * say what is taken and not what is refused, so this walk goes beside the parsing.
 */
import type { z } from 'zod';
import { withoutEffect } from './record.ts';

export type IgnoredKey = {
  readonly path: readonly (string | number)[];
  /** Nobody knows it. Otherwise it is one that older clients send, or one of the record that can be read and not changed. */
  readonly is_unknown: boolean;
  /** What could have been sent in its place. */
  readonly names?: () => string[];
};

/** Whoever sends more of them does not need them all. */
export const NAMED_MAX = 20;

/** In the order in which they stand in the value. */
export function findIgnoredKeys(shape: z.core.$ZodType, value: unknown): IgnoredKey[] {
  const found: IgnoredKey[] = [];
  walk(shape, value, { path: [], found });
  return found;
}

/** Where the walk is, and what it has found. Events come by the thousand: where nothing is wrong, nothing is made. */
type KeyWalkPlace = { readonly path: (string | number)[]; readonly found: IgnoredKey[] };
type KeyWalk = (def: never, value: object, place: KeyWalkPlace) => void;

function walk(shape: z.core.$ZodType, value: unknown, place: KeyWalkPlace): void {
  if (typeof value !== 'object' || value === null) return;
  const { def } = shape._zod;
  WALKS[def.type]?.(def as never, value, place);
}

function walkUnder(step: string | number, shape: z.core.$ZodType, value: unknown, place: KeyWalkPlace): void {
  if (typeof value !== 'object') return;
  place.path.push(step);
  walk(shape, value, place);
  place.path.pop();
}

const inner: KeyWalk = ({ innerType }: z.core.$ZodOptionalDef, value, place) => walk(innerType, value, place);

/** What is not here holds no keys, or any. */
const WALKS: Partial<Record<z.core.$ZodTypeDef['type'], KeyWalk>> = {
  object: inObject as KeyWalk,
  array: ({ element }: z.core.$ZodArrayDef, value, place) => {
    if (Array.isArray(value)) for (const [index, item] of value.entries()) walkUnder(index, element, item, place);
  },
  record: ({ valueType }: z.core.$ZodRecordDef, value, place) => {
    if (!Object.hasOwn(WALKS, valueType._zod.def.type)) return;
    for (const [key, item] of Object.entries(value)) walkUnder(key, valueType, item, place);
  },
  union: inUnion as KeyWalk,
  optional: inner,
  nullable: inner,
  default: inner,
  // Of a transform the shape before it says what is taken; of one that comes first, the shape behind it.
  pipe: ({ in: before, out }: z.core.$ZodPipeDef, value, place) =>
    walk(before._zod.def.type === 'transform' ? out : before, value, place),
};

function inObject({ shape, catchall }: z.core.$ZodObjectDef, value: object, place: KeyWalkPlace): void {
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
function inUnion({ options }: z.core.$ZodUnionDef, value: object, { path, found }: KeyWalkPlace): void {
  const ofBranches = options
    .filter(({ _zod }) => !TEXTS.has(_zod.def.type))
    .map((option) => {
      const place: KeyWalkPlace = { path, found: [] };
      walk(option, value, place);
      return place.found;
    });
  for (const key of ofBranches.sort((a, b) => a.length - b.length)[0] ?? []) found.push(key);
}

/** Such a branch of a union cannot have been meant by an object. */
const TEXTS = new Set<string>(['string', 'number', 'boolean', 'literal', 'enum', 'null']);
