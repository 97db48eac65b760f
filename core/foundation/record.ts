/**
 * Common pieces of all record shapes: decimals as text (docs/rules/numbers.md, "Decimal text"), RFC 3339 timestamps (docs/rules/records.md,
 * "Times"), and enum values accepted in any case and returned in one (docs/rules/records.md, "Spelling"). `metadata` is a map from text to
 * text that is returned as an object or null.
 */
import { z } from 'zod';
import { MAX_FRACTION_DIGITS, MAX_INTEGER_DIGITS, parseDecimal } from './money.ts';
import { formatMs, parseInstant } from './time/instant.ts';

/** Decimal text, or a JSON number in a request. Yields canonical decimal text without exponent ("1.50" → "1.5"). */
export const decimalText = z.preprocess(
  toNumberText,
  z
    .string()
    .refine((text) => parseDecimal(text) !== undefined, {
      error: `must be decimal text with at most ${MAX_INTEGER_DIGITS} digits before and ${MAX_FRACTION_DIGITS} after the point`,
    })
    .overwrite((text) => parseDecimal(text)?.toFixed() ?? text)
    .meta({ example: '12.5' }),
);

/** An RFC 3339 timestamp; yields it in UTC with milliseconds. */
export const timestampText = z
  .string()
  .refine((text) => parseInstant(text) !== undefined, {
    error: 'must be an RFC 3339 timestamp such as 2026-01-31T00:00:00Z',
  })
  .overwrite((text) => {
    const instant = parseInstant(text);
    return instant === undefined ? text : formatMs(instant);
  })
  .meta({ format: 'date-time' });

/** A URL that people are sent to. Another scheme could run a program when it is shown as a link. */
export const webAddress = z.url({ protocol: /^https?$/, error: 'must be an http(s) URL' }).max(2_048);

/** An integer; numbers sent as text are accepted. */
export const wholeNumber = wholeNumberOr();

export function wholeNumberOr(error?: string) {
  return z.preprocess(parseNumberText, z.number(error ? { error } : {}).int());
}

export function buildBoundedInteger(least: number, most: number) {
  return wholeNumber.pipe(z.number().min(least).max(most)).meta({ type: 'integer', minimum: least, maximum: most });
}

/** An integer that fits the 32-bit columns of counts and days. */
export const int32 = wholeNumber.pipe(z.int32());

/** Maximum length of a key or name. They are indexed, and an index entry has a maximum length. */
export const KEY_LENGTH_MAX = 255;
export const keyText = z.string().max(KEY_LENGTH_MAX);

/**
 * True if no character is visible: blanks, controls, joiners, marks of direction or width. Such a key could not be found or distinguished.
 */
export const isBlank = (text: string): boolean => /^[\s\p{Cc}\p{Cf}\p{Z}\p{DI}\u2800]*$/u.test(text);
export const BLANK = { error: 'must not be blank: nothing in it can be seen' };

/** A path of a URL cannot name `.` and `..`: clients resolve them to another path. */
const isPathPart = (text: string): boolean => text !== '.' && text !== '..';
const NO_PATH_PART = { error: 'must not be . or .., which no URL can name' };

/** Clients in languages without null send "" for a key that is not set. */
export const optionalKey = keyText
  .refine((text) => text === '' || !isBlank(text), BLANK)
  .refine(isPathPart, NO_PATH_PART)
  .nullable()
  .transform((text) => (text === '' ? null : text))
  .pipe(z.string().nullable());

/**
 * Shape of a client's key that must not match `ours`, the form of keys of automatic records. A client that took such a key first would
 * block the automatic record.
 */
export const keyNotMatching = (ours: RegExp) =>
  keyText.refine((text) => !ours.test(text), {
    error: 'is like those of records that are made by themselves: state another',
  });

export const requiredName = keyText.refine((text) => !isBlank(text), BLANK);

export const requiredKey = requiredName.refine(isPathPart, NO_PATH_PART);

/** An email address. The part before the @ has at most 64 characters (RFC 5321), or no server accepts a message to it. */
export const emailAddress = z
  .email({ error: 'must be an email address' })
  .refine((text) => text.lastIndexOf('@') <= LOCAL_PART_MAX, { error: 'has more than 64 characters before the @' });
const LOCAL_PART_MAX = 64;

/** A text for people is stored as it is sent, including ""; null means none. */
export const description = z
  .string()
  .nullable()
  .default(null)
  .meta({ description: 'Description for people; null if none.' });

/** Enum values from the keys of a registry. */
export function toEnumValues<Word extends string>(registry: Readonly<Record<Word, unknown>>): [Word, ...Word[]] {
  const [first, ...others] = Object.keys(registry) as Word[];
  if (first === undefined) throw new Error('a registry without entries');
  return [first, ...others];
}

/** One of the values, case-insensitive; yields the spelling of the list (docs/rules/records.md, "Spelling"). */
export function anyCase<const Values extends readonly [string, ...string[]]>(values: Values) {
  const spelling = new Map(values.map((value) => [value.toLowerCase(), value]));
  return z.preprocess(
    (input) => (typeof input === 'string' ? (spelling.get(input.toLowerCase()) ?? input) : input),
    z.enum(values),
  );
}

/** A field that may be absent or null. "" is null too, because clients in languages without null send it for "not set". */
export function orNull<Shape extends z.ZodType>(shape: Shape) {
  return z.preprocess((input) => (input === '' ? null : input), shape.nullable()).default(null as never);
}

/** Like `orNull` for any value. The value may be null itself, so the schema needs no second branch. */
export const anythingOrNull = z
  .unknown()
  .optional()
  .transform((input) => (input === undefined || input === '' ? null : input));

/** Makes each field optional and nullable. */
export function allOrNull<Shapes extends Record<string, z.ZodType>>(shapes: Shapes) {
  const entries = Object.entries(shapes).map(([field, shape]) => [field, orNull(shape)]);
  return Object.fromEntries(entries) as { [Field in keyof Shapes]: ReturnType<typeof orNull<Shapes[Field]>> };
}

/** A field with a default for an absent, null or empty value. */
export function orDefault<Shape extends z.ZodType>(shape: Shape, value: z.output<Shape>) {
  const isUnset = (input: unknown) => input === undefined || input === null || input === '';
  return z.preprocess((input) => (isUnset(input) ? value : input), shape).default(value as never);
}

/** A key of older clients that has no function in this service. It is accepted and ignored, and a response header reports it. */
export const withoutEffect = z
  .unknown()
  .optional()
  .meta({ description: 'Accepted from older clients, without effect. The response header X-Ignored-Keys names it.' });

const METADATA_PAIRS_MAX = 100;
const METADATA_VALUE_MAX = 5_000;
export const metadataMap = z
  .record(keyText, z.string().max(METADATA_VALUE_MAX))
  .refine((map) => Object.keys(map).length <= METADATA_PAIRS_MAX, {
    error: `must not have more than ${METADATA_PAIRS_MAX} keys`,
  })
  .meta({
    description: `At most ${METADATA_PAIRS_MAX} key-value pairs of your own. A new map replaces the previous one.`,
  });
export const metadata = orNull(metadataMap);
/** Map that a record always has; null in a request empties it. */
export const clearedMap = metadataMap
  .nullable()
  .transform((map) => map ?? {})
  .pipe(metadataMap)
  .meta(metadataMap.meta()!);

/** A map with any JSON values; each has the maximum length of a metadata value. */
export const freeMap = z
  .record(keyText, z.unknown())
  .refine((map) => Object.keys(map).length <= METADATA_PAIRS_MAX, {
    error: `must not have more than ${METADATA_PAIRS_MAX} keys`,
  })
  .refine((map) => Object.values(map).every((value) => JSON.stringify(value).length <= METADATA_VALUE_MAX), {
    error: `must not have a value whose JSON is longer than ${METADATA_VALUE_MAX} characters`,
  });

/** Visibility of a record in lists. An archived record frees its key (docs/rules/records.md, "Archiving"). */
export const STATUSES = ['published', 'deleted', 'archived'] as const;
export const status = anyCase(STATUSES);

/** Fields of every record, in addition to its own. */
export const baseFields = {
  tenant_id: z.string(),
  environment_id: z.string(),
  status: status.meta({ description: 'Status of the record: published until it is archived or deleted.' }),
  created_at: timestampText,
  updated_at: timestampText,
  created_by: z.string(),
  updated_by: z.string(),
};

/**
 * Converts a JSON number, which was parsed as a binary float, to text. Up to 15 significant digits it still equals the sent number. With
 * more digits it may differ, so it stays a number and is refused later.
 */
function toNumberText(input: unknown): unknown {
  if (typeof input !== 'number' || !Number.isFinite(input)) return input;
  const [mantissa = '', exponent = '0'] = String(input).split('e');
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const digits = whole + fraction;
  if (digits.replace(/^0+/, '').replace(/0+$/, '').length > 15) return input;
  return (input < 0 ? '-' : '') + shifted(digits, whole.length + Number(exponent));
}

/** Places the decimal point after `point` digits. */
function shifted(digits: string, point: number): string {
  if (point <= 0) return `0.${'0'.repeat(-point)}${digits}`;
  if (point >= digits.length) return digits + '0'.repeat(point - digits.length);
  return `${digits.slice(0, point)}.${digits.slice(point)}`;
}

function parseNumberText(input: unknown): unknown {
  return typeof input === 'string' && /^(0|-?[1-9]\d{0,14})$/.test(input) ? Number(input) : input;
}
