/**
 * Raw events hold what their source calls things. A key that is one of ours misspelt is no such thing: its event would count at the time of
 * its arrival, or without its properties, and nobody would know (docs/rules/events.md, "A request is checked whole").
 */

/** By how many letters a key may differ and still be meant; what else a source knows of a customer is called much like its id (`customer_ip`). */
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

/** The first key of the event that stands in the place of one of ours, and which that is. */
export function findMisspeltKey(event: Readonly<Record<string, unknown>>): { key: string; meant: string } | undefined {
  for (const key of Object.keys(event)) {
    const meant = meantBy(key);
    if (meant !== undefined && !Object.hasOwn(event, meant)) return { key, meant };
  }
  return undefined;
}

/** Whether no event need be looked at for this key, whatever else it has. */
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

/** Letters that are put in, left out, changed, or in the place of their neighbours; a number above every limit where it is more than that. */
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
