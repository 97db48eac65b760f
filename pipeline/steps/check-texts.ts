/** The texts of an event: what came as a raw event was not looked at before (docs/rules/events.md). */
import { invalid } from '../../core/error.ts';
import { faultOfText, TEXT_MAX } from '../../core/event/accept.ts';
import { ABSENT, fieldMark, markedString } from '../../core/metering/event-marks.ts';

const EVENT_ID = fieldMark('event_id');
const EVENT_NAME = fieldMark('event_name');
const CUSTOMER = fieldMark('external_customer_id');
const CUSTOMER_ID = fieldMark('customer_id');
const SOURCE = fieldMark('source');

/** Throws what `POST /events` would have refused. */
export function checkTexts(text: string, words: Int32Array, first: number): void {
  checkText(text, words, first + EVENT_ID, 'event_id');
  checkText(text, words, first + EVENT_NAME, 'event_name');
  checkText(text, words, first + CUSTOMER, 'external_customer_id');
  checkText(text, words, first + CUSTOMER_ID, 'customer_id');
  checkText(text, words, first + SOURCE, 'source');
}

/** Halves of character pairs and NUL stand in none that was written without escapes. */
function checkText(text: string, words: Int32Array, mark: number, field: string): void {
  const start = words[mark]!;
  if (start === ABSENT) return;
  const end = words[mark + 1]!;
  if (end >= 0 && end - start - 2 <= TEXT_MAX) return;
  const fault = faultOfText(field, markedString(text, words, mark));
  if (fault !== undefined) throw invalid(fault.field, fault.why);
}
