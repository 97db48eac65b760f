/**
 * Raw events may have any key of their source except a misspelt event field. Such an event would count at the time of its
 * arrival, or without its properties, and the error would go unnoticed (docs/rules/events.md, "A request is checked
 * whole").
 */

/**
 * Number of letters by which a key may differ and still count as the misspelt field. It is small, because a source may have other keys that
 * resemble a field (`customer_ip`).
 */
const LETTERS_WRONG: Readonly<Record<string, number>> = {
  event_id: 1,
  event_name: 2,
  external_customer_id: 2,
  customer_id: 0,
  timestamp: 2,
  source: 1,
  properties: 2,
};
const NAMES = Object.keys(LETTERS_WRONG);
const LONGEST = 24;

/** The first key that is a misspelling of a field that the event lacks, with that field. */
export function findMisspeltKey(event: Readonly<Record<string, unknown>>): { key: string; meant: string } | undefined {
  for (const key of Object.keys(event)) {
    const meant = meantBy(key);
    if (meant !== undefined && !Object.hasOwn(event, meant)) return { key, meant };
  }
  return undefined;
}

/** Whether the key is an event field or resembles none, so that it cannot be a misspelling. */
export function canHold(key: string): boolean {
  return meantBy(key) === undefined;
}

function meantBy(key: string): string | undefined {
  if (key.length > LONGEST || Object.hasOwn(LETTERS_WRONG, key)) return undefined;
  const bare = toBareKey(key);
  return NAMES.find(
    (name) => bare === toBareKey(name) || lettersBetween(key.toLowerCase(), name) <= LETTERS_WRONG[name]!,
  );
}

function toBareKey(key: string): string {
  return key.toLowerCase().replace(/[^a-z0-9]/g, '');
}

/** Number of letters inserted, omitted, changed or swapped with a neighbour; infinite if the lengths differ by more than 2. */
function lettersBetween(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return Number.POSITIVE_INFINITY;
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let at = 1; at <= a.length; at++) {
    const next = [at];
    for (let of = 1; of <= b.length; of++) {
      const changed = row[of - 1]! + (a[at - 1] === b[of - 1] ? 0 : 1);
      const isSwapped = at > 1 && of > 1 && a[at - 1] === b[of - 2] && a[at - 2] === b[of - 1];
      next.push(Math.min(changed, row[of]! + 1, next[of - 1]! + 1, isSwapped ? before[of - 2]! + 1 : changed));
    }
    before = row;
    row = next;
  }
  return row[b.length]!;
}
