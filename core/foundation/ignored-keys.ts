/**
 * Finds keys of a value that have no effect. A shape drops unknown keys silently, so the value of a misspelled key would be lost. Such a
 * key is refused, or accepted and reported (docs/rules/errors.md, "Unknown keys"). Shapes list only accepted keys, so this walk is separate
 * from parsing.
 */
import type { z } from 'zod';
import { withoutEffect } from './record.ts';

export type IgnoredKey = {
  readonly path: readonly (string | number)[];
  /**
   * True for a key that no version of the API knows; false for a key of older clients or a read-only key of the record.
   */
  readonly is_unknown: boolean;
  /** Lists the keys that are accepted at the same level. */
  readonly names?: () => string[];
};

/** Limit of reported keys. */
export const NAMED_MAX = 20;

export function findIgnoredKeys(shape: z.core.$ZodType, value: unknown): IgnoredKey[] {
  const found: IgnoredKey[] = [];
  walk(shape, value, { path: [], found });
  return found;
}

/** Position of the walk, and the keys found. The whole walk changes one object, because a new one per level is slow for many events. */
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

/** Walk for each type of shape. A type that is not listed has no keys, or accepts any key. */
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
  // In a pipe with a transform, the shape on the other side of the transform lists the keys.
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

/** Finds the ignored keys of a union: those of the branch that ignores the fewest. A branch that accepts any key ignores none. */
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

/** Types of shapes that an object cannot match as a branch of a union. */
const TEXTS = new Set<string>(['string', 'number', 'boolean', 'literal', 'enum', 'null']);
