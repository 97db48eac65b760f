/**
 * Timestamps on the wire are RFC 3339 (docs/rules/records.md, "Times"). Inside, an instant is a number: milliseconds since
 * 1970-01-01T00:00:00Z. Finer digits are cut off. An instant lies in the years 1 to 9999 of UTC, which is what such a text
 * can say; `+010000-01-01` is none.
 */
const FIRST_INSTANT = Date.parse('0001-01-01T00:00:00Z');
export const LAST_INSTANT = Date.parse('9999-12-31T23:59:59.999Z');

const RFC_3339 =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9})\d*)?(?:([Zz])|([+-])(\d{2}):(\d{2}))$/;

/** The instant, or undefined where the text is not a real RFC 3339 date and time with an offset. */
export function parseTimestamp(text: string): number | undefined {
  const parts = RFC_3339.exec(text);
  if (parts === null) return undefined;
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  if (hour > 23 || minute > 59 || second > 59) return undefined;
  const local = utcMs(year, month, day);
  if (local === undefined) return undefined;
  const offset = offsetMs(parts[9], Number(parts[10] ?? 0), Number(parts[11] ?? 0));
  if (offset === undefined) return undefined;
  const milliseconds = Number((parts[7] ?? '').padEnd(3, '0').slice(0, 3));
  const instant = local + ((hour * 60 + minute) * 60 + second) * 1000 + milliseconds - offset;
  return instant >= FIRST_INSTANT && instant <= LAST_INSTANT ? instant : undefined;
}

/** RFC 3339 in UTC with milliseconds, always: texts of one width sort as the instants do. */
export function formatTimestamp(instant: number): string {
  return new Date(instant).toISOString();
}

/** Midnight UTC of a calendar date that exists; `Date.UTC` would roll 30 February over and read year 50 as 1950. */
function utcMs(year: number, month: number, day: number): number | undefined {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCFullYear() !== year || date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  return date.getTime();
}

function offsetMs(sign: string | undefined, hours: number, minutes: number): number | undefined {
  if (hours > 23 || minutes > 59) return undefined;
  return (sign === '-' ? -1 : 1) * (hours * 60 + minutes) * 60_000;
}
