/** Attributes of a CloudEvent that were sent as headers: https://github.com/cloudevents/spec, HTTP binding 1.0.2, 3.1.3. */
import type { Request } from 'express';
import { invalid } from '../../core/foundation/error.ts';

const PREFIX = 'ce-';

/** Returns the ce-headers by attribute name, without the prefix. */
export function ceHeaders({ headersDistinct }: Request): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [header, values = []] of Object.entries(headersDistinct)) {
    if (!header.startsWith(PREFIX)) continue;
    const name = header.slice(PREFIX.length);
    if (values.length > 1) throw invalid(name, 'stands twice in the event');
    found[name] = decoded(name, values[0]!);
  }
  return found;
}

/**
 * Returns the text of the ce-headers for the request hash: two requests with equal bodies and different ce-headers are different events.
 */
export function ceHeaderText(request: Request): string {
  const headers = Object.entries(request.headersDistinct).filter(([header]) => header.startsWith(PREFIX));
  return headers.length === 0 ? '' : JSON.stringify(headers.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Decodes a value. It may be quoted. One round of percent-decoding as UTF-8 follows. */
function decoded(name: string, value: string): string {
  const isQuoted = value.length > 1 && value.startsWith('"') && value.endsWith('"');
  const text = isQuoted ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value;
  try {
    return decodeURIComponent(text.replace(/%(?![0-9A-Fa-f]{2})/g, '%25'));
  } catch (cause) {
    throw Object.assign(invalid(name, 'is not percent-encoded UTF-8'), { cause });
  }
}
