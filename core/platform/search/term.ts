/**
 * Searched kinds of records, and the forms of a search text that are compared (docs/rules/records.md, "Search"). Fields are compared in
 * lowercase. `%`, `_` and `\` in the text are literal.
 */
import type { PermissionEntity } from '../../foundation/access/role.ts';
import { ID_PREFIX } from '../../foundation/id.ts';

/** Kinds in the order of equally good results, each with the permission to see it. */
export const SEARCH_KINDS = {
  customer: 'customer',
  invoice: 'invoice',
  subscription: 'subscription',
  plan: 'plan',
  meter: 'meter',
  feature: 'feature',
  price: 'price',
  addon: 'addon',
  coupon: 'coupon',
  wallet: 'wallet',
  credit_note: 'creditnote',
  payment: 'payment',
  event: 'event',
} as const satisfies Record<string, PermissionEntity>;

export type SearchKind = keyof typeof SEARCH_KINDS;
/** Kinds of records in Postgres. */
export type SearchRecordKind = Exclude<SearchKind, 'event'>;

export const MATCHED_FIELDS = ['id', 'external_id', 'number', 'email', 'name', 'lookup_key', 'event_id'] as const;
export type MatchedField = (typeof MATCHED_FIELDS)[number];

/** Ids of one kind from `first` to `last`; both are equal for a whole id. */
type IdRange = { readonly kind: SearchRecordKind; readonly first: string; readonly last: string };

export type SearchTerm = {
  readonly text: string;
  readonly lower: string;
  /** Patterns of LIKE. */
  readonly prefix: string;
  readonly contains: string;
  /** Null if the text is not the beginning of an id. */
  readonly ids: IdRange | null;
};

export function parseSearchTerm(text: string): SearchTerm {
  const lower = text.toLowerCase();
  const literal = lower.replace(/[\\%_]/g, (sign) => `\\${sign}`);
  return { text, lower, prefix: `${literal}%`, contains: `%${literal}%`, ids: parseIdRange(text) };
}

const ID = /^([a-z_]+)_([0-9A-HJKMNP-TV-Z]{1,26})$/i;
const ID_LENGTH = 26;

/** All ids of a kind have one length and the digits 0 to Z, so a prefix is a range, in the order of any collation. */
function parseIdRange(text: string): IdRange | null {
  const [, prefix = '', digits = ''] = ID.exec(text) ?? [];
  const kind = RECORD_KINDS.find((one) => ID_PREFIX[one] === prefix.toLowerCase());
  if (kind === undefined) return null;
  const pad = (digit: string) => `${ID_PREFIX[kind]}_${digits.toUpperCase().padEnd(ID_LENGTH, digit)}`;
  return { kind, first: pad('0'), last: pad('Z') };
}

const RECORD_KINDS = Object.keys(SEARCH_KINDS).filter((kind): kind is SearchRecordKind => kind !== 'event');

export type RankedHit = {
  readonly kind: SearchKind;
  readonly id: string;
  /** 0: a field equals the text; 1: it begins with the text; 2: it contains the text. */
  readonly rank: 0 | 1 | 2;
};

const KIND_ORDER = Object.keys(SEARCH_KINDS) as SearchKind[];

/**
 * Orders the hits by rank, and within a rank one of each kind at a time, so that many hits of one kind do not hide those of another. A record
 * is listed once, with its best hit. The hits of a kind are in their given order.
 */
export function orderHits<Hit extends RankedHit>(hits: readonly Hit[], limit: number): Hit[] {
  const best = new Map<string, Hit>();
  for (const hit of hits.toSorted((a, b) => a.rank - b.rank)) {
    const key = `${hit.kind} ${hit.id}`;
    if (!best.has(key)) best.set(key, hit);
  }
  const counts = new Map<string, number>();
  const placed = Array.from(best.values(), (hit) => {
    const key = `${hit.kind} ${hit.rank}`;
    const place = counts.get(key) ?? 0;
    counts.set(key, place + 1);
    return { hit, place };
  });
  const kindOrder = ({ kind }: Hit) => KIND_ORDER.indexOf(kind);
  return placed
    .sort((a, b) => a.hit.rank - b.hit.rank || a.place - b.place || kindOrder(a.hit) - kindOrder(b.hit))
    .slice(0, limit)
    .map(({ hit }) => hit);
}
