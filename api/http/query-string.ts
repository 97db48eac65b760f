/**
 * Parses query strings: `a=1&a=2` is a list, `metadata[key]=value` is a map of one level, and everything else is text. Only the route's
 * shape converts values to lists, numbers and dates.
 */
import { isUtf8 } from 'node:buffer';
import { invalid } from '../../core/foundation/error.ts';

export function parseQuery(given: string | null): Record<string, unknown> {
  const query: Record<string, unknown> = {};
  if (!given) return query;
  if (!isUtf8(decodeBytes(given))) throw invalid('query', 'is not UTF-8');
  for (const [name, value] of new URLSearchParams(given)) {
    const [, outer, inner] = /^([^[\]]+)\[([^\]]*)\]$/.exec(name) ?? [undefined, name, undefined];
    // A filter with such a name would match everything, so the caller would mistake all records for the filtered ones.
    if (outer === '__proto__' || inner === '__proto__') throw invalid(name, 'is no name that can be used');
    if (outer === undefined) continue;
    if (inner) put(mapAt(query, outer), inner, value);
    else put(query, outer, value, inner === '');
  }
  return query;
}

function decodeBytes(text: string): Buffer {
  const decoded = text.replace(/%([0-9a-f]{2})/gi, (_escape, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Buffer.from(decoded, 'latin1');
}

function put(target: Record<string, unknown>, name: string, value: string, isList = false): void {
  const known = Object.hasOwn(target, name) ? target[name] : undefined;
  if (Array.isArray(known)) known.push(value);
  else if (typeof known === 'string') target[name] = [known, value];
  else target[name] = isList ? [value] : value;
}

function mapAt(query: Record<string, unknown>, name: string): Record<string, unknown> {
  const known = Object.hasOwn(query, name) ? query[name] : undefined;
  if (typeof known === 'object' && known !== null && !Array.isArray(known)) return known as Record<string, unknown>;
  const made: Record<string, unknown> = {};
  query[name] = made;
  return made;
}
