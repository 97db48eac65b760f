/**
 * Explains to the caller why a value does not match its shape: the expected form and the actual one (docs/rules/errors.md, "The error
 * record"). The name of the field precedes the text (api/http/errors.ts). A shape with a message of its own overrides it.
 */
import type { z } from 'zod';

type Issue = z.core.$ZodRawIssue;

/** Error map for parsing a request: `shape.safeParse(value, { error: explainInvalid })`. */
export function explainInvalid(issue: Issue): string {
  if (issue.input === undefined) return 'is required';
  switch (issue.code) {
    case 'invalid_type':
      return wrongType(issue);
    case 'invalid_value':
      return `must be ${formatOptions(issue.values)}`;
    case 'invalid_format':
      return `must be ${FORMATS[issue.format] ?? 'written differently'}`;
    case 'too_small':
      return tooSmall(issue);
    case 'too_big':
      return tooBig(issue);
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`;
    case 'invalid_union':
      return `must be ${describeUnion(issue)}`;
    case 'invalid_key':
      return `has a key that ${issue.issues[0]?.message ?? 'cannot be used'}`;
    default:
      return 'is not valid';
  }
}

const TYPES: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  record: 'an object',
  null: 'null',
  nan: 'a number',
};

const FORMATS: Record<string, string> = {
  email: 'an email address',
  url: 'a URL such as https://example.com/page',
  datetime: 'an RFC 3339 timestamp such as 2026-01-31T00:00:00Z',
};

function wrongType({ expected, input }: Extract<Issue, { code?: 'invalid_type' }>): string {
  const wanted = `must be ${TYPES[expected] ?? expected}`;
  // A fraction is a number too, so the message names the expected type only.
  return expected === 'int' && typeof input === 'number' ? wanted : `${wanted}, not ${describeType(input)}`;
}

function describeType(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'boolean') return String(value);
  return TYPES[Array.isArray(value) ? 'array' : typeof value] ?? typeof value;
}

/** Format: `a, b or c`. An allowed empty value is not listed. */
function formatOptions(values: readonly unknown[]): string {
  const words = values.map(String).filter((word) => word !== '');
  const last = words.pop() ?? '';
  return words.length === 0 ? last : `${words.join(', ')} or ${last}`;
}

type IssueBound<Code extends 'too_small' | 'too_big'> = Extract<Issue, { code?: Code }>;

function tooSmall({ origin, minimum, inclusive, exact }: IssueBound<'too_small'>): string {
  const counted = formatCount(minimum, origin);
  if (counted === undefined) return `must be ${inclusive === false ? 'greater than' : 'at least'} ${minimum}`;
  if (exact) return `must have exactly ${counted}`;
  return Number(minimum) === 1 ? 'must not be empty' : `must have at least ${counted}`;
}

function tooBig({ origin, maximum, inclusive, exact }: IssueBound<'too_big'>): string {
  const counted = formatCount(maximum, origin);
  if (counted === undefined) return `must be ${inclusive === false ? 'less than' : 'at most'} ${maximum}`;
  if (exact) return `must have exactly ${counted}`;
  return `must not ${origin === 'string' ? 'be longer' : 'have more'} than ${counted}`;
}

const PARTS: Record<string, [one: string, more: string]> = {
  string: ['character', 'characters'],
  array: ['entry', 'entries'],
};

/** Formats a bound on the number of parts, such as characters. Returns undefined if the bound limits the value itself. */
function formatCount(count: number | bigint, origin: string): string | undefined {
  const parts = PARTS[origin];
  return parts && `${count} ${Number(count) === 1 ? parts[0] : parts[1]}`;
}

const WANTED = /^must be (.+?)(, not [a-z ]+)?$/s;

/** Expected form: any of the branches. Faults inside a branch name their own field (api/http/errors.ts). */
function describeUnion({ errors }: Extract<Issue, { code?: 'invalid_union' }>): string {
  const own = errors.flat().filter(({ path }) => path.length === 0);
  const wanted = own.flatMap(({ message }) => WANTED.exec(message)?.[1]?.split(/, | or /) ?? []);
  return formatOptions([...new Set(wanted)]) || 'of another form';
}
