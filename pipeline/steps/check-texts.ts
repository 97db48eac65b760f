/** Checks the texts of an event. A raw event was not checked when it was accepted (docs/rules/events.md). */
import { invalid } from '../../core/foundation/error.ts';
import { findTextFault, TEXT_MAX } from '../../core/metering/event/accept.ts';
import { ABSENT, fieldMark, markedString, STRING_FIELDS } from '../../core/metering/event-marks.ts';

/** Text fields to check, without the timestamp, which has a rule of its own. */
const TEXTS = STRING_FIELDS.filter((field) => field !== 'timestamp').map((field) => ({ field, at: fieldMark(field) }));

/** Throws the error that `POST /events` would have returned. */
export function checkTexts(text: string, words: Int32Array, first: number): void {
  for (const { field, at } of TEXTS) {
    const mark = first + at;
    const start = words[mark]!;
    if (start === ABSENT) continue;
    const end = words[mark + 1]!;
    // `end` is negative if the text has escapes. Without escapes it contains no lone surrogate and no NUL, so only its length matters.
    if (end >= 0 && end - start - 2 <= TEXT_MAX) continue;
    const fault = findTextFault(field, markedString(text, words, mark));
    if (fault !== undefined) throw invalid(fault.field, fault.why);
  }
}
