/** The texts of an event: what came as a raw event was not looked at before (docs/rules/events.md). */
import { invalid } from '../../core/error.ts';
import { findTextFault, TEXT_MAX } from '../../core/event/accept.ts';
import { ABSENT, fieldMark, markedString, STRING_FIELDS } from '../../core/metering/event-marks.ts';

/** An instant has a rule of its own. */
const TEXTS = STRING_FIELDS.filter((field) => field !== 'timestamp').map((field) => ({ field, at: fieldMark(field) }));

/** Throws what `POST /events` would have refused. */
export function checkTexts(text: string, words: Int32Array, first: number): void {
  for (const { field, at } of TEXTS) {
    const mark = first + at;
    const start = words[mark]!;
    if (start === ABSENT) continue;
    const end = words[mark + 1]!;
    // Halves of character pairs and NUL stand in none that was written without escapes.
    if (end >= 0 && end - start - 2 <= TEXT_MAX) continue;
    const fault = findTextFault(field, markedString(text, words, mark));
    if (fault !== undefined) throw invalid(fault.field, fault.why);
  }
}
