/**
 * Replaces generated ids by those of the documentation, which count the records of each kind: first, second and so on.
 */

const SHOWN = '01JZ8K3M5N7P9Q1R3S5T7V9W';
const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const MADE = /\b([a-z_]+)_[0-9A-HJKMNP-TV-Z]{26}\b/g;

/** `plan_01JZ8K3M5N7P9Q1R3S5T7V9W2X` is the second plan. */
export function exampleId(kind: string, number = 1): string {
  const digit = DIGITS[number];
  if (digit === undefined)
    throw new RangeError(`more than thirty-one records of the kind ${kind}: their ids have one digit for it`);
  return `${kind}_${SHOWN}${digit}X`;
}

export class ExampleIds {
  readonly #shown = new Map<string, string>();
  readonly #made = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  asShown<Value>(value: Value): Value {
    const show = (id: string, kind: string) => this.#shown.get(id) ?? this.#add(id, kind);
    return withCursors(translated(value, show), (text) => text.replace(MADE, show));
  }

  /** Replaces ids of the documentation by the generated ones; an unknown id stays unchanged. */
  asMade<Value>(value: Value): Value {
    return translated(value, (id) => this.#made.get(id) ?? id);
  }

  #add(made: string, kind: string): string {
    const number = (this.#counts.get(kind) ?? 0) + 1;
    const shown = exampleId(kind, number);
    this.#counts.set(kind, number);
    this.#shown.set(made, shown);
    this.#made.set(shown, made);
    return shown;
  }
}

/** Changes the texts within cursors (storage/models/foundation/page.ts), which end with the id of a record. */
function withCursors<Value>(value: Value, change: (text: string) => string): Value {
  const inside = (cursor: string) =>
    Buffer.from(change(Buffer.from(cursor, 'base64url').toString())).toString('base64url');
  return JSON.parse(JSON.stringify(value), (key, one) =>
    key === 'next_cursor' && typeof one === 'string' ? inside(one) : one,
  );
}

function translated<Value>(value: Value, id: (id: string, kind: string) => string): Value {
  return JSON.parse(JSON.stringify(value).replace(MADE, id));
}
