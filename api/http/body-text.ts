/** Parses bodies whose text matters as well as their value: numbers keep their digits. */
import { isAscii } from 'node:buffer';
import { FarthingError, invalid } from '../../core/foundation/error.ts';
import { parseJson } from '../../core/foundation/json/parse.ts';
import { checkBodySize, type EventsAt } from '../../core/metering/event/body-size.ts';
import type { Context } from './route.ts';

/** A body as text with one character per byte, so that positions in it are byte offsets, and as a value. */
export type Body = { readonly bytes: Buffer; readonly characters: string; readonly value: unknown };

/** Reads the body of a route with `raw_body`. `events_at` locates the events in a batch. */
export function readBody(context: Context, events_at?: EventsAt): Body {
  const bytes: Buffer = context.request.body;
  if (bytes.length === 0) throw invalid('body', 'is required');
  checkBodySize(bytes, events_at);
  return parseBody(bytes.toString('latin1'), bytes);
}

/** Parses a body. `characters` is JSON text with one character per byte. */
export function parseBody(characters: string, bytes: Buffer = Buffer.from(characters, 'latin1')): Body {
  return { bytes, characters, value: parsed(isAscii(bytes) ? characters : bytes.toString('utf8')) };
}

function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch (cause) {
    throw new FarthingError('validation_error', 'body: must be valid JSON', { cause, details: { field: 'body' } });
  }
}
